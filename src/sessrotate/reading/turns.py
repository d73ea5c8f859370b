"""Records in order → what is shown one after the other, tools together with what they gave. Pure.

Rule: nothing is dropped and nothing waits long. A call is held until its result comes, and no
longer than until the conversation goes on without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sessrotate.clients.view import ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sessrotate.clients.view import Image, Text, Thinking, Unknown, View
    from sessrotate.parsing.records import Record

    Item = tuple[Record, View | None]
    """A record and what it says."""

HELD: Final = 256
"""Calls without a result that are held at most: clients start a few at a time."""


@dataclass(frozen=True, slots=True)
class Said:
    """A block that is no tool's."""

    record: Record
    view: View
    block: Text | Thinking | Image | Unknown


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and its result; one of them is None where it is not there, or not next to it.

    `record` and `view` are those of the call, where there is one.
    """

    record: Record
    view: View
    call: ToolCall | None
    result: ToolResult | None


@dataclass(frozen=True, slots=True)
class Compaction:
    """A place where the client compacted the session."""

    record: Record
    view: View


@dataclass(frozen=True, slots=True)
class Unread:
    """A line of which nobody can tell what it says."""

    record: Record


Part = Said | Exchange | Compaction | Unread


def parts(items: Iterable[Item]) -> Iterator[Part]:
    """Yield what records say, block by block."""
    held: dict[str, Exchange] = {}
    for record, view in items:
        if view is None:
            if record.line.strip():
                yield Unread(record)
            continue
        if view.is_boundary:
            yield from _let_go(held)
            yield Compaction(record, view)
        for block in view.blocks if view.is_summary or not view.is_boundary else ():
            if isinstance(block, ToolCall):
                if block.id in held or len(held) >= HELD:
                    yield from _let_go(held)
                held[block.id] = Exchange(record, view, block, None)
            elif isinstance(block, ToolResult):
                asked = held.pop(block.id, Exchange(record, view, None, None))
                yield replace(asked, result=block)
            else:
                # An agent talks while the call that started it is still open.
                if not view.is_sidechain:
                    yield from _let_go(held)
                yield Said(record, view, block)
    yield from _let_go(held)


def _let_go(held: dict[str, Exchange]) -> Iterator[Exchange]:
    yield from held.values()
    held.clear()
