"""The gist of a Claude Code row and its uuid, told by the types of its blocks.

Rule: what is told of a line is what `kinds.of_view` says of its view, and `reader.key` of its uuid.
Where that takes more than types (the decoder declines the line, a message mixes kinds, a tool gave
a picture), nothing is told, and the caller makes a view. No text of a message is copied. Of a line
that is too long to be held, or of more than `MOST_OBJECTS`, the beginning decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessrotate.clients import kinds
from sessrotate.clients.claude.rows import Block, row_of, turn_of
from sessrotate.clients.claude.view import KINDS
from sessrotate.clients.kinds import Gist
from sessrotate.parsing.json_stream import Cursor
from sessrotate.parsing.json_typed import DECLINED

if TYPE_CHECKING:
    from sessrotate.clients.kinds import Kind
    from sessrotate.parsing.json_stream import Value

_OF_BLOCK: Final[dict[str | None, Kind]] = {
    "tool_use": "tool calls",
    "server_tool_use": "tool calls",
    "tool_result": "tool results",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "image": "images",
    "document": "images",
}
"""Kinds of blocks by their type; that of a text is the speaker's."""

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


def gist(line: bytes | memoryview, *, is_whole: bool) -> tuple[Gist, bytes | None] | None:
    """Return the gist of a row and its uuid, if it has one; None if only its view tells.

    Of a line that is too long to be held (not `is_whole`) the beginning decides.
    """
    if not is_whole:
        return Gist(_of_beginning(bytes(line))), None
    if len(line) > _LARGE and (data := bytes(line)).count(b"{") > MOST_OBJECTS:
        return _of_crowd(data)
    try:
        row = _turn(line)
    except DECLINED:
        return None
    uuid = row.uuid
    key = None if uuid is None else uuid.encode()
    speaker = KINDS.get(row.type or "", "other")
    said = kinds.SAID.get(speaker)
    if said is None:
        return Gist(kinds.of_note(speaker, row.subtype or row.type or ""), row.timestamp), key
    message = row.message
    blocks = None if message is None else message.content
    if blocks is None or isinstance(blocks, str):
        return Gist(said, row.timestamp), key
    found = _of_blocks(said, blocks, row.timestamp)
    return None if found is None else (found, key)


def _of_blocks(said: Kind, blocks: list[Block], time: str | None) -> Gist | None:
    """Return the gist of a message, None where not all of its blocks are of one kind."""
    kind: Kind | None = None
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
        return kinds.UNKNOWN, None
    return Gist(_of_beginning(line)), None if uuid is None else uuid.encode()


def _of_beginning(line: bytes) -> Kind:
    """Return the kind of a row of which this is the beginning.

    Its first block decides, or a picture that begins in what is held.
    """
    word, block, is_message = "", None, False
    cursor = Cursor([line[:_BEGINNING]])
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
        return kinds.of_note(speaker, word)
    if _BASE64 in line:
        return "images"
    # The model's rows have their type behind the message, which is not in sight.
    said = kinds.SAID.get(speaker if word else "assistant", "unknown")
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
