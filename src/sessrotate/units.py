"""Sizes, ages and points in time: what people and clients write → bytes, seconds, moments. Pure.

Rule: a text means the same in every option, setting and filter. A size is in powers of 1024.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

SIZES: Final = "500K, 50M or 2G"
AGES: Final = "30m, 12h, 30d or 6w"
MOMENTS: Final = "2026-03-01 or 2026-03-01T10:00:05Z"
"""Examples of each, for messages and help."""

DAY: Final = 86_400.0
"""Seconds."""

_BYTES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_MOST: Final = 999.95
"""From here on a size is told in the next unit: 1.0 MiB is shorter than 1000.0 KiB, and as true."""

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")

_SPANS: Final = (
    ("w", 7 * DAY, "week"),
    ("d", DAY, "day"),
    ("h", 3600, "hour"),
    ("m", 60, "minute"),
    ("", 1, "second"),
)
_AGES: Final = {letter: length for letter, length, _ in _SPANS if letter}
_PRECISIONS: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d|\d{8}"), timedelta(days=1)),
    (re.compile(r".*[T ]\d\d:?\d\d(?:Z|[+-]\d\d:?\d\d)?"), timedelta(minutes=1)),
    (re.compile(r"[^.,]*"), timedelta(seconds=1)),
    (re.compile(r".*"), timedelta(microseconds=1)),
)
"""How long a point in time lasts, by how it is written: a day, a minute, a second, no time."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time from its beginning to its end: a date is a whole day."""

    begin: datetime
    end: datetime


def size(text: str) -> int | None:
    """Return the bytes that a size such as `50M` means; None if `text` is not a size."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    return int(float(found[1]) * _BYTES[found[2].upper()]) if found else None


def amount(number: int, *, up: bool = False) -> str:
    """Return a number of bytes as people read it: in powers of 1024, at most three digits.

    Of room that is needed, it is rounded `up`: whoever makes that much has enough.
    """
    value, unit = float(number), 0
    while abs(value) >= (_MOST if unit else 1024) and unit + 1 < len(_UNITS):
        value, unit = value / 1024, unit + 1
    if unit and up:
        value = math.ceil(value * 10) / 10
    return f"{number} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def some(shown: Sequence[str], most: int = 3) -> str:
    """Return the first of many names in a row, at `most` so many, and how many more there are."""
    more = f" and {len(shown) - most:,} more" if len(shown) > most else ""
    return f"{', '.join(shown[:most])}{more}"


def whole(count: int) -> str:
    """Return bytes in words, in the largest unit that gives a whole number."""
    for letter, length in reversed(_BYTES.items()):
        if letter and count >= length and count % length == 0:
            return f"{count // length:,} {letter}iB"
    return f"{count:,} bytes"


def age(text: str) -> float | None:
    """Return the seconds that an age such as `30m` or `6w` means; None if `text` is not an age."""
    found = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    if found is None:
        return 0.0 if text.strip() == "0" else None
    return float(int(found[1]) * _AGES[found[2]])


def days(seconds: float) -> str:
    """Return a length of time in days, in words."""
    count = f"{round(seconds / DAY, 1):,g}"
    return f"{count} day{'' if count == '1' else 's'}"


def span(seconds: float) -> str:
    """Return a length of time in words, in the largest unit that gives a whole number."""
    for _, length, name in _SPANS:
        if seconds >= length and seconds % length == 0:
            count = int(seconds // length)
            return f"{count} {name}{'s' if count > 1 else ''}"
    return f"{seconds:g} seconds"


def moment(text: str, now: datetime) -> Moment | None:
    """Return the point in time that an ISO 8601 text means, or that an age before `now` means.

    A time without a zone is in UTC. None if `text` is neither, or lies outside the calendar.
    """
    text, ago = text.strip(), age(text)
    try:
        if ago is not None:
            begin = now - timedelta(seconds=ago)
            return Moment(begin, begin)
        begin = datetime.fromisoformat(text)
        begin = begin if begin.tzinfo is not None else begin.replace(tzinfo=UTC)
        lasts = next(length for written, length in _PRECISIONS if written.fullmatch(text))
        return Moment(begin, begin + lasts)
    except (ValueError, OverflowError):
        return None


def in_utc(text: str) -> str:
    """Return a time, ISO 8601 with a zone, as the same time in UTC; unchanged if it is in UTC."""
    if text.endswith("Z"):
        return text
    try:
        when = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return text
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def written(at: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601 in UTC, which `seconds` reads."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str | None) -> float | None:
    """Return a record's time, ISO 8601 with a zone, in seconds since 1970; None if it is none."""
    try:
        when = datetime.fromisoformat(text or "")
        # In UTC it may lie outside the calendar.
        return when.astimezone(UTC).timestamp() if when.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
