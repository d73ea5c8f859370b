"""A session for programs: the original lines, each once.

Rule: each line has the bytes that the client wrote. A session without copies comes out as `stitch`
gives it, byte for byte. Every line but the last ends with a newline, even where a missing segment
cut it off. In a format that is not made of lines, each record comes as one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict
from xxhash import xxh3_128_digest

from sessrotate import render
from sessrotate.clients.protocol import Quick
from sessrotate.export import Exported, Scope
from sessrotate.parsing import Record, on_one_line
from sessrotate.reading.deduplicate import Known

if TYPE_CHECKING:
    from sessrotate.reading.session import Session

_PIECE: Final = 256 * 1024
"""How many bytes are written at once."""


def pieces(session: Session, scope: Scope | None = None) -> Iterator[bytes]:
    """Yield the output in pieces. Raises as `Session` does."""
    scope = scope or Scope()
    reader = session.reader
    found: Iterator[bytes | memoryview] = (
        _lines(session, reader, Known(session.bytes_of, scope.copies, scope.seen))
        if isinstance(reader, Quick) and scope.is_all
        else _records(session, scope)
    )
    held: list[bytes | memoryview] = []
    size = 0
    for piece in found:
        held.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def index(sessions: Iterable[Exported]) -> Iterator[bytes]:
    """Yield a line of JSON for each of several sessions: its file, and what it is."""
    for each in sessions:
        yield render.dumps(asdict(each)).encode() + b"\n"


def _lines(session: Session, reader: Quick, known: Known) -> Iterator[bytes | memoryview]:
    """Yield each line once, from where it stands: none is copied."""
    key, is_ended = reader.line_key, True
    for info in session.segments:
        for line, at, size, ends in session.lines(info.index):
            record = None
            if len(line) == size:
                is_new = known.is_new_line(xxh3_128_digest(line), key(line))
            else:
                record = Record(info.index, at, bytes(line), size, ends)
                is_new = known.is_new(record, None)
            if not is_new:
                continue
            if not is_ended:
                yield b"\n"
            yield from (line,) if record is None else session.bytes_of(record)
            if ends:
                yield b"\n"
            is_ended = ends


def _records(session: Session, scope: Scope) -> Iterator[bytes]:
    """Yield each record once, as a line."""
    view = (lambda _record: None) if scope.part.is_all else session.view
    viewed = ((record, view(record)) for record in scope.records(session))
    found = (record for record, _ in scope.within(session, has_rewound=True).of(viewed))
    # What is new in one that is carried follows as records of its own.
    return lines(session, (record for record in found if not record.is_carried))


def lines(session: Session, records: Iterable[Record]) -> Iterator[bytes]:
    """Yield records as lines, in pieces; a torn one that others follow ends here."""
    is_ended = True
    for record in records:
        if not is_ended:
            yield b"\n"
        yield from map(on_one_line, session.bytes_of(record))
        is_ended = record.is_ended
        if is_ended:
            yield b"\n"
