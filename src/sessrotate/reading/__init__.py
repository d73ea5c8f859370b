"""An open session: its records, a selection of them, and the whole history stitched together.

Promise: the history reads the same wherever its parts are by now. In comes what holds a session
(live file, archive, folder, single file); out come records and bytes, in order; and what records
say, block by block, each tool call together with its result.
May import `find`, `archive` and below, never what changes a live file.

Rule: segments that are not asked for are never opened. Nothing that a record says is dropped, and
nothing waits long: a call is held until its result comes, and no longer than until the conversation
goes on without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, overload

from msgspec import Struct
from msgspec.structs import replace

from sessrotate.clients.view import Image, Text, Thinking, ToolCall, ToolResult, Unknown, View

if TYPE_CHECKING:
    from sessrotate.parsing import Record

    Viewed = tuple[Record, View | None]
    """A record and what it says, None where nobody can tell."""


HELD: Final = 256
"""How many calls without a result are held at most; clients start a few at a time."""


class Utterance(Struct, frozen=True):
    """A block that was said, thought or shown: one that is no tool's."""

    record: Record
    view: View
    block: Text | Thinking | Image | Unknown


class ToolUse(Struct, frozen=True):
    """A tool call and its result; one of them is None where it is missing or not near the other.

    `record` and `view` are those of the call, where there is one.
    """

    record: Record
    view: View
    call: ToolCall | None
    result: ToolResult | None


class Compaction(Struct, frozen=True):
    """A place where the client compacted the session."""

    record: Record
    view: View


class UnreadableLine(Struct, frozen=True):
    """A line of which nobody can tell what it says: it is no JSON, or over 8 MiB."""

    record: Record


Item = Utterance | ToolUse | Compaction | UnreadableLine
"""What is shown one after the other."""


class BranchEdge(Struct, frozen=True):
    """Where a branch that was rewound begins or ends, or where all of it was left out.

    `left_out` is how many records were; 0 if they are shown.
    """

    is_end: bool
    left_out: int = 0


@overload
def paired(items: Iterable[Viewed]) -> Iterator[Item]: ...


@overload
def paired(items: Iterable[Viewed | BranchEdge]) -> Iterator[Item | BranchEdge]: ...


def paired(items: Iterable[Viewed | BranchEdge]) -> Iterator[Item | BranchEdge]:
    """Yield what records say, block by block, in the order of the records.

    A call comes where its result stands, or before what follows once nothing answered it.
    """
    held: dict[str, ToolUse] = {}
    for item in items:
        if isinstance(item, BranchEdge):
            yield from _let_go(held)
            yield item
        else:
            yield from _said(*item, held)
    yield from _let_go(held)


def _said(record: Record, view: View | None, held: dict[str, ToolUse]) -> Iterator[Item]:
    """Yield what a record says; `held` are the calls that wait for their results."""
    if view is None:
        if record.line.strip():
            yield UnreadableLine(record)
        return
    if view.is_boundary:
        yield from _let_go(held)
        yield Compaction(record, view)
    for block in view.blocks if view.is_summary or not view.is_boundary else ():
        if isinstance(block, ToolCall):
            if block.id in held or len(held) >= HELD:
                yield from _let_go(held)
            held[block.id] = ToolUse(record, view, block, None)
        elif isinstance(block, ToolResult):
            asked = held.pop(block.id, ToolUse(record, view, None, None))
            yield replace(asked, result=block)
        else:
            # An agent talks while the call that started it is still open.
            if not view.is_sidechain:
                yield from _let_go(held)
            yield Utterance(record, view, block)


def _let_go(held: dict[str, ToolUse]) -> Iterator[ToolUse]:
    yield from held.values()
    held.clear()
