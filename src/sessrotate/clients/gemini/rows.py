"""What the rows of Gemini CLI's sessions are, and which of them a resume takes for something said.

Rule: as `loadConversationRecord` and `convertSessionToClientHistory` of 0.61.0 take them; a row of
another shape is none, and no error. A message is the same in both formats: a line of a `.jsonl`,
an element of `messages` in a `.json`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal

from sessrotate.parsing import json_line
from sessrotate.parsing.json_stream import Cursor
from sessrotate.parsing.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sessrotate.parsing.json_stream import Value

    Row = dict[str, Any]

Kind = Literal["rewind", "message", "update", "metadata"]

_NOT_SAID: Final = ("/", "?", "<session_context>", "<hook_context>")
"""How commands begin, and what the client itself says in the user's name."""

OF_CLIENT: Final = ("<session_context>", "<hook_context>")
SNAPSHOT: Final = "<state_snapshot>"
"""How the summary begins that a compression leaves of the conversation."""

_NOTES: Final = frozenset({"info", "error", "warning"})

_PLACEHOLDERS: Final = (
    "videoMetadata",
    "thought",
    "codeExecutionResult",
    "executableCode",
    "fileData",
    "functionCall",
    "functionResponse",
    "inlineData",
)
"""Parts that a client has words for, so that they are never nothing."""

_ID: Final = re.compile(rb'\s*\{\s*"id"\s*:\s*"([^"\\]{1,200})"')

_UPDATE: Final = re.compile(rb'\s*\{\s*"\$set"\s*:\s*\{\s*"messages"\s*:\s*\[')

_REPLACES: Final[json_line.Shape] = {"$rewindTo": None, "id": None, "$set": {"messages": list}}


def row_of(record: Record) -> Row | None:
    """Return what a record holds as JSON, None if it is no object, or too long to be held."""
    if not record.is_whole or record.line[:1] not in {b"{", b" ", b"\t"}:
        return None
    return parsed(record.line)


def parsed(line: bytes) -> Row | None:
    """Return what a line holds as JSON, None if that is no object."""
    try:
        row = json.loads(line.decode("utf-8", "replace"), parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _no_number(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are no JSON to the client


def kind_of(row: Row) -> Kind | None:
    """Return what a row is, None if the client passes it over."""
    if isinstance(row.get("$rewindTo"), str):
        return "rewind"
    if isinstance(row.get("id"), str):
        return "message"
    if isinstance(row.get("$set"), dict | list):
        return "update"
    if isinstance(row.get("sessionId"), str) and isinstance(row.get("projectHash"), str):
        return "metadata"
    return None


def identity(record: Record) -> str | None:
    """Return the id of a message, None of another line; of a long one, what it begins with."""
    if record.is_whole:
        row = row_of(record) or {}
        return text(row, "id") if kind_of(row) == "message" else None
    return id_at(record.line)


def id_at(line: bytes) -> str | None:
    """Return the id that a message begins with, as all clients write it."""
    found = _ID.match(line)
    return found[1].decode("utf-8", "replace") if found is not None else None


def text(row: Row, name: str) -> str | None:
    """Return a value that is a text."""
    value = row.get(name)
    return value if isinstance(value, str) else None


def rows(value: Any) -> list[Row]:
    """Return the objects in a list; none of what is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def said(content: Any) -> str:
    """Return a content as the client has it in words: a text, a part, or a list of such."""
    left, words = [content], []
    while left:
        part = left.pop()
        if isinstance(part, str):
            words.append(part)
        elif isinstance(part, list):
            left += reversed(part)
        elif isinstance(part, dict):
            held = next((name for name in _PLACEHOLDERS if name in part), None)
            words.append(f"[{held}]" if held else text(part, "text") or "")
    return "".join(words)


def prompt(row: Row) -> str | None:
    """Return what a user said with a message, in the words that a list shows; None if nothing."""
    if row.get("type") != "user" or _is_ignored(row.get("content")):
        return None
    content = row.get("content")
    if isinstance(content, list):
        return "".join(text(part, "text") or "" for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else None


def is_something(row: Row) -> bool:
    """Tell whether a message makes a session worth listing: somebody asked or answered."""
    if row.get("type") == "user":
        return not _is_ignored(row.get("content"))
    lists = (row.get("toolCalls"), row.get("thoughts"))
    return row.get("type") == "gemini" and bool(said(row.get("content")).strip() or any(lists))


def is_sent(row: Row) -> bool:
    """Tell whether a resume sends this message to the model."""
    kind = row.get("type")
    if kind == "user":
        return not _is_ignored(row.get("content"))
    return kind == "gemini" and any(row.get(name) for name in ("content", "thoughts", "toolCalls"))


def _is_ignored(content: Any) -> bool:
    words = said(content).strip()
    return not words or words.startswith(_NOT_SAID)


# ── updates that replace all messages ────────────────────────────────────────────────────────


def is_update(line: bytes) -> bool:
    """Tell by its beginning whether a line is an update that replaces all messages."""
    return _UPDATE.match(line) is not None


def replaces(record: Record, bytes_of: Callable[[Record], Iterable[bytes]]) -> bool:
    """Tell whether a line is an update that replaces all messages, by all of it."""
    if b'"messages"' not in record.line and record.is_whole:
        return False
    line = (record.line,) if record.is_whole else bytes_of(record)
    found = json_line.values(line, record.size, _REPLACES)
    if found is None or not isinstance(changed := found.get("$set"), dict):
        return False
    # None stands for a text that is too long to be reported; other types do not count.
    own = (found.get(name, 0) for name in ("$rewindTo", "id"))
    return changed.get("messages") is True and not any(isinstance(v, str | None) for v in own)


def messages(
    record: Record, bytes_of: Callable[[Record], Iterable[bytes]], path: tuple[str, ...]
) -> Iterator[Iterator[Record]]:
    """Yield the arrays that a line has at `path`, each as its elements; the last one counts.

    There is more than one only where a key is there twice. Each is to be read to its end before
    the next. An element is a record whose `offset` is where it stands in the segment.
    """
    cursor = Cursor((record.line,) if record.is_whole else bytes_of(record))
    for elements in _arrays(cursor, path):
        yield (
            Record(
                record.segment,
                record.offset + value.offset,
                value.text,
                value.size,
                is_ended=value.is_ended,
                is_carried=record.is_carried,
                is_part=True,
            )
            for value in elements
        )


def _arrays(cursor: Cursor, path: tuple[str, ...]) -> Iterator[Iterator[Value]]:
    for name in cursor.members():
        opening = cursor.next()
        if name != path[0] or opening != (b"{" if path[1:] else b"["):
            cursor.value()
        elif path[1:]:
            yield from _arrays(cursor, path[1:])
        else:
            cursor.skip()
            yield cursor.elements()
