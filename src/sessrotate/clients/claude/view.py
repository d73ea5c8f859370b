"""What the rows of a Claude Code session say, as `view` has it for all clients.

Rule: nothing a row holds is an error. What has another shape than clients write (2.0.28 to
2.1.330) is shown as `Unknown` or left out, and a line that is no row has no view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sessrotate.clients.claude.live import row_of, text
from sessrotate.clients.view import (
    Block,
    Image,
    Kind,
    Text,
    Thinking,
    Tokens,
    ToolCall,
    ToolResult,
    Unknown,
    View,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessrotate.clients.claude.live import Row
    from sessrotate.parsing.records import Record

    Readers = dict[str, Callable[[Row], Block]]

KINDS: Final[dict[str, Kind]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "attachment": "attachment",
}


def view(record: Record) -> View | None:
    """Return what a record says, None if it is no JSON object or too long to be held."""
    row = row_of(record)
    if row is None:
        return None
    kind = KINDS.get(text(row, "type") or "", "other")
    message = row.get("message")
    message = message if isinstance(message, dict) else {}
    subtype = text(row, "subtype")
    return View(
        kind=kind,
        type=subtype or text(row, "type") or "",
        uuid=text(row, "uuid"),
        parent=text(row, "parentUuid"),
        time=text(row, "timestamp"),
        blocks=_BLOCKS[kind](row, message),
        model=text(message, "model"),
        tokens=_tokens(message.get("usage")),
        message=text(message, "id"),
        is_meta=row.get("isMeta") is True,
        is_sidechain=row.get("isSidechain") is True,
        is_boundary=kind == "system" and subtype == "compact_boundary",
        is_summary=row.get("isCompactSummary") is True,
        agent=text(row, "agentId"),
    )


def _message(_row: Row, message: Row) -> tuple[Block, ...]:
    return _content(message.get("content"))


def _system(row: Row, _message: Row) -> tuple[Block, ...]:
    return _content(row.get("content"))


def _attachment(row: Row, _message: Row) -> tuple[Block, ...]:
    """Return what the client told the model of an attachment, or the attachment itself.

    `rendered` is what 2.1.330 keeps of it; older clients only the attachment.
    """
    rendered = row.get("rendered")
    if isinstance(rendered, list):
        return tuple(block for each in rendered for block in _content(_field(each, "content")))
    value = row.get("attachment")
    return (Unknown(text(value, "type") or "" if isinstance(value, dict) else "", value),)


def _other(_row: Row, _message: Row) -> tuple[Block, ...]:
    return ()


_BLOCKS: Final[dict[Kind, Callable[[Row, Row], tuple[Block, ...]]]] = {
    "user": _message,
    "assistant": _message,
    "system": _system,
    "attachment": _attachment,
    "other": _other,
}


def _content(content: Any, readers: Readers | None = None) -> tuple[Block, ...]:
    """Return the blocks of a content, which is a text, a list of blocks, or nothing."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if not isinstance(content, list):
        return ()
    return tuple(_block(each, readers or _READERS) for each in content)


def _block(block: Any, readers: Readers) -> Block:
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict):
        return Unknown("", block)
    return readers.get(text(block, "type") or "", _unknown)(block)


def _unknown(block: Row) -> Block:
    return Unknown(text(block, "type") or "", block)


def _result(block: Row) -> Block:
    return ToolResult(
        text(block, "tool_use_id") or "",
        _content(block.get("content"), _IN_RESULT),
        is_error=block.get("is_error") is True,
    )


def _image(block: Row) -> Block:
    source = block.get("source")
    if not isinstance(source, dict):
        return _unknown(block)
    return Image(
        text(source, "media_type") or "", text(source, "data") or "", text(source, "url") or ""
    )


_IN_RESULT: Final[Readers] = {
    "text": lambda block: Text(text(block, "text") or ""),
    "thinking": lambda block: Thinking(text(block, "thinking") or ""),
    "redacted_thinking": lambda _block: Thinking(""),
    "tool_use": lambda block: ToolCall(
        text(block, "id") or "", text(block, "name") or "", block.get("input")
    ),
    "server_tool_use": lambda block: ToolCall(
        text(block, "id") or "", text(block, "name") or "", block.get("input")
    ),
    "image": _image,
    "document": _image,
}
"""Types of blocks, of the API as the client writes them down."""

_READERS: Final[Readers] = {**_IN_RESULT, "tool_result": _result}
"""A result stands in no other result: one that does would be as deep as anybody likes."""

_COUNTS: Final = (
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens",
)


def _tokens(usage: Any) -> Tokens | None:
    if not isinstance(usage, dict):
        return None
    return Tokens(*(_count(usage.get(name)) for name in _COUNTS))


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
