"""What Gemini CLI's monolithic sessions (`.json`, 0.11 to 0.38) say.

Rule: a record is a message: an element of `messages`, whatever its line breaks, with its place and
its bytes in the file. Every other member of the object is a record too, with braces put around it,
so that each record is JSON by itself. A file that is cut short, or is no JSON, has the records that
can be found in it. If `messages` is there twice, the last one counts, as in `JSON.parse`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from sessrotate.clients import opaque
from sessrotate.clients.gemini import reader
from sessrotate.clients.gemini.rows import id_at, row_of
from sessrotate.clients.gemini.view import is_sent
from sessrotate.clients.gemini.view import view as view_of
from sessrotate.clients.protocol import Reading
from sessrotate.clients.view import View
from sessrotate.parsing import LONGEST, Record
from sessrotate.parsing.json_stream import Cursor, Value

agents: Final = opaque.agents  # their transcripts came with the other format
beside: Final = reader.beside
folder: Final = reader.folder
key: Final = reader.key
rewound: Final = opaque.rewound  # the client takes what is rewound out of the file
said: Final = opaque.said
sight: Final = reader.sight
worded: Final = reader.worded

AGAIN: Final = b'{"messages":[]}'
"""The record that stands where `messages` begin another time, and what was there is void."""


def records(pieces: Iterable[bytes | memoryview], segment: int) -> Iterator[Record]:
    """Yield the messages of a session, and its other members, in the order of the file."""
    cursor = Cursor(pieces)
    is_again = False
    for name in cursor.members():
        opening = cursor.next()
        if name == "messages" and opening == b"[":
            if is_again:
                yield Record(segment, cursor.offset, AGAIN, len(AGAIN))
            is_again = True
            cursor.skip()
            for value in cursor.elements():
                yield _record(segment, value)
        else:
            yield _member(segment, name, cursor.value())
    if cursor.next():  # it is no object, or goes on behind one
        yield _record(segment, cursor.rest())


def _record(segment: int, value: Value) -> Record:
    return Record(segment, value.offset, value.text, value.size, is_ended=value.is_ended)


def _member(segment: int, name: str | None, value: Value) -> Record:
    if name is None or value.size != len(value.text) or value.size > LONGEST // 2:
        return _record(segment, value)
    line = b"{%b:%b}" % (json.dumps(name).encode(), value.text)
    return Record(segment, value.offset, line, len(line), is_ended=value.is_ended)


def view(record: Record) -> View | None:
    """Return what a record says: a message, or a member of the object beside them."""
    found = view_of(record)
    is_member = found is not None and found.kind == "other" and not found.type
    return replace(found, type="metadata") if found is not None and is_member else found


def conversation(
    session: Reading,
    *,
    with_agents: bool = False,  # noqa: ARG001 - agents came with the other format
) -> Iterator[Record]:
    """Yield the messages that a resume sends, in its order. The file is read twice."""
    skipped = sum(record.line == AGAIN for record in session.history())
    for record in session.history():
        if record.line == AGAIN:
            skipped -= 1
            continue
        row = row_of(record)
        if not skipped and (is_sent(row) if row is not None else id_at(record.line) is not None):
            yield record
