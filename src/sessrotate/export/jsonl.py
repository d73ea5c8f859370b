"""A session for programs: the original lines, each once.

Rule: each line has the bytes that the client wrote. A session without copies comes out as `stitch`
gives it, byte for byte. Every line but the last ends with a newline, even where a missing segment
cut it off. In a format that is not made of lines, each record comes as one line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessrotate.parsing.records import on_one_line
from sessrotate.reading.deduplicate import Copies, once

if TYPE_CHECKING:
    from collections.abc import Generator

    from sessrotate.reading.session import Session

_PIECE: Final = 256 * 1024
"""How many bytes are written at once."""


def pieces(session: Session) -> Generator[bytes, None, Copies]:
    """Yield the output in pieces; return what was left out. Raises as `Session` does."""
    copies = Copies()
    held: list[bytes] = []
    size, is_ended = 0, True
    records = session.said(session.history())
    for record in once(records, session.key, session.bytes_of, copies):
        if record.is_carried:  # what is new in it follows as records of its own
            continue
        if not is_ended:
            held.append(b"\n")
        if record.is_whole:
            held.append(on_one_line(record.line))
        else:
            yield b"".join(held)
            held = []
            yield from map(on_one_line, session.bytes_of(record))
        is_ended = record.is_ended
        if is_ended:
            held.append(b"\n")
        size += record.size
        if size >= _PIECE:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)
    return copies
