"""The gist of a Claude Code row and its uuid, told by the types of its blocks.

Rule: what is told of a line is what `view.gist_of` says of its view, and its uuid is its key. Only
where that takes more than types (the decoder declines the line, a message mixes kinds, a tool gave
a picture) a view is made. No text of a message is copied. Of a line that is too long to be held,
or of more than `MOST_OBJECTS`, the beginning decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from sessrotate.clients import view
from sessrotate.clients.claude import view as claude_view
from sessrotate.clients.claude.rows import Block, Row, Turn, row_of, turn_of
from sessrotate.clients.claude.view import KINDS
from sessrotate.clients.common import BOM
from sessrotate.clients.view import Gist
from sessrotate.parsing import Record
from sessrotate.parsing.json_stream import Cursor, Value
from sessrotate.parsing.json_typed import DECLINED

if TYPE_CHECKING:
    from sessrotate.clients.view import LineKind, Told
    from sessrotate.parsing import Line

_OF_BLOCK: Final[dict[str | None, LineKind]] = {
    "tool_use": "tool calls",
    "server_tool_use": "tool calls",
    "tool_result": "tool results",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "image": "images",
    "document": "images",
}
"""Kinds of blocks by their type; that of a text is the speaker's."""

_QUEUED: Final = "queued_command"
"""The type of an attachment that may be a user's message, as only its view tells."""

_OPENS: Final = ord("[")
_PICTURES: Final = frozenset({"image", "document"})

MOST_OBJECTS: Final = 50_000
"""Objects in a line that are decoded: each takes some 90 bytes, and 8 MiB have room for millions.
Braces in texts count too: of a row with so many, the call's name and the time are not told."""

_LARGE: Final = 256 * 1024
"""Bytes of a line from which on its objects are counted."""

_turn: Final = turn_of.fast
_row: Final = row_of.fast
_given: Final = msgspec.json.Decoder(list[Block]).decode

_BEGINNING: Final = 64 * 1024
"""Bytes of a line that is too long to be held by which its first block is told."""

_BASE64: Final = b'"type":"base64"'


def line_key(line: bytes | memoryview) -> bytes | None:
    """Return the uuid of the row on a line, None if it has none."""
    row = row_of(line[len(BOM) :] if line[: len(BOM)] == BOM else line)
    return None if row is None else _key(row)


def gists(lines: Iterable[Line]) -> Iterator[Told]:
    """Yield the gist of each row and its uuid, if it has one, and its line."""
    for line, at, size, is_ended in lines:
        key = None
        if len(line) < size:
            gist = Gist(_of_beginning(bytes(line)))
        elif size > _LARGE and bytes(line).count(b"{") > MOST_OBJECTS:
            gist, key = _of_crowd(bytes(line))
        else:
            try:
                row = _turn(line)
            except DECLINED:
                found = None
                key = line_key(line)
            else:
                found = _of_row(row)
                key = _key(row)
            gist = found or view.gist_of(
                claude_view.view(Record(0, at, bytes(line), size, is_ended))
            )
        yield gist, key, line, at, size, is_ended


def _key(row: Row) -> bytes | None:
    return None if row.uuid is None else row.uuid.encode("utf-8", "surrogatepass")


def _of_row(row: Turn) -> Gist | None:
    """Return the gist of a row, None if only its view tells."""
    speaker = KINDS.get(row.type or "", "other")
    said = view.SAID.get(speaker)
    if said is None and row.attachment is not None and row.attachment.type == _QUEUED:
        return None
    if said is None:
        return Gist(view.kind_of_note(speaker, row.subtype or row.type or ""), row.timestamp)
    message = row.message
    if message is None or not isinstance(message.content, list):
        return Gist(said, row.timestamp)
    return _of_blocks(said, message.content, row.timestamp)


def _of_blocks(said: LineKind, blocks: list[Block], time: str | None) -> Gist | None:
    """Return the gist of a message, None where not all of its blocks are of one kind."""
    kind: LineKind | None = None
    calls: list[tuple[str, str]] = []
    result: str | None = None
    for block in blocks:
        mine = said if block.type == "text" else _OF_BLOCK.get(block.type)
        if mine is None or (kind is not None and kind != mine):
            return None
        kind = mine
        if mine == "tool calls":
            calls.append((block.id or "", block.name or ""))
        elif mine == "tool results":
            if _has_pictures(block):
                return None
            if result is None:
                result = block.tool_use_id or ""
        elif mine == "images" and block.source is None:
            return None
    return Gist(kind or said, time, tuple(calls), result)


def _has_pictures(block: Block) -> bool:
    """Tell whether a tool may have given a picture."""
    content = memoryview(block.content)
    if not content or content[0] != _OPENS:
        return False
    try:
        return any(each.type in _PICTURES for each in _given(content))
    except DECLINED:
        return True


# ── lines that are too much to be held ───────────────────────────────────────────────────────


def _of_crowd(line: bytes) -> tuple[Gist, bytes | None]:
    """Return the gist and the uuid of a row of more objects than are decoded."""
    try:
        uuid = _row(line).uuid
    except DECLINED:
        return view.UNKNOWN, None
    return Gist(_of_beginning(line)), None if uuid is None else uuid.encode()


def _of_beginning(line: bytes) -> LineKind:
    """Return the kind of a row of which this is the beginning.

    Its first block decides, or a picture that begins in what is held.
    """
    word, block, is_message = "", None, False
    cursor = Cursor([line[:_BEGINNING].removeprefix(BOM)])
    for name in cursor.members():
        if name == "attachment":
            return "attachments"
        if name == "message":
            block, is_message = _first_block(cursor), True
        else:
            value = cursor.value()
            word = _text(value) if name == "type" else word
    speaker = KINDS.get(word, "other")
    if not is_message:
        return view.kind_of_note(speaker, word)
    if _BASE64 in line:
        return "images"
    # The model's rows have their type behind the message, which is not in sight.
    said = view.SAID.get(speaker if word else "assistant", "unknown")
    return said if block in {None, "text"} else _OF_BLOCK.get(block, "unknown")


def _first_block(message: Cursor) -> str | None:
    """Pass a message; return the type of its first block, None if it has none."""
    found = None
    for name in message.members():
        if name != "content" or message.next() != b"[":
            message.value()
            continue
        message.skip()
        if message.next() == b"{":
            for inner in message.members():
                value = message.value()
                found = _text(value) if inner == "type" else found
        for _ in message.elements():
            pass
    return found


def _text(value: Value) -> str:
    """Return a value that is a text, "" for any other."""
    try:
        return msgspec.json.decode(value.text, type=str)
    except DECLINED:
        return ""
