"""A session file → its segments, as they are numbered and stand in the whole history.

Rule: whoever rotates a live file and whoever reads it ask here, so that a segment has the same
number, place and times before it is archived and after it. Only reads.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sessrotate.errors import InUseError
from sessrotate.model import Boundary, Scan, Segment, Span
from sessrotate.segments import dating, plan
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from sessrotate.clients.protocol import Client


def segments(
    source: Source,
    client: Client,
    scanned: Scan,
    prefix: int = 0,
    *,
    number: int = 0,
    start: int = 0,
    is_cut: bool = False,
) -> tuple[Segment, ...]:
    """Return the segments of a file's body, which begins at offset `prefix`.

    In the history it begins at `start`, in bytes, and the first segment has this `number`. If the
    client cut the body (`is_cut`), that segment is what it kept, and opened by nothing but its
    first line's time.
    """
    parts = plan.spans(scanned, prefix, is_cut=is_cut)
    if is_cut:
        kept, _ = parts[0]
        time = dating.time(client, partial(source.pieces, kept))
        parts[0] = (kept, Boundary(kept.start, timestamp=time))
    times = dating.times(source, client, parts)
    return plan.segments(parts, times, number=number, shift=start - prefix, is_cut=is_cut)


def check_unshifted(source: Source, client: Client, boundary: Boundary | None, end: int) -> None:
    """Raise InUseError if what was read before a compaction is not where it was.

    A client that takes a message back from before it (2.0.76 and later) moves all that follows.
    """
    if boundary is None:
        return
    start = boundary.offset
    line = Span(start, source.line_end(start, end))
    is_begun = not start or source.read_at(start - 1, 1) == b"\n"
    if not is_begun or client.boundary(source.pieces(line), line) != boundary:
        raise InUseError("The session was changed while it was read; try again.")
