"""Which lines before its last compaction Claude Code still needs to resume a session.

Rule: when the real client resumes `carried lines · boundary · tail`, it must send the same request
as from the whole file. `carried_rows` says which rows outlive a compaction; the rest was found by
comparing the requests of 2.0.28 to 2.1.330, and the tests with real clients hold it. Lines are
carried unchanged, in the order of the history, and nothing after the cut is ever dropped. If the
request could differ, the plan says why and must not be carried out. Memory is bounded by `ROOM`,
whatever the lines are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from sys import getsizeof
from typing import TYPE_CHECKING, Final

from sessrotate.clients.claude.carried_rows import (
    CLEARED,
    FILE_HISTORY,
    LAST_WINS,
    TRANSCRIPT,
    Needed,
    preserved,
)
from sessrotate.clients.claude.rows import compaction_of
from sessrotate.clients.claude.survey import Survey
from sessrotate.model import Span
from sessrotate.parsing import json_line, lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sessrotate.clients.claude.rows import Name, Row
    from sessrotate.system.source import Source

    Older = Iterable[tuple[int, Source | None]]
    """The sealed segments of a session and their numbers, the newest first; None for one that
    cannot be looked into. Each is open until the next is asked for."""

SMALL_FILE: Final = 5 * 1024 * 1024
"""Bytes up to which 2.1.80 and later read a session from its beginning, branches and all."""

ROOM: Final = 20 * 1024 * 1024
"""Bytes that a plan may hold of what it found: about 130,000 rows behind the cut, or 60,000 lines
to carry. A session has thousands of either at most."""

_PER_NAME: Final = 120
_PER_LINE: Final = 350
"""What CPython takes for a uuid, or for a line to carry, with its share of sets and lists."""

_PRESERVED: Final = "preserved by the compaction"
_CONTINUED: Final = "continued by a row after the compaction"
_HISTORY_OF_KEPT: Final = "file history of a message that stays"


@dataclass(frozen=True, slots=True)
class Carried:
    """A line from before the cut that goes along, without its newline, and why.

    `segment` is the number of the sealed segment that it stands in, None for the live file.
    `reason` says what the line is, as people read it.
    """

    span: Span
    reason: str
    segment: int | None = None


@dataclass(frozen=True, slots=True)
class LivePlan:
    """The live tail of a session: everything from `cut` on, and what goes before it.

    With `refusals` it must not be carried out: a resume might not be the same.
    """

    cut: int
    carried: tuple[Carried, ...]
    refusals: tuple[str, ...]


class _RefusedError(Exception):
    """Why there can be no plan at all; never leaves this module."""


@dataclass(slots=True)
class _Needs(Needed):
    """Which rows from before the cut are needed, and which of them were found: their uuids."""

    found: dict[str, Carried] = field(default_factory=dict)
    hidden: int | None = None
    """The sealed segment that may have a row that is needed, but cannot be looked into."""
    room: int = field(default_factory=lambda: ROOM)

    def take(self, size: int) -> None:
        """Take so many bytes of the room; raise `_RefusedError` when there are no more."""
        self.room -= size
        if self.room < 0:
            raise _RefusedError("A resume needs more of the session than can be kept in memory.")


def plan(
    source: Source,
    boundary: Span,
    end: int,
    history: int | None = None,
    older: Older = (),
) -> LivePlan:
    """Return what a resume needs of the session `source` up to `end`, cut at `boundary`.

    `boundary` is the last compaction's line, without its newline; `history` is how many bytes the
    session would have if nothing of it were archived, by default `end`; what is archived is
    `older`. Reads the tail once, history forwards once, and backwards only as far as the last row
    that is needed: mostly that is not as far as the archive.
    """
    try:
        return _plan(source, boundary, end, end if history is None else history, older)
    except _RefusedError as refusal:
        return LivePlan(boundary.start, (), (str(refusal),))


def _plan(source: Source, boundary: Span, end: int, history: int, older: Older) -> LivePlan:
    survey = Survey(source, lines.WINDOW)
    needs, is_plain = _preserved(source, boundary)
    tail, parents = _continued(survey, Span(boundary.start, end), needs)
    preserved_too = parents & (needs.listed | needs.walked.keys())
    needs.chained |= parents
    missing = needs.wanted()
    _look_back(survey, boundary.start, needs, missing)
    archived = list(_look_further(older, needs, missing)) if missing & _wanted(needs) else []
    refusals = list(_refusals(needs, parents, tail))
    if is_plain and parents - preserved_too and history > SMALL_FILE:
        refusals.append(
            "A row after the last compaction continues one from before it, and clients from "
            "2.1.80 on have already lost that branch in a file of this size."
        )
    # A torn line further on stays what it was: the last one, and the client's to judge.
    if boundary.end >= end:
        refusals.append("The last line is not complete.")
    others, repeated = _look_through(survey, boundary.start, needs, tail)
    if repeated:
        refusals.append(f"{repeated:,} rows stand both before and after the last compaction.")
    carried = {_order(entry): entry for entry in (*archived, *others, *needs.found.values())}
    return LivePlan(
        boundary.start,
        tuple(carried[order] for order in sorted(carried)),
        tuple(refusals),
    )


def _order(entry: Carried) -> tuple[bool, int, int]:
    return entry.segment is None, entry.segment or 0, entry.span.start


def _continued(survey: Survey, span: Span, needs: _Needs) -> tuple[set[str], set[str]]:
    """Return the uuids of the rows in `span`, and those that they continue and that are not."""
    uuids: set[str] = set()
    parents: set[str] = set()
    for _, _, row in survey.forward(span):
        if row is None:
            continue
        uuid, parent = _name(row.uuid), _name(row.parent_uuid)
        if uuid is not None and uuid not in uuids:
            needs.take(_PER_NAME + len(uuid))
            uuids.add(uuid)
        # Mostly the parent came before, and need not be kept twice.
        if parent is not None and parent not in uuids and parent not in parents:
            needs.take(_PER_NAME + len(parent))
            parents.add(parent)
    return uuids, parents - uuids


def _name(uuid: str | None) -> str | None:
    """Return what names a row; a text that is longer than any name is none."""
    return None if uuid is None or len(uuid) > json_line.MAX_TEXT else uuid


def _preserved(source: Source, boundary: Span) -> tuple[_Needs, bool]:
    """Return what the compaction needs of the rows before it, and whether that is nothing."""
    if not json_line.is_small(boundary.size):
        raise _RefusedError("The last compaction's record is too long to read.")
    compaction = compaction_of(source.read_at(boundary.start, boundary.size))
    if compaction is None:
        raise _RefusedError("The last compaction's record cannot be read.")
    told = preserved(compaction)
    needs = _Needs(told.listed, told.required, told.walked)
    return needs, not needs.wanted()


def _look_back(
    survey: Survey, end: int, needs: _Needs, missing: set[str], segment: int | None = None
) -> None:
    """Find the `missing` rows, last copy first: a row's parent stands before it."""
    for start, to, row in survey.backward(end - 1) if missing else ():
        uuid = None if row is None else _name(row.uuid)
        if row is not None and uuid is not None and uuid in missing:
            missing.remove(uuid)
            parent = _name(row.parent_uuid)
            needs.take(_PER_LINE + _PER_NAME + len(uuid) + len(parent or ""))
            is_preserved = uuid in needs.listed or uuid in needs.walked
            reason = _PRESERVED if is_preserved else _CONTINUED
            needs.found[uuid] = Carried(Span(start, to), reason, segment)
            needed = needs.follow(uuid, parent)
            if needed is not None and needed not in needs.found:
                missing.add(needed)
            if not missing:
                return


def _wanted(needs: _Needs) -> set[str]:
    """Return the rows without which there is no plan: of `allUuids` one may be nowhere."""
    return needs.chained | needs.required | needs.walked.keys()


def _look_further(older: Older, needs: _Needs, missing: set[str]) -> Iterator[Carried]:
    """Find in the archive what is still `missing`; yield the file history that belongs to it.

    So it is when a user rewinds, in a client that runs, to a prompt that has been archived since.
    """
    for index, source in older:
        if source is None:
            needs.hidden = index
            return
        survey, end, known = Survey(source, lines.WINDOW), source.size(), set(needs.found)
        _look_back(survey, end, needs, missing, index)
        found = needs.found.keys() - known
        for start, to, row in survey.forward(Span(0, end if found else 0)):
            if row is None or row.type not in FILE_HISTORY:
                continue
            if _name(row.message_id) in found:
                needs.take(_PER_LINE)
                yield Carried(Span(start, to), _HISTORY_OF_KEPT, index)
        if not missing & _wanted(needs):
            return


def _refusals(needs: _Needs, parents: set[str], tail: set[str]) -> Iterator[str]:
    # A fork of 2.1.330 writes preserved rows behind the boundary that lists them.
    if needs.hidden is not None:
        yield (
            f"A row that a resume needs may be in segment {needs.hidden}, which is not there or "
            "cannot be looked into."
        )
    if needs.required - set(needs.found) - tail:
        yield "A row that the last compaction preserved is missing."
    if any(head not in needs.found for head in needs.walked.values()):
        yield "The rows that the last compaction preserved do not form a chain."
    if parents - set(needs.found):
        yield "A row after the last compaction continues one that is nowhere in the file."


def _look_through(
    survey: Survey, end: int, needs: _Needs, tail: set[str]
) -> tuple[list[Carried], int]:
    """Return the metadata lines to carry, and how many rows of history the tail repeats."""
    always: list[Carried] = []
    last: dict[tuple[object, ...], Span] = {}
    repeated = 0
    kept = tail | needs.found.keys()
    for start, to, row in survey.forward(Span(0, end)):
        if row is not None and row.type in TRANSCRIPT:
            # Almost all rows. A uuid that is longer than any name is not in the tail.
            if row.uuid in tail:
                repeated += 1
        elif row is not None and (key := _key(row)) is not None:
            if key not in last:
                needs.take(_PER_LINE + sum(map(getsizeof, key)))
            last[key] = Span(start, to)
        elif (reason := _reason(row, kept)) is not None:
            needs.take(_PER_LINE)
            always.append(Carried(Span(start, to), reason))
    newest = [
        Carried(span, "the current setting of its kind (title, mode, …)") for span in last.values()
    ]
    return [*always, *newest], repeated


def _key(row: Row) -> tuple[object, ...] | None:
    """Return what the last row is wanted of, or None if every row of its type is."""
    parts = LAST_WINS.get(row.type or "")
    return None if parts is None else (row.type, *(_short(part(row)) for part in parts))


def _short(value: Name) -> Name:
    """Return a part of a key; what is longer than a name is none."""
    if isinstance(value, str):
        return value if len(value) <= json_line.MAX_TEXT else None
    return value if value is None or abs(value) < 10**json_line.MAX_DIGITS else None


def _reason(row: Row | None, kept: set[str]) -> str | None:
    """Return why a line is carried of itself, or None if it is not."""
    if row is None:
        return "no record, which clients keep"
    if row.type in FILE_HISTORY:
        return _HISTORY_OF_KEPT if _name(row.message_id) in kept else None
    return None if row.type in CLEARED else "of a type that clients keep"
