"""Sizes as people write them → bytes. Pure.

Rule: powers of 1024, and one meaning wherever a size is given.
"""

from __future__ import annotations

import re
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
