"""The records of a session → kinds, tools, copies, the largest, and their days. Pure.

Rule: each record is counted once and none is kept. A segment counts only if all of it could be
read. Memory is bounded except for the table that tells copies (`reading.deduplicate`). Only the
last `CALLS` tool calls are known by name: a result far behind its call, or before it, counts for an
unknown tool. After `TOOLS` names, all further tools count as other tools.

Every byte belongs to one day, in UTC. A record without a time belongs to the day of the record
before it; records before the first time belong to the first day.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import xxhash
from msgspec import Struct, field

from sessrotate.clients import view
from sessrotate.clients.protocol import Copying, Quick, Reader
from sessrotate.parsing import Record, split
from sessrotate.reading.deduplicate import Known
from sessrotate.reports import Contents, Day, LargeLine, SegmentRow, Share

if TYPE_CHECKING:
    from sessrotate.clients.view import Copied, Copy, Told

CALLS: Final = 20_000
TOOLS: Final = 1_000
LARGEST: Final = 10

_LONGEST: Final = 128
"""Characters of a tool's name, and of a call's id, that are kept."""

UNKNOWN_TOOL: Final = "unknown tool"
OTHER_TOOLS: Final = "other tools"


class Counts(Struct):
    """What was counted: of a segment, or of several together. The largest lines come first.

    Kinds, tools and copies have their lines and bytes, in a list each.
    """

    kinds: dict[str, list[int]] = field(default_factory=dict)
    tools: dict[str, list[int]] = field(default_factory=dict)
    copies: dict[str, list[int]] = field(default_factory=dict)
    copied_lines: int = 0
    largest: list[LargeLine] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        """Add what others counted."""
        for mine, others in (
            (self.kinds, other.kinds),
            (self.tools, other.tools),
            (self.copies, other.copies),
        ):
            for name, (lines, size) in others.items():
                _count(mine, name, lines, size)
        self.copied_lines += other.copied_lines
        for line in other.largest:
            self.keep(line)

    def keep(self, line: LargeLine) -> None:
        """Keep a line if it is one of the largest; of two of a size the earlier is."""
        self.largest.append(line)
        self.largest.sort(key=lambda each: -each.bytes)
        del self.largest[LARGEST:]

    def contents(self) -> Contents:
        """Return what was counted, as a report has it."""
        return Contents(
            kinds=_shares(self.kinds),
            tools=_shares(self.tools),
            copies=_shares(self.copies),
            copied_lines=self.copied_lines,
            largest=tuple(self.largest),
        )


def _count(shares: dict[str, list[int]], name: str, lines: int, size: int) -> None:
    share = shares.get(name)
    if share is None:
        shares[name] = [lines, size]
    else:
        share[0] += lines
        share[1] += size


def _count_copies(counts: Counts, found: Mapping[Copy, int]) -> None:
    """Count what of one line stands a second time."""
    counts.copied_lines += any(found.values())
    for name, size in found.items():
        if size:
            _count(counts.copies, name, 1, size)


def _shares(found: dict[str, list[int]]) -> tuple[Share, ...]:
    """Return what there is by name, largest first."""
    shares = (Share(name, lines, size) for name, (lines, size) in found.items())
    return tuple(sorted(shares, key=lambda share: (-share.bytes, share.name)))


class Tally:
    """Counts the records of one session, segment by segment, in their order."""

    def __init__(
        self, session: str, reader: Reader, bytes_of: Callable[[Record], Iterator[bytes]]
    ) -> None:
        self.counts: Final = Counts()
        self._session: Final = session
        self._reader: Final = reader
        self._known: Final = Known(bytes_of)
        self._copied: Final[Copied | None] = (
            reader.copied(lambda digest: self._known.is_new_line(digest, None), bytes_of)
            if isinstance(reader, Copying)
            else None
        )
        # By the hash of the call's id, which takes half as much memory. Finding the oldest key of a
        # plain dict would pass over all that were dropped.
        self._calls: Final[OrderedDict[int, str]] = OrderedDict()
        self._tools: Final[dict[str, str]] = {}
        self._days: Final = Days()

    def segment(
        self, pieces: Iterable[bytes | memoryview], index: int, start: int
    ) -> tuple[int, int]:
        """Count a segment that begins at `start` of the history; return its lines and bytes.

        If reading it fails, nothing of it is counted.
        """
        counts, days = Counts(), Days()
        shares, is_new = counts.kinds, self._known.is_new_line
        reader, smallest, digest_of = self._reader, -1, xxhash.xxh3_128_digest
        copied = self._copied
        told = (
            reader.gists(split(pieces))
            if isinstance(reader, Quick)
            else map(self._told, reader.records(pieces, index))
        )
        # Everything here is done a million times.
        for gist, key, line, at, length, is_ended in told:
            if len(line) < length:
                digest = self._known.digest(Record(index, at, bytes(line), length, is_ended))
            else:
                digest = b"" if key else digest_of(line)
            kind, calls, size = gist.kind, gist.calls, length + is_ended
            _count(shares, kind, 1, size)
            days.add(size, gist.time)
            is_copy = not is_new(digest, key)
            inside = copied(Record(index, at, bytes(line), length, is_ended)) if copied else None
            if is_copy and not (inside and "parent" in inside):
                _count_copies(counts, {"lines": size})
            elif inside:
                _count_copies(counts, inside)
            if calls:
                self._call(calls)
            tool = None
            if kind == "tool results":
                tool = self._calls.get(hash(gist.result), UNKNOWN_TOOL)
                _count(counts.tools, tool, 1, size)
            if size > smallest:
                counts.keep(LargeLine(self._session, index, start + at, at, size, kind, tool))
                if len(counts.largest) == LARGEST:
                    smallest = counts.largest[-1].bytes
        self.counts.add(counts)
        self._days.extend(days)
        return sum(share[0] for share in shares.values()), sum(
            share[1] for share in shares.values()
        )

    def _told(self, record: Record) -> Told:
        """Tell what a record's view says."""
        gist, key = view.gist_of(self._reader.view(record)), self._reader.key(record)
        return gist, key, record.line, record.offset, record.size, record.is_ended

    def growth(self) -> tuple[Day, ...]:
        """Return the days of what was counted."""
        return self._days.all()

    def _call(self, made: tuple[tuple[str, str], ...]) -> None:
        calls, tools = self._calls, self._tools
        for identity, name in made:
            if not identity or len(identity) > _LONGEST:
                continue
            tool = name[:_LONGEST]
            if len(tools) < TOOLS:
                tools.setdefault(tool, tool)
            call = hash(identity)
            calls[call] = tools.get(tool, OTHER_TOOLS)
            calls.move_to_end(call)  # the last use counts: it is dropped last
            if len(calls) > CALLS:
                calls.popitem(last=False)


# ── by day ────────────────────────────────────────────────────────────────────────────────────────

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
