"""A session file → its boundaries, at the speed of memory and in constant space; a segment's times.

Rule: find, then confirm. Every byte is searched for the format's marker, and only a line that
holds it is ever parsed. Nothing here depends on how long a line is: the search works on blocks,
and the ends of a candidate line are looked for from the place where the marker was found.

Whether a segment's first line is the boundary that opens it has the same verdict, for a line of any
length: a Codex `compacted` record has up to 290 MB, and memory stays constant. Everybody who has no
manifest to ask asks here.

Times are cheap. No more than `MOST_LINES` lines and `WINDOW` bytes are looked at from either end,
and lines over `json_line.SMALL` only if no other there is dated; a segment without a dated record
has no time span. A record's time is what its client wrote: clocks may jump, and nothing is sorted
by it.
"""

from __future__ import annotations

import os
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from sessrotate import platforms
from sessrotate.errors import InUseError, NotASessionError
from sessrotate.model import Boundary, Scan, Span
from sessrotate.parsing import candidates, json_line
from sessrotate.system.source import PIECE

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sessrotate.clients.protocol import Client
    from sessrotate.system.source import Source

    Body = Callable[[], Iterable[bytes | memoryview]]
    """Gives the bytes of a segment's body from their beginning, each piece until the next."""

READ: Final = 512 * 1024
"""Bytes read and searched at once: they stay in the processor's own cache."""

BLOCK: Final = 4 * 1024 * 1024
"""Bytes that one thread searches before it hands over what it found."""

WORTH_THREADS: Final = 8 * BLOCK
"""Below this size, starting threads and loading the C library's search costs more than it gives."""

MAX_BOUNDARIES: Final = 10_000
"""More compactions than this no session has (a 2 GB one has 730), and no folder should hold."""


def scan(
    source: Source, client: Client, progress: Callable[[int], None], size: int | None = None
) -> Scan:
    """Find the boundaries of a session file of this client.

    Where the client's format has none, nothing is read.

    The file is taken as it is now, or as long as `size`, which it had a moment ago. If it grows
    meanwhile, the session ends with the last newline it had at the start: the client was in the
    middle of a line. `progress` is told how many bytes, from the start, are done. Raises
    InUseError if the file shrinks or is replaced, NotASessionError if it has more than
    `MAX_BOUNDARIES` boundaries.
    """
    size = source.size() if size is None else size
    boundaries: list[Boundary] = []
    opaque = 0
    done = 0  # end of the last line looked at: a line with two markers is one candidate
    for hit in _hits(source, size, client.MARKER, progress):
        if hit < done:
            continue
        line = Span(source.line_start(hit, done), source.line_end(hit, size))
        done = line.end
        found = client.boundary(source.pieces(line), line)
        if isinstance(found, Boundary):
            boundaries.append(found)
            if len(boundaries) > MAX_BOUNDARIES:
                raise NotASessionError(
                    f"More than {MAX_BOUNDARIES:,} compactions: this is not a client's session."
                )
        else:
            opaque += found
    source.check_unreplaced()
    end = size
    if source.size() > size:
        end = source.line_start(size)
        boundaries = [boundary for boundary in boundaries if boundary.offset < end]
    return Scan(end, tuple(boundaries), opaque)


def _hits(
    source: Source, size: int, marker: bytes, progress: Callable[[int], None]
) -> Iterator[int]:
    """Yield ascending offsets of the marker: at least the first in each line, not all of them."""
    if not marker:
        progress(size)
        return
    blocks = (Span(at, min(at + BLOCK, size)) for at in range(0, size, BLOCK))
    found = _in_turn if size < WORTH_THREADS else _side_by_side
    for block, hits in found(source, size, marker, blocks):
        yield from hits
        progress(block.end)


def _in_turn(
    source: Source, size: int, marker: bytes, blocks: Iterator[Span]
) -> Iterator[tuple[Span, array[int]]]:
    finder = candidates.Finder(min(READ, size), memmem=None)
    for block in blocks:
        yield block, _search(source, block, size, marker, finder)


def _side_by_side(
    source: Source, size: int, marker: bytes, blocks: Iterator[Span]
) -> Iterator[tuple[Span, array[int]]]:
    from threading import local  # noqa: PLC0415

    workers = min(4, os.cpu_count() or 1)
    memmem = candidates.memmem()
    mine = local()

    def search(block: Span) -> array[int]:
        if not hasattr(mine, "finder"):
            mine.finder = candidates.Finder(READ, memmem=memmem)
        return _search(source, block, size, marker, mine.finder)

    # Only a few blocks ahead: what is found in them has to wait in memory.
    ahead: deque[tuple[Span, Future[array[int]]]] = deque()
    with platforms.pool(workers) as pool:
        try:
            for block in blocks:
                ahead.append((block, pool.submit(search, block)))
                if len(ahead) > workers:
                    first, hits = ahead.popleft()
                    yield first, hits.result()
            for first, hits in ahead:
                yield first, hits.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _search(
    source: Source, block: Span, size: int, marker: bytes, finder: candidates.Finder
) -> array[int]:
    """Return where markers begin within `block`: the first of each line in each buffer."""
    beyond = len(marker) - 1  # a marker that begins in the block may end behind it
    hits = array("Q")  # eight bytes each: hostile files have one hit in nineteen bytes
    position = block.start
    while position < block.end:
        wanted = min(len(finder.view), block.end + beyond - position, size - position)
        got = source.read_into(finder.view[:wanted], position)
        if not got:
            raise InUseError("The session file became shorter while it was read; try again.")
        at = finder.find(marker, 0, got)
        while at >= 0:
            hits.append(position + at)
            newline = finder.buffer.find(b"\n", at, got)  # `memchr`, which nothing beats
            at = finder.find(marker, newline, got) if newline >= 0 else -1
        # A marker may be cut by the end of what was read, so that much is read again.
        position += got - beyond if got > beyond else got
    return hits


# ── a segment's first and last lines ──────────────────────────────────────────────────────────────

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
