"""Sizes, ages and times as people and clients write them → bytes and seconds. Pure.

Rule: each has one meaning wherever it is given; a size is in powers of 1024.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parsed(text: str) -> int | None:
    """Return the bytes that a size such as `50M` means; None if it is none."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    return int(float(found[1]) * _UNITS[found[2].upper()]) if found else None


_AGES: Final = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def age(text: str) -> float | None:
    """Return the seconds that an age such as `12h`, `30d` or `6w` means, None if it is none."""
    found = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    if found is None:
        return 0.0 if text.strip() == "0" else None
    return float(int(found[1]) * _AGES[found[2]])


def seconds(text: str | None) -> float | None:
    """Return a record's time, ISO 8601, in seconds since 1970; None if it is none."""
    try:
        when = datetime.fromisoformat(text or "")
        # In UTC it may lie outside of all years that there are.
        return when.astimezone(UTC).timestamp() if when.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
