"""What of a session Claude Code still needs of the lines before its last compaction.

Rule: equal means that the real client, resuming `carried lines · boundary · tail`, sends the same
request as from the whole file. The classes of rows are those of the clean-up that 2.1.330 itself
contains; the rest was found by comparing the requests of 2.0.28 to 2.1.330, and is held by
tests/clients/test_contract.py. Lines are carried as they are, in file order, and nothing after
the cut is ever dropped. Where equality cannot be had, the plan says why and must not be carried
out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sessrotate import jsonline
from sessrotate.model import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.source import Source

SMALL_FILE: Final = 5 * 1024 * 1024
"""Bytes up to which 2.1.80 and later read a session from its beginning, branches and all."""

HEADER_TYPE: Final = "segment_header"

TRANSCRIPT: Final = frozenset({"user", "assistant", "system", "attachment"})
"""Rows of the conversation: before the cut they matter only if a row behind it needs them."""

CLEARED: Final = frozenset(
    {
        "api-request",
        "api-request-blob",
        "api-request-resumed",
        "api-request-shape",
        "continued-in",
        "host-row",
        "last-prompt",
        "progress",
        "resume-head-vouch",
        HEADER_TYPE,
    }
)
"""Rows that a compaction makes void (2.1.330), and our own header."""

FILE_HISTORY: Final = frozenset({"file-history-delta", "file-history-snapshot"})
"""Void too, but for those of a message that stays: `/rewind` restores code by them."""

_LAST: Final = ("type", "sessionId")
LAST_WINS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            "agent-color",
            "agent-name",
            "agent-setting",
            "ai-title",
            "artifact-autoreact-ledger",
            "atis-latch",
            "attribution-snapshot",
            "bridge-session",
            "cost-state",
            "custom-title",
            "derived-from",
            "dev-mods",
            "ended-by-model",
            "history-suppression",
            "isolation-latch",
            "mode",
            "observer-ref",
            "permission-mode",
            "pr-link",
            "queue-operation",
            "relocated",
            "repl-mode",
            "session-owner",
            "tag",
            "tools-used",
            "worktree-state",
        ),
        _LAST,
    ),
    "summary": ("type", "leafUuid"),
    "hybrid-organization": (*_LAST, "organizationUuid"),
}
"""Metadata of which the client takes the last of each key (2.1.330); the key's fields."""

_ROW: Final[jsonline.Shape] = dict.fromkeys(
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


@dataclass(frozen=True, slots=True)
class Carried:
    """A line from before the cut that goes along, without its newline, and why."""

    span: Span
    reason: str


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
class _Needs:
    """Which rows from before the cut are needed, and which of them were found."""

    preserved: set[str] = field(default_factory=set)
    required: set[str] = field(default_factory=set)
    chained: set[str] = field(default_factory=set)
    walked: dict[str, str] = field(default_factory=dict)
    """Rows of a preserved segment still to be found → the row that the walk ends with."""
    found: dict[str, Carried] = field(default_factory=dict)


def plan(source: Source, boundary: Span, end: int) -> LivePlan:
    """Return what a resume needs of the session `source` up to `end`, cut at `boundary`.

    `boundary` is the last compaction's line, without its newline. Reads the tail once, history
    forwards once, and backwards only as far as the last row that is needed.
    """
    try:
        return _plan(source, boundary, end)
    except _RefusedError as refusal:
        return LivePlan(boundary.start, (), (str(refusal),))


def _plan(source: Source, boundary: Span, end: int) -> LivePlan:
    tail: set[str] = set()
    parents: set[str] = set()
    for _, row in _rows(source, Span(boundary.start, end)):
        tail |= _texts([(row or {}).get("uuid")])
        parents |= _texts([(row or {}).get("parentUuid")])
    parents -= tail
    needs, is_plain = _preserved(source, boundary)
    preserved_too = parents & (needs.preserved | set(needs.walked))
    needs.chained |= parents
    _look_back(source, boundary.start, needs)
    refusals = list(_refusals(needs, parents, tail))
    if is_plain and parents - preserved_too and end > SMALL_FILE:
        refusals.append(
            "A row after the last compaction continues one from before it, and clients from "
            "2.1.80 on have already lost that branch in a file of this size."
        )
    # A torn line further on stays what it was: the last one, and the client's to judge.
    if boundary.end >= end:
        refusals.append("The last line is not complete.")
    others, repeated = _look_through(source, boundary.start, set(needs.found) | tail, tail)
    if repeated:
        refusals.append(f"{repeated:,} rows stand both before and after the last compaction.")
    carried = {entry.span.start: entry for entry in (*others, *needs.found.values())}
    return LivePlan(
        boundary.start,
        tuple(carried[start] for start in sorted(carried)),
        tuple(refusals),
    )


def _rows(source: Source, span: Span) -> Iterator[tuple[Span, jsonline.Values | None]]:
    start = span.start
    while start < span.end:
        line = Span(start, source.line_end(start, span.end))
        if line.size:
            yield line, jsonline.values(source.pieces(line), line.size, _ROW)
        start = line.end + 1


def _rows_backward(source: Source, end: int) -> Iterator[tuple[Span, jsonline.Values]]:
    while end > 0:
        start = source.line_start(end)
        line = Span(start, end)
        row = jsonline.values(source.pieces(line), line.size, _ROW) if line.size else None
        if row is not None:
            yield line, row
        end = start - 1


def _preserved(source: Source, boundary: Span) -> tuple[_Needs, bool]:
    """Return what a compaction record says it needs of the rows before it, if anything.

    `preservedMessages.uuids` are needed (2.1.330 relinks all or none); of `allUuids` one may be
    in no file. Only where there is no list the segment is walked from its tail to its head.
    """
    if not jsonline.is_small(boundary.size):
        raise _RefusedError("The last compaction's record is too long to read.")
    line = source.read_at(boundary.start, boundary.size)
    try:
        record: Any = json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):  # thousands of digits or levels, and a record all the same
        raise _RefusedError("The last compaction's record cannot be read.") from None
    needs = _Needs()
    metadata = record.get("compactMetadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    messages, segment = metadata.get("preservedMessages"), metadata.get("preservedSegment")
    if isinstance(messages, dict):
        needs.required = _texts(messages.get("uuids"))
        needs.preserved = needs.required | _texts(messages.get("allUuids"))
    elif isinstance(segment, dict):
        tail, head = segment.get("tailUuid"), segment.get("headUuid")
        if isinstance(tail, str) and isinstance(head, str):
            needs.walked = {tail: head}
    return needs, not (needs.preserved or needs.walked)


def _texts(value: object) -> set[str]:
    return {text for text in value if isinstance(text, str)} if isinstance(value, list) else set()


def _look_back(source: Source, end: int, needs: _Needs) -> None:
    """Find the needed rows, last copy first: a row's parent stands before it."""
    for span, row in _rows_backward(source, end - 1):
        if not (needs.chained | needs.preserved | set(needs.walked)) - set(needs.found):
            return
        uuid, parent = row.get("uuid"), row.get("parentUuid")
        if not isinstance(uuid, str) or uuid in needs.found:
            continue
        chained, walk_ends = uuid in needs.chained, needs.walked.get(uuid)
        if chained:
            needs.found[uuid] = Carried(span, "a row after the compaction continues it")
            if isinstance(parent, str):
                needs.chained.add(parent)
        if uuid in needs.preserved or walk_ends is not None:
            needs.found[uuid] = Carried(span, "the compaction preserved it")
            if walk_ends not in (None, uuid) and isinstance(parent, str):
                needs.walked[parent] = str(walk_ends)


def _refusals(needs: _Needs, parents: set[str], tail: set[str]) -> Iterator[str]:
    # A fork of 2.1.330 writes preserved rows behind the boundary that lists them.
    if needs.required - set(needs.found) - tail:
        yield "A row that the last compaction preserved is missing."
    if any(head not in needs.found for head in needs.walked.values()):
        yield "The rows that the last compaction preserved do not form a chain."
    if parents - set(needs.found):
        yield "A row after the last compaction continues one that is nowhere in the file."


def _look_through(
    source: Source, end: int, kept: set[str], tail: set[str]
) -> tuple[list[Carried], int]:
    """Return the metadata lines to carry, and how many rows of history the tail repeats."""
    always: list[Carried] = []
    last: dict[tuple[object, ...], Span] = {}
    repeated = 0
    for span, row in _rows(source, Span(0, end)):
        if row is None:
            always.append(Carried(span, "it is no record, and clients keep it"))
            continue
        kind = row.get("type")
        if kind in TRANSCRIPT:
            repeated += row.get("uuid") in tail
        elif kind in FILE_HISTORY:
            if row.get("messageId") in kept:
                always.append(Carried(span, "it is the file history of a message that stays"))
        elif isinstance(kind, str) and kind in LAST_WINS:
            last[tuple(row.get(name) for name in LAST_WINS[kind])] = span
        elif kind not in CLEARED:
            always.append(Carried(span, "clients keep records of its type"))
    newest = [Carried(span, "it is the newest of its kind") for span in last.values()]
    return [*always, *newest], repeated
