"""What of a session Claude Code still needs of the lines before its last compaction.

Rule: equal means that the real client, resuming `carried lines · boundary · tail`, sends the same
request as from the whole file. Which rows outlive a compaction is in `claude_rows`; the rest was
found by comparing the requests of 2.0.28 to 2.1.330, and is held by tests/clients. Lines are
carried as they are, in the order of the history, and nothing after the cut is ever dropped. Where
equality cannot be had, the plan says why and must not be carried out. History is surveyed rather
than parsed: `claude_survey` says what that leaves out. Memory is bounded by `ROOM`, whatever the
lines are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final

from sessrotate.clients.claude.lasting import (
    CLEARED,
    FILE_HISTORY,
    LAST_WINS,
    TRANSCRIPT,
    preserved,
)
from sessrotate.clients.claude.survey import Survey, Unless
from sessrotate.model import Span
from sessrotate.parsing import json_line, lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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

_ROW: Final[json_line.Shape] = dict.fromkeys(
    (
        "type",
        "uuid",
        "parentUuid",
        "sessionId",
        "messageId",
        "leafUuid",
        "organizationUuid",
    )
)

_UUID: Final = b'"uuid"'
_MESSAGE: Final = b'"messageId"'
_NEVER: Final = Unless(_UUID, frozenset())
_HISTORY_OF_KEPT: Final = "it is the file history of a message that stays"


@dataclass(frozen=True, slots=True)
class Carried:
    """A line from before the cut that goes along, without its newline, and why.

    `segment` is the number of the sealed segment that it stands in, None for the live file.
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


class _Room:
    """Counts down what is left of `ROOM`."""

    def __init__(self) -> None:
        self._left = ROOM

    def take(self, size: int) -> None:
        """Take so many bytes; raise `_RefusedError` when there are no more."""
        self._left -= size
        if self._left < 0:
            raise _RefusedError("A resume needs more of the session than can be kept in memory.")


@dataclass(slots=True)
class _Needs:
    """Which rows from before the cut are needed, and which of them were found: their uuids."""

    preserved: set[bytes] = field(default_factory=set)
    required: set[bytes] = field(default_factory=set)
    chained: set[bytes] = field(default_factory=set)
    walked: dict[bytes, bytes] = field(default_factory=dict)
    """Rows of a preserved segment still to be found → the row that the walk ends with."""
    found: dict[bytes, Carried] = field(default_factory=dict)
    hidden: int | None = None
    """The sealed segment that may have a row that is needed, but cannot be looked into."""
    room: _Room = field(default_factory=_Room)


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
    survey = Survey(source, _ROW, lines.WINDOW)
    needs, is_plain = _preserved(source, boundary)
    tail, parents = _continued(survey, Span(boundary.start, end), needs.room)
    preserved_too = parents & (needs.preserved | set(needs.walked))
    needs.chained |= parents
    missing = needs.chained | needs.preserved | needs.walked.keys()
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


def _continued(survey: Survey, span: Span, room: _Room) -> tuple[set[bytes], set[bytes]]:
    """Return the uuids of the rows in `span`, and those that they continue and that are not."""
    uuids: set[bytes] = set()
    parents: set[bytes] = set()
    for _, row in survey.all(span):
        uuid, parent = _link(row or {}, "uuid"), _link(row or {}, "parentUuid")
        if uuid is not None and uuid not in uuids:
            room.take(_PER_NAME + len(uuid))
            uuids.add(uuid)
        # Mostly the parent came before, and need not be kept twice.
        if parent is not None and parent not in uuids and parent not in parents:
            room.take(_PER_NAME + len(parent))
            parents.add(parent)
    return uuids, parents - uuids


def _link(row: json_line.Values, name: str) -> bytes | None:
    """Return a value that names a row as the file spells it."""
    value = row.get(name)
    return value.encode() if isinstance(value, str) else None


def _preserved(source: Source, boundary: Span) -> tuple[_Needs, bool]:
    """Return what the compaction needs of the rows before it, and whether that is nothing."""
    if not json_line.is_small(boundary.size):
        raise _RefusedError("The last compaction's record is too long to read.")
    line = source.read_at(boundary.start, boundary.size)
    try:
        record: Any = json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):  # thousands of digits or levels, and a record all the same
        raise _RefusedError("The last compaction's record cannot be read.") from None
    told = preserved(record)
    needs = _Needs(preserved=_spelled(told.listed), required=_spelled(told.required))
    if told.ends is not None:
        head, tail = told.ends
        needs.walked = {_spelling(tail): _spelling(head)}
    return needs, not (needs.preserved or needs.walked)


def _spelled(uuids: Iterable[str]) -> set[bytes]:
    return {_spelling(uuid) for uuid in uuids}


def _spelling(uuid: str) -> bytes:
    # A lone surrogate is encoded as what no row is ever found by.
    return uuid.encode("utf-8", "surrogatepass")


def _look_back(
    survey: Survey, end: int, needs: _Needs, missing: set[bytes], segment: int | None = None
) -> None:
    """Find the `missing` rows, last copy first: a row's parent stands before it."""
    for span, row in survey.backward(end - 1, Unless(_UUID, missing)):
        uuid, parent = _link(row or {}, "uuid"), _link(row or {}, "parentUuid")
        if uuid is not None and uuid in missing:
            missing.remove(uuid)
            more = _found(needs, Carried(span, "", segment), uuid, parent)
            missing |= {uuid for uuid in more if uuid not in needs.found}


def _wanted(needs: _Needs) -> set[bytes]:
    """Return the rows without which there is no plan: of `allUuids` one may be nowhere."""
    return needs.chained | needs.required | needs.walked.keys()


def _look_further(older: Older, needs: _Needs, missing: set[bytes]) -> Iterator[Carried]:
    """Find in the archive what is still `missing`; yield the file history that belongs to it.

    So it is when a user rewinds, in a client that runs, to a prompt that has been archived since.
    """
    for index, source in older:
        if source is None:
            needs.hidden = index
            return
        survey, end, known = Survey(source, _ROW, lines.WINDOW), source.size(), set(needs.found)
        _look_back(survey, end, needs, missing, index)
        found = needs.found.keys() - known
        kinds = [*CLEARED, *TRANSCRIPT, *FILE_HISTORY] if found else []
        idle = {kind.encode(): _NEVER for kind in kinds}
        idle |= {kind.encode(): Unless(_MESSAGE, found) for kind in FILE_HISTORY}
        for span, row in survey.relevant(Span(0, end if found else 0), idle):
            kind = None if row is None else row.get("type")
            if kind in FILE_HISTORY and _link(row or {}, "messageId") in found:
                needs.room.take(_PER_LINE)
                yield Carried(span, _HISTORY_OF_KEPT, index)
        if not missing & _wanted(needs):
            return


def _found(needs: _Needs, found: Carried, uuid: bytes, parent: bytes | None) -> set[bytes]:
    """Note where a needed row is; return the rows that are needed because of it."""
    needs.room.take(_PER_LINE + _PER_NAME + len(uuid) + len(parent or b""))
    more: set[bytes] = set()
    walk_ends = needs.walked.get(uuid)
    if uuid in needs.chained:
        needs.found[uuid] = replace(found, reason="a row after the compaction continues it")
        if parent is not None:
            needs.chained.add(parent)
            more.add(parent)
    if uuid in needs.preserved or walk_ends is not None:
        needs.found[uuid] = replace(found, reason="the compaction preserved it")
        if walk_ends is not None and walk_ends != uuid and parent is not None:
            needs.walked[parent] = walk_ends
            more.add(parent)
    return more


def _refusals(needs: _Needs, parents: set[bytes], tail: set[bytes]) -> Iterator[str]:
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
    survey: Survey, end: int, needs: _Needs, tail: set[bytes]
) -> tuple[list[Carried], int]:
    """Return the metadata lines to carry, and how many rows of history the tail repeats."""
    always: list[Carried] = []
    last: dict[tuple[object, ...], Span] = {}
    repeated = 0
    kept = tail | needs.found.keys()
    idle = {
        kind.encode(): unless
        for kinds, unless in (
            (CLEARED, _NEVER),
            (TRANSCRIPT, Unless(_UUID, tail)),
            (FILE_HISTORY, Unless(_MESSAGE, kept)),
        )
        for kind in kinds
    }
    for span, row in survey.relevant(Span(0, end), idle):
        if (key := _key(row)) is not None:
            if key not in last:
                needs.room.take(_PER_LINE + sum(map(getsizeof, key)))
            last[key] = span
        elif (reason := _reason(row, kept)) is not None:
            needs.room.take(_PER_LINE)
            always.append(Carried(span, reason))
        elif row is not None and row.get("type") in TRANSCRIPT:
            repeated += _link(row, "uuid") in tail
    newest = [Carried(span, "it is the newest of its kind") for span in last.values()]
    return [*always, *newest], repeated


def _key(row: json_line.Values | None) -> tuple[object, ...] | None:
    """Return what the last row is wanted of, or None if every row of its type is."""
    names = LAST_WINS.get(str(row.get("type"))) if row is not None else None
    return tuple(row.get(name) for name in names) if names and row is not None else None


def _reason(row: json_line.Values | None, kept: set[bytes]) -> str | None:
    """Return why a line is carried of itself, or None if it is not."""
    if row is None:
        return "it is no record, and clients keep it"
    kind = row.get("type")
    if kind in FILE_HISTORY:
        is_kept = _link(row, "messageId") in kept
        return _HISTORY_OF_KEPT if is_kept else None
    return None if kind in CLEARED or kind in TRANSCRIPT else "clients keep records of its type"
