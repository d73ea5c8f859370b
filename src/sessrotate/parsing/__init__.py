"""Bytes of a session file → lines → JSON values.

Promise: the same verdict as a client's `JSON.parse`, of a line over 256 KiB by its brackets, at any
depth and in bounded memory.
In come bytes, or an open `Source`; out come lines, records and single values of them.
May import `system` and the words that everybody uses.

Rule: a line is opaque bytes until somebody asks what it says; nothing is repaired. None is lost: a
torn or empty line, or one that is not JSON, comes out as it went in. Only the beginning of a line
over `LONGEST` is kept.

A `Window` passes over the lines of a file through a buffer of fixed size. It copies no line, and a
line need not fit. A line that fits is shown in the buffer; of a longer one only the offsets are
given, and the caller may ask to see parts of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate.model import Span
from sessrotate.system.digest import newlines

if TYPE_CHECKING:
    from sessrotate.system.source import Source

    Line = tuple[bytes | memoryview, int, int, bool]
    """A line, its offset and size, and whether a newline ended it, as in a `Record`."""
    LineSpan = tuple[int, int, int]
    """Where a line starts and ends in the file, without its newline, and in the buffer begins.

    A plain tuple, since there may be millions.
    """


LONGEST: Final = 8 * 1024 * 1024
"""Bytes of a line that are kept: room for the largest image that clients send, twice."""


_BREAK: Final = re.compile(rb"[ \t\r]*\n[ \t\r\n]*")


class Record(Struct, frozen=True):
    """One line of a session, or what its client's format has in the place of lines.

    `segment` is the segment's number and `offset` where in its body the line begins, in bytes;
    `line` is the line without its newline, `size` how many bytes that are. If a line is
    longer than `LONGEST`, `line` is only its beginning. `is_ended` is False for a last line
    without a newline. `is_carried` marks the copy, in a live file, of a line that is archived:
    it is not part of the history, and `offset` is in the live file. `is_part` marks a record
    inside of a line that is a record too, such as a message that a compaction kept.
    """

    segment: int
    offset: int
    line: bytes
    size: int
    is_ended: bool = True
    is_carried: bool = False
    is_part: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether `line` is all of the line."""
        return len(self.line) == self.size


def on_one_line(data: bytes) -> bytes:
    """Return a record's bytes, or a piece of them, without line breaks: JSON has none in strings.

    Only of formats that are not made of lines there are any.
    """
    return _BREAK.sub(b"", data) if b"\n" in data else data


def records(
    pieces: Iterable[bytes | memoryview],
    segment: int,
    *,
    is_carried: bool = False,
) -> Iterator[Record]:
    """Yield the lines of a segment's body."""
    for line, at, size, is_ended in split(pieces):
        yield Record(segment, at, bytes(line), size, is_ended, is_carried=is_carried)


def split(pieces: Iterable[bytes | memoryview], start: int = 0) -> Iterator[Line]:
    """Yield the lines where they stand, for callers that need no records.

    Copying a line and making a record of it take longer than finding it.
    """
    held, size = BytesIO(), 0  # hands out what was written to it without a second copy
    for piece in pieces:
        data = bytes(piece)
        view, find = memoryview(data), data.find
        at, to = 0, find(b"\n")
        if size and to >= 0:
            held.write(view[: min(to, LONGEST - held.tell())])
            line, held = held.getvalue(), BytesIO()
            yield line, start - size, size + to, True
            size, at = 0, to + 1
            to = find(b"\n", at)
        while to >= 0:
            yield view[at:to], start + at, to - at, True
            at = to + 1
            to = find(b"\n", at)
        size += len(data) - at
        held.write(view[at : at + LONGEST - held.tell()])
        start += len(data)
    if size:
        yield held.getvalue(), start - size, size, False


# ── the lines of a file ───────────────────────────────────────────────────────────────────────────

WINDOW: Final = 1024 * 1024
"""Bytes of the buffer: larger ones fall out of the processor's cache and are slower."""

LONG: Final = -1
"""In place of where it begins in the buffer: the line does not fit into it."""


def count(pieces: Iterable[bytes | memoryview]) -> tuple[int, int]:
    """Return how many lines the pieces have, with a last one without a newline, and how many bytes.

    The newlines count among the bytes.
    """
    found, size, last = 0, 0, b"\n"
    for piece in pieces:
        data = bytes(piece)  # of bytes no copy is made
        if data:
            found += newlines(data, 0, len(data))
            size += len(data)
            last = data[-1:]
    return found + (last != b"\n"), size


class Window:
    """A buffer over a source; what it holds is valid until the next line is asked for."""

    def __init__(self, source: Source, size: int) -> None:
        self._source: Final = source
        self.buffer: Final = bytearray(size)
        self.view: Final = memoryview(self.buffer)

    def show(self, span: Span) -> int:
        """Fill the buffer with the beginning of `span`; return how many bytes of it that are."""
        size = min(span.size, len(self.buffer))
        self._source.fill(self.view[:size], span.start)
        return size

    def forward(self, span: Span) -> Iterator[LineSpan]:
        """Yield the lines of `span` that are not empty, from the first to the last."""
        position = span.start
        while position < span.end:
            size = self.show(Span(position, span.end))
            at = 0
            while (newline := self.buffer.find(b"\n", at, size)) >= 0:
                if newline > at:
                    yield position + at, position + newline, at
                at = newline + 1
            if position + size == span.end:
                if at < size:
                    yield position + at, span.end, at
                return
            if not at:
                end = self._source.line_end(position + size, span.end)
                yield position, end, LONG
                at = end - position
            # A line cut by the buffer's end is shown again, from its beginning.
            position += at

    def backward(self, end: int) -> Iterator[LineSpan]:
        """Yield the lines of the file that are not empty, from the one that ends at `end` back."""
        while end > 0:
            base = max(0, end - len(self.buffer))
            to = self.show(Span(base, end))
            while (newline := self.buffer.rfind(b"\n", 0, to)) >= 0:
                if newline + 1 < to:
                    yield base + newline + 1, base + to, newline + 1
                to = newline
            if not base:
                if to:
                    yield 0, to, 0
                return
            if base + to < end:
                end = base + to
            else:
                start = self._source.line_start(base)
                yield start, end, LONG
                end = start - 1
