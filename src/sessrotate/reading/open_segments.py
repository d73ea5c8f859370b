"""The parts of a history: segments, and lines that are not in one yet; how each is read.

Rule: a segment's file is opened when its bytes are asked for, not before. The segments of a live
file are looked for when somebody asks for them: it is read for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from sessrotate.clients.protocol import Client
from sessrotate.errors import storage
from sessrotate.model import Boundary, Segment, Span
from sessrotate.segments import live_body, scan
from sessrotate.system.source import Source

if TYPE_CHECKING:
    Pieces = Callable[[], Iterable[bytes | memoryview]]
    """Gives a segment's bytes from their beginning; each piece is valid until the next."""

Standing = Literal["live", "sealed"]


class SegmentInfo(Struct, frozen=True):
    """What is known of one segment of a session without reading it.

    A segment is what stands between two compactions. `first_timestamp` and `last_timestamp` are the
    times of its first and last dated records, ISO 8601 as the client wrote them; None where there
    are none, or where the archive does not say.
    """

    index: int
    """The segment's number; 0 is the oldest."""
    bytes: int | None
    """Size in the history, uncompressed and without a header; None where only reading tells."""
    boundary: Boundary | None
    """The compaction that opens the segment; None for segment 0."""
    first_timestamp: str | None
    last_timestamp: str | None
    standing: Standing
    """`live` if the segment is in the client's own file, `sealed` if it is in a file of its own."""
    lines: int | None = None
    """How many lines it has, None where no manifest has counted them."""


class OpenSegment(Struct, frozen=True):
    """A segment of an open session. `problem` says why it cannot be read, None if it can.

    One that was pruned has a problem, too, and is missing on purpose.
    """

    info: SegmentInfo
    pieces: Pieces
    problem: str | None = None
    is_pruned: bool = False


class Loose(Struct, frozen=True):
    """Lines of a history that are not in a sealed segment, and what reads a span of them.

    They stand in `span` of the live `file`; that is None where they are in another one.
    """

    span: Span
    read: Callable[[Span], Iterable[bytes | memoryview]]
    file: Source | None = None


def info(segment: Segment, lines: int | None) -> SegmentInfo:
    """Return what is known of a sealed segment by its manifest."""
    return SegmentInfo(
        segment.index,
        segment.span.size,
        segment.boundary,
        segment.first_timestamp,
        segment.last_timestamp,
        "sealed",
        lines,
    )


def of_live(
    source: Source, client: Client, prefix: int, first: int, start: int, *, is_cut: bool = False
) -> Iterator[OpenSegment]:
    """Yield the segments of a live file from offset `prefix` on: `start` in the history.

    `first` is the number of the first one, and `is_cut` as in `plan.spans`. The file is read once
    to find them. Raises what `scan.scan` raises.
    """
    with storage("read the session"):
        scanned = scan.scan(source, client, lambda _done: None)
        segments = live_body.segments(
            source, client, scanned, prefix, number=first, start=start, is_cut=is_cut
        )
    for segment in segments:
        known, span = replace(info(segment, None), standing="live"), segment.span
        if segment.boundary is not None:
            known = replace(known, boundary=replace(segment.boundary, offset=span.start))
        here = Span(span.start - start + prefix, span.end - start + prefix)
        yield OpenSegment(known, partial(source.pieces, here))
