"""What a segment's first line is, and the times of its first and last record.

Promise: whether the first line is the boundary that opens the segment has the same verdict as that
of the scan which cut the session there, for a line of any length: a Codex `compacted` record has up
to 290 MB, and memory stays constant. Everybody who has no manifest to ask asks here.

Rule: times are cheap. No more than `MOST_LINES` lines and `WINDOW` bytes are looked at from either
end, and lines over `jsonline.SMALL` only if no other there is dated; a segment without a dated
record has no time span. A record's time is what its client wrote: clocks may jump, and nothing is
sorted by it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from sessrotate.model import Boundary, Span
from sessrotate.parsing import json_line
from sessrotate.system.source import PIECE

if TYPE_CHECKING:
    from sessrotate.clients.protocol import Client
    from sessrotate.system.source import Source

    Body = Callable[[], Iterable[bytes | memoryview]]
    """Gives the bytes of a segment's body from their beginning, each piece until the next."""


# ── the first line ───────────────────────────────────────────────────────────────────────────


_LAST: Final = 4
"""Pieces from a line's end that are kept: no client tells a boundary by more."""


def boundary(client: Client, body: Body, offset: int = 0) -> Boundary | None:
    """Return the boundary that a segment begins with, None if its first line is none.

    `offset` is where the body begins in the history, in bytes. Raises what reading `body` raises.
    """
    return _boundary(client, _Line(body, client.MARKER), offset)


def time(client: Client, body: Body) -> str | None:
    """Return the time of a segment's first line (ISO 8601), its boundary's if it is one.

    None if it has none. Raises what reading `body` raises.
    """
    line = _Line(body, client.MARKER)
    found = _boundary(client, line, 0)
    return client.timestamp(line, line.size) if found is None else found.timestamp


def _boundary(client: Client, line: _Line, offset: int) -> Boundary | None:
    if not line.is_marked:
        return None
    found = client.boundary(line, Span(offset, offset + line.size))
    return found if isinstance(found, Boundary) else None


class _Line:
    """The first line of a body, without its newline; pieces of `PIECE` bytes, as `Source` has them.

    It is read once for its size, its end and the marker, and kept if it is short.
    """

    def __init__(self, body: Body, marker: bytes) -> None:
        self._body = body
        self.size = 0
        self.is_marked = False
        self._end: deque[bytes] = deque(maxlen=_LAST)
        before = b""
        for piece in self._pieces():
            self.size += len(piece)
            self._end.append(piece)
            if marker and not self.is_marked:
                self.is_marked = marker in before + piece
                before = piece[-len(marker) :]
        self._is_kept = self.size <= min(_LAST * PIECE, json_line.SMALL)

    def __iter__(self) -> Iterator[bytes]:
        return iter(tuple(self._end)) if self._is_kept else self._pieces()

    def __reversed__(self) -> Iterator[bytes]:
        return reversed(tuple(self._end))

    def _pieces(self) -> Iterator[bytes]:
        waiting = bytearray()
        for data in self._body():
            waiting += data
            newline = waiting.find(b"\n", len(waiting) - len(data))
            if newline >= 0:
                del waiting[newline:]
            start = 0
            while len(waiting) - start > PIECE:
                yield bytes(waiting[start : start + PIECE])
                start += PIECE
            del waiting[:start]
            if newline >= 0:
                break
        if waiting:
            yield bytes(waiting)


# ── the times ────────────────────────────────────────────────────────────────────────────────


WINDOW: Final = 16 * 1024 * 1024
"""Bytes from either end within which a whole line is looked at: room for the largest image."""

MOST_LINES: Final = 1_000
"""Lines from either end: metadata without a time comes in dozens, not thousands."""


def times(
    source: Source, client: Client, parts: Iterable[tuple[Span, Boundary | None]]
) -> Iterator[tuple[str | None, str | None]]:
    """Yield the first and the last time of each part; a boundary that is dated is the first."""
    for span, boundary in parts:
        opening = boundary.timestamp if boundary else None
        yield opening or first(source, client, span), last(source, client, span)


def first(source: Source, client: Client, span: Span) -> str | None:
    """Return the time of the first dated record of `span`, None if there is none nearby."""
    return _first_time(source, client, _lines_forward, span)


def last(source: Source, client: Client, span: Span) -> str | None:
    """Return the time of the last dated record of `span`, None if there is none nearby."""
    return _first_time(source, client, _lines_backward, span)


def _first_time(
    source: Source, client: Client, lines: Callable[[Source, Span], Iterator[Span]], span: Span
) -> str | None:
    # Long lines are slow to parse and seldom alone, so they are asked only if no other knows.
    for ask_long in (False, True):
        for line in islice(lines(source, span), MOST_LINES):
            if json_line.is_small(line.size) != ask_long and (
                time := client.timestamp(source.pieces(line), line.size)
            ):
                return time
    return None


def _lines_forward(source: Source, span: Span) -> Iterator[Span]:
    limit = min(span.end, span.start + WINDOW)
    start = span.start
    while start < limit:
        end = source.line_end(start, limit)
        if end == limit < span.end:
            return  # cut by the window, not by a newline
        if start < end:
            yield Span(start, end)
        start = end + 1


def _lines_backward(source: Source, span: Span) -> Iterator[Span]:
    floor = max(span.start, span.end - WINDOW)
    end = span.end
    while end > floor:
        start = source.line_start(end, floor)
        if start == floor > span.start:
            return
        if start < end:
            yield Span(start, end)
        end = start - 1
