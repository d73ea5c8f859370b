"""A part of a session: some of its turns, from one time to another, or from a place on. Pure.

Rule: whether a record is in it is told as the records come, in their order, and nothing is read
behind the last turn that is wanted.

A place is a segment's number and an offset in bytes of its body, whatever file has it by now. An
offset inside of a record stands for that record. Segments before the place are not opened, unless
the client's records repeat earlier ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from sessrotate import units
from sessrotate.clients import opaque
from sessrotate.clients.common import UUID
from sessrotate.clients.view import View, is_prompt
from sessrotate.errors import WrongUsageError, printable
from sessrotate.parsing import Record
from sessrotate.reading import BranchEdge

if TYPE_CHECKING:
    from sessrotate.parsing import Record
    from sessrotate.reading import Viewed
    from sessrotate.reading.session import Session

_TURNS: Final = re.compile(r"(\d{1,9})?(:)?(\d{1,9})?", re.ASCII)

T = TypeVar("T", "Viewed", "Viewed | BranchEdge")


class Turns(Struct, frozen=True):
    """The turns from number `first` to number `last`, both of them included; None is to the end.

    The first turn of what is read has number 1, and what stands before its prompt belongs to it.
    """

    first: int = 1
    last: int | None = None

    def __str__(self) -> str:
        if self.last == self.first:
            return f"turn {self.first:,}"
        end = "on" if self.last is None else f"to {self.last:,}"
        return f"turns {self.first:,} {end}"


class Part(Struct, frozen=True):
    """What is wanted of a session: `turns`, and what was written from `since` to `until`.

    Those are moments or the uuids of records, and are themselves included.
    """

    turns: Turns | None = None
    since: units.Moment | str | None = None
    until: units.Moment | str | None = None

    @property
    def is_all(self) -> bool:
        """Whether that is everything."""
        return self == ALL


ALL: Final = Part()


# ── what is typed ────────────────────────────────────────────────────────────────────────────


def turns(text: str) -> Turns:
    """Return the turns that people name: `3:7`, `3:`, `:7` or `3`.

    Raises WrongUsageError if the text names none.
    """
    found = _TURNS.fullmatch(text.strip())
    first, to, last = (None, None, None) if found is None else found.groups()
    begin = int(first or 1)
    end = int(last) if last else (None if to else begin)
    if not (first or last) or not begin or (end is not None and end < begin):
        raise WrongUsageError(
            f"{printable(text)} does not name turns: 3:7 means those from number 3 to 7, 3: all "
            "from number 3 on, and :7 the first seven."
        )
    return Turns(begin, end)


def limit(text: str, now: datetime) -> units.Moment | str:
    """Return what a value of --since or --until means: a moment, or the uuid of a record as text.

    Raises WrongUsageError if it is neither a uuid nor what `units.moment` understands.
    """
    text = text.strip()
    if UUID.fullmatch(text):
        return text.lower()
    found = units.moment(text, now)
    if found is None:
        raise WrongUsageError(
            f"{printable(text)} is not a time ({units.MOMENTS}), an age ({units.AGES}) or the "
            "uuid of a record."
        )
    return found


def of(turns_text: str | None, since: str | None, until: str | None) -> Part:
    """Return the part that people name. Raises WrongUsageError as `turns` and `limit` do."""
    now = datetime.now(UTC)
    return Part(
        None if turns_text is None else turns(turns_text),
        None if since is None else limit(since, now),
        None if until is None else limit(until, now),
    )


# ── choosing ─────────────────────────────────────────────────────────────────────────────────


class Within:
    """The items of a session that are in a part of it; `before` is how many prompts come earlier.

    That is known when the first item has come. `counts` tells whether a prompt begins a turn: one
    of a branch that was rewound begins none, nor does a copy (`turns_of`).
    """

    def __init__(self, part: Part, counts: Callable[[Record], bool] = lambda _record: True) -> None:
        self._part: Final = part
        self._counts: Final = counts
        self._uncounted: Final = set[tuple[int, int]]()
        self.before = 0
        self.is_empty = True
        """Whether nothing is in the part, as far as it has come."""

    def is_turn(self, record: Record) -> bool:
        """Tell whether a prompt that has come begins a turn."""
        return (record.segment, record.offset) not in self._uncounted

    def of(self, items: Iterable[T]) -> Iterator[T]:
        """Yield those in the part. Raises WrongUsageError, at the end, if a record is nowhere.

        A record without a time counts with the last dated one before it, and the edge of a branch
        with the record before it.
        """
        if self._part.is_all:
            yield from self._all(items)
            return
        limits, number, is_in = _Limits(self._part), 0, False
        turns = self._part.turns or Turns()
        for item in items:
            if isinstance(item, BranchEdge):
                if is_in:
                    yield item
                continue
            record, view = item
            begins = self._begins(record, view)
            number += begins
            if turns.last is not None and number > turns.last:
                break
            is_in = limits.takes(view) and turns.first <= max(number, 1)
            if is_in:
                if self.is_empty:
                    self.before, self.is_empty = number - begins, False
                yield item
            if limits.is_over:
                break
        limits.check()

    def _all(self, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            self.is_empty = False
            if not isinstance(item, BranchEdge):
                self._begins(*item)
            yield item
            del item

    def _begins(self, record: Record, view: View | None) -> bool:
        if view is None or not is_prompt(view):
            return False
        counts = self._counts(record)
        if not counts:
            self._uncounted.add((record.segment, record.offset))
        return counts


class _Limits:
    """Whether records that come in their order are between two moments, or records."""

    def __init__(self, part: Part) -> None:
        since, until = part.since, part.until
        self._since, self._until = since, until
        self._begin = since.begin if isinstance(since, units.Moment) else None
        self._end = until.end if isinstance(until, units.Moment) else None
        self._is_begun = not isinstance(since, str)
        self._now: datetime | None = None
        self.is_over = False
        """Whether the record that is the last one has come."""

    def takes(self, view: View | None) -> bool:
        if view is not None:
            self._now = time_of(view) or self._now
            self._is_begun = self._is_begun or view.uuid == self._since
            self.is_over = isinstance(self._until, str) and view.uuid == self._until
        now, begin, end = self._now, self._begin, self._end
        is_late = begin is None or (now is not None and now >= begin)
        return self._is_begun and is_late and (end is None or (now is not None and now < end))

    def check(self) -> None:
        """Raise WrongUsageError if a record that is a limit has not come."""
        for limit, is_met in ((self._since, self._is_begun), (self._until, self.is_over)):
            if isinstance(limit, str) and not is_met:
                raise WrongUsageError(
                    f"Record {limit} is not in the part that was searched, or another option "
                    "excludes it. `read --history` searches the whole session, and `export "
                    "--all-branches` rewound branches, too."
                )


def time_of(view: View) -> datetime | None:
    """Return when a record was written, None where it does not say."""
    try:
        found = datetime.fromisoformat(view.time or "")
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def turns_of(session: Session) -> Callable[[Record], bool]:
    """Return what tells whether a prompt of the history begins a turn, as they come in order.

    None of a branch that was rewound does, nor a copy of an earlier one. The history is read once.
    """
    is_rewound, seen = session.reader.rewound(session), set[bytes]()

    def counts(record: Record) -> bool:
        key = session.key(record)
        if is_rewound(record) or key in seen:
            return False
        if key is not None:
            seen.add(key)
        return True

    return counts


# ── from a place on ───────────────────────────────────────────────────────────────────────────────

_TYPED_PLACE: Final = re.compile(r"(\d{1,9}):(\d{1,15})(?::(\d{1,15}))?", re.ASCII)


class Spot(Struct, frozen=True):
    """The byte at `offset` of the body of a segment.

    With a `character`, it is that one of what the record there says (`select.text_of`), and only
    that record.
    """

    segment: int
    offset: int
    character: int | None = None

    def is_in(self, record: Record) -> bool:
        """Tell whether a record has this byte, its newline included."""
        begins = record.offset <= self.offset <= record.offset + record.size
        return record.segment == self.segment and begins


def spot(text: str) -> Spot:
    """Return the place that people name. Raises WrongUsageError if the text is none."""
    found = _TYPED_PLACE.fullmatch(text.strip())
    if found is None:
        raise WrongUsageError(
            f"{printable(text)} is not a place such as 3:120394, a segment and an offset: take it "
            "from what `search` prints."
        )
    return Spot(int(found[1]), int(found[2]), None if found[3] is None else int(found[3]))


def from_place(session: Session, place: Spot, *, are_lines: bool = False) -> Iterator[Record]:
    """Yield the records of the history from the one at a place on, or only that one.

    They come as people read them (`Session.said`), or with `are_lines` as they are in the file.
    Raises WrongUsageError if no record is there.
    """
    is_plain = are_lines or session.reader.said is opaque.said
    session.segment(place.segment)
    numbers = [
        info.index for info in session.segments if not is_plain or info.index >= place.segment
    ]
    every = chain.from_iterable(map(session.segment, numbers))
    found = every if are_lines else session.said(every)
    is_begun = False
    for record in found:
        if not is_begun:
            if is_plain and record.segment > place.segment:
                break
            is_begun = place.is_in(record) and not record.is_carried
        if is_begun:
            yield record
            if place.character is not None:
                return
    if not is_begun:
        raise WrongUsageError(
            f"There is no record at {place.segment}:{place.offset}: take the place from what "
            "`search` prints."
        )
