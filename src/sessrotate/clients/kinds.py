"""The kind of a line: talk, thinking, tools, pictures, or a client's own notes. Pure.

Rule: each line counts once, whole, under one kind. A message has the kind of most of its
characters, and on a tie the kind that comes first; a picture in a tool's result is a picture. A
line that is not a message has the kind of the client's word for it, and a line that nobody can read
is unknown. What a client writes beside a message (a tool's result once more, for its own display)
counts as part of that message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from sessrotate.clients.view import Block, Image, Text, Thinking, ToolCall, ToolResult, View
from sessrotate.clients.view import Kind as Speaker

if TYPE_CHECKING:
    from sessrotate.parsing.records import Record

    Told = tuple["Gist", bytes | None, bytes | memoryview, int, int, bool]
    """A record's gist and its key, and then its line (`records.Line`)."""
    Copied = Callable[[Record], Mapping["Copy", int]]
    """Tells of one record after the other how many bytes of it stood somewhere before, as what."""

Kind = Literal[
    "user text",
    "assistant text",
    "thinking",
    "tool calls",
    "tool results",
    "images",
    "attachments",
    "file-history",
    "progress",
    "compactions",
    "metadata",
    "unknown",
]
"""What a line mostly is."""

Copy = Literal["lines", "pictures", "history", "parent"]
"""What stands a second time: a whole line, a picture, what a compaction wrote again of the history,
or a line that the session took over from the one that it was forked from."""


class Gist(Struct, frozen=True, gc=False):
    """What is counted of one record.

    A Struct, because there are millions and a dataclass takes four times as long to make.

    `time` is ISO 8601 as the client wrote it. `calls` are the tools called, each with the id and
    the name, and `result` is the id of the call whose result this is, of several the first.
    """

    kind: Kind
    time: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    result: str | None = None


UNKNOWN: Final = Gist("unknown")

SAID: Final[Mapping[Speaker, Kind]] = {"user": "user text", "assistant": "assistant text"}
"""The kind of a text by its speaker, and of a message without blocks."""

_BEGINNINGS: Final[tuple[tuple[str, Kind], ...]] = (
    ("file-history", "file-history"),
    ("progress", "progress"),
    ("compact", "compactions"),
    ("", "metadata"),
)
"""Kinds of records outside the conversation, by how the client's word for them begins."""

_BLOCKS: Final[Mapping[type, Kind]] = {
    Thinking: "thinking",
    ToolCall: "tool calls",
    ToolResult: "tool results",
    Image: "images",
}

_RESULT: Final = "tool_result"
"""How types of blocks end that are results of a provider's own tools (`web_search_tool_result`)."""


def of_view(view: View | None) -> Gist:
    """Return the gist of a record by its view; the gist of one without a view is unknown."""
    if view is None:
        return UNKNOWN
    if view.kind not in SAID:
        return Gist(of_note(view.kind, view.type), view.time)
    results = (block.id for block in view.blocks if isinstance(block, ToolResult))
    return Gist(
        of_blocks(SAID[view.kind], view.blocks),
        view.time,
        tuple((block.id, block.name) for block in view.blocks if isinstance(block, ToolCall)),
        next(results, None),
    )


def of_note(speaker: Speaker, word: str) -> Kind:
    """Return the kind of a record that is no message, by the client's word for it."""
    if speaker == "attachment":
        return "attachments"
    if not word:
        return "unknown"
    return next(kind for beginning, kind in _BEGINNINGS if word.startswith(beginning))


def of_blocks(said: Kind, blocks: tuple[Block, ...]) -> Kind:
    """Return the kind of a message whose texts are `said`."""
    weights: dict[Kind, int] = {}
    for block in blocks:
        kind = _of_block(said, block)
        weights[kind] = weights.get(kind, 0) + _weight(block)
        for each in block.blocks if isinstance(block, ToolResult) else ():
            inner: Kind = "images" if isinstance(each, Image) else kind
            weights[inner] = weights.get(inner, 0) + _weight(each)
    return max(weights, key=lambda kind: weights[kind], default=said)


def _of_block(said: Kind, block: Block) -> Kind:
    if isinstance(block, Text):
        return said
    if type(block) in _BLOCKS:
        return _BLOCKS[type(block)]
    return "tool results" if getattr(block, "type", "").endswith(_RESULT) else "unknown"


def _weight(block: Block) -> int:
    match block:
        case Text(text) | Thinking(text):
            return len(text)
        case ToolCall():
            return _characters(block.arguments)
        case Image():
            return len(block.data) + len(block.address)
        case ToolResult():
            return 0
        case _:
            return _characters(block.value)


def _characters(value: Any) -> int:
    """Return how many characters the texts in a JSON value have together."""
    found, todo = 0, [value]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            found += len(each)
        elif isinstance(each, dict):
            todo += each.values()
        elif isinstance(each, list):
            todo += each
    return found
