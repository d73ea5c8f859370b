"""A session file → its boundaries, at the speed of memory and in constant space.

Rule: find, then confirm. Every byte is searched for the format's marker, and only a line that
holds it is ever parsed. Nothing here depends on how long a line is: the search works on blocks,
and the ends of a candidate line are looked for from the place where the marker was found.
"""

from __future__ import annotations

import os
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from sessrotate import platforms
from sessrotate.errors import InUseError, NotASessionError
from sessrotate.model import Boundary, Scan, Span
from sessrotate.parsing import needle

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sessrotate.clients.protocol import Client
    from sessrotate.system.source import Source

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
    finder = needle.Finder(min(READ, size), memmem=None)
    for block in blocks:
        yield block, _search(source, block, size, marker, finder)


def _side_by_side(
    source: Source, size: int, marker: bytes, blocks: Iterator[Span]
) -> Iterator[tuple[Span, array[int]]]:
    from threading import local  # noqa: PLC0415

    workers = min(4, os.cpu_count() or 1)
    memmem = needle.memmem()
    mine = local()

    def search(block: Span) -> array[int]:
        if not hasattr(mine, "finder"):
            mine.finder = needle.Finder(READ, memmem=memmem)
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
    source: Source, block: Span, size: int, marker: bytes, finder: needle.Finder
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
