"""The lines of a file, one after the other, through a buffer of fixed size.

Rule: no line is copied, and a line need not fit. A line that fits is shown in the buffer; of a
longer one only the offsets are given, and the caller may ask to see parts of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from sessrotate.model import Span
from sessrotate.system.digest import newlines

if TYPE_CHECKING:
    from sessrotate.system.source import Source

    Line = tuple[int, int, int]
    """Where a line starts and ends in the file, without its newline, and in the buffer begins.

    A plain tuple, since there may be millions.
    """

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

    def forward(self, span: Span) -> Iterator[Line]:
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

    def backward(self, end: int) -> Iterator[Line]:
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
