"""When a session's bytes were written: by day, from the times of its records. Pure.

Rule: every byte belongs to one day, in UTC. A record without a time belongs to the day of the
record before it; records before the first time belong to the first day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

from sessrotate.reports.model import Day, SegmentRow

MOST: Final = 40_000
"""Most days that are kept apart, over a century: a hostile session may name any number."""

_DAY: Final = timedelta(days=1)
_FIRST, _LAST = 1970, 9998


@lru_cache(maxsize=4096)
def moment(text: str) -> datetime | None:
    """Return a record's time (ISO 8601, UTC unless a zone is given), None if `text` is not a time.

    Times that no client can have written, before 1970 or after 9998, do not count.
    """
    try:
        found = datetime.fromisoformat(text)
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if _FIRST <= found.year <= _LAST else None


def day_of(text: str | None) -> str | None:
    """Return the day of a record's time (`2026-03-01`), None if it is not a time."""
    if text is None:
        return None
    found = moment(text[:10] if text.endswith("Z") else text)
    return None if found is None else found.date().isoformat()


class Days:
    """Bytes by day, added in the order of the history."""

    def __init__(self) -> None:
        self._bytes: dict[str, int] = {}
        self._last: str | None = None
        self._early = 0
        """Bytes of what stands before the first day."""

    def add(self, size: int, time: str | None) -> None:
        """Add the bytes of a record with this time, or without one."""
        last = self._last
        if last is not None and (time is None or (time.startswith(last) and time.endswith("Z"))):
            self._bytes[last] += size
        else:
            self.on(size, day_of(time))

    def on(self, size: int, day: str | None) -> None:
        """Add bytes to a day, or to the latest day so far."""
        if day is not None and (day in self._bytes or len(self._bytes) < MOST):
            self._last = day
        if self._last is None:
            self._early += size
        else:
            self._bytes[self._last] = self._bytes.get(self._last, 0) + size

    def extend(self, later: Days) -> None:
        """Add everything that another collection has, as what comes next."""
        self.on(later._early, None)
        for day, size in later._bytes.items():
            self.on(size, day)
        self._last = later._last or self._last

    def all(self) -> tuple[Day, ...]:
        """Return the days in order; bytes without a day come first."""
        found = dict(self._bytes)
        if self._early and found:
            found[next(iter(found))] += self._early
        undated = (Day(None, self._early),) if self._early and not found else ()
        return (*undated, *(Day(day, size) for day, size in sorted(found.items())))


def spread(segments: Iterable[SegmentRow]) -> tuple[Day, ...]:
    """Return the bytes of segments by day, as if each had been written evenly over its time."""
    days = Days()
    for segment in segments:
        if segment.state != "absent":
            for size, day in _spread(segment):
                days.on(size, day)
    return days.all()


def _spread(segment: SegmentRow) -> Iterable[tuple[int, str | None]]:
    begin, end = (
        None if text is None else moment(text)
        for text in (segment.first_timestamp, segment.last_timestamp)
    )
    begin, end = begin or end, end or begin
    if begin is None or end is None:
        yield segment.bytes, None
        return
    begin, end = min(begin, end), max(begin, end)  # clocks jump
    whole, done, at = (end - begin).total_seconds(), 0, begin
    for _ in range(MOST):
        midnight = datetime(at.year, at.month, at.day, tzinfo=UTC) + _DAY
        if midnight >= end or not whole:
            break
        share = int(segment.bytes * (midnight - begin).total_seconds() / whole)
        yield share - done, at.date().isoformat()
        done, at = share, midnight
    yield segment.bytes - done, at.date().isoformat()


def together(sessions: Iterable[Iterable[Day]]) -> tuple[Day, ...]:
    """Return the sums of several growths."""
    found: dict[str | None, int] = {}
    for day in (day for days in sessions for day in days):
        found[day.day] = found.get(day.day, 0) + day.bytes
    return tuple(Day(day, found[day]) for day in sorted(found, key=lambda day: day or ""))


def by_period(days: Iterable[Day], most: int) -> dict[str, int]:
    """Return the bytes by day, week (its Monday), month or year.

    The finest that gives at most `most` rows; periods without bytes are included, with 0.
    """
    dated = [(date.fromisoformat(day.day), day.bytes) for day in days if day.day is not None]
    first = min((day for day, _ in dated), default=date.max)
    last = max((day for day, _ in dated), default=date.min)
    found: dict[str, int] = {}
    for period in _PERIODS:
        day, found = first, {}
        while day <= last and len(found) <= most:
            found[period(day)] = 0
            day += _DAY
        if len(found) <= most:
            break
    for day, size in dated:
        found[period(day)] = found.get(period(day), 0) + size
    return found


def _week(day: date) -> str:
    return (day - day.weekday() * _DAY).isoformat()


_PERIODS: Final[tuple[Callable[[date], str], ...]] = (
    lambda day: day.isoformat(),
    _week,
    lambda day: day.isoformat()[:7],
    lambda day: day.isoformat()[:4],
)
"""From the finest."""
