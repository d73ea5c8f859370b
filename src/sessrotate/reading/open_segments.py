"""The segments of an open session: what is known of each, and how to read its bytes.

Rule: only reads, and a segment's file is opened when its bytes are asked for, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from sessrotate.archive.state import State
from sessrotate.clients.claude import client as claude
from sessrotate.clients.protocol import Client
from sessrotate.errors import DamagedError, storage
from sessrotate.model import Boundary, Segment, Span
from sessrotate.reading import pieces as history_pieces
from sessrotate.segments import first_line, live_body, scan
from sessrotate.segments.segment_set import SegmentFile, SegmentSet, body, unreadable
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
    """A segment of an open session. `problem` says why it cannot be read, None if it can."""

    info: SegmentInfo
    pieces: Pieces
    problem: str | None = None


def of_state(found: State) -> list[OpenSegment]:
    """Return the segments of a session in place, the live ones last.

    Raises DamagedError if the live file does not go on from its archive.
    """
    pieces, parts = found.history(), history_pieces.archived(found)
    listed = found.listed.segments if found.listed is not None else ()
    problems = {} if parts is None else unreadable(parts)
    bodies = [
        OpenSegment(
            _info(listed[piece.index].segment, listed[piece.index].lines),
            partial(history_pieces.read, found, piece, parts),
            None if piece.where == "pack" else problems.get(piece.index),
        )
        for piece in pieces
        if piece.index is not None
    ]
    start = listed[-1].segment.span.end if listed else 0
    loose = [piece for piece in pieces if piece.index is None]
    if found.live is not None and loose and loose[0].where == "live":
        begin = loose[0].span
        is_cut = found.has_gap
        entries = list(of_live(found.live, claude, begin.start, len(bodies), start, is_cut=is_cut))
        for piece in loose[1:]:  # what was written late to the replaced file, then the rest
            if piece.where != "live":
                late = partial(history_pieces.read, found, piece, parts)
                entries = list(_merged(entries, found.live, begin, piece.span.size, late))
        return bodies + entries
    for piece in loose:  # without a live file it belongs to the last segment
        last, rest = bodies[-1], partial(history_pieces.read, found, piece, parts)
        info = replace(last.info, bytes=(last.info.bytes or 0) + piece.span.size, lines=None)
        bodies[-1] = OpenSegment(info, partial(_chained, last.pieces, rest), last.problem)
    return bodies


def of_file(source: Source, client: Client) -> list[OpenSegment]:
    """Return the segments of a session that was never split, which is read once to find them.

    Raises what `scan.scan` raises.
    """
    return list(of_live(source, client, 0, 0, 0))


def of_set(segments: SegmentSet, client: Client) -> list[OpenSegment]:
    """Return the segments of a folder. Raises DamagedError if they are not a set."""
    problems = unreadable(segments)
    if None in problems:
        raise DamagedError(problems[None])
    return [
        OpenSegment(
            _info(part.segment, part.lines)
            if part.segment is not None
            else _look(segments, client, part),
            partial(body, segments, part),
            problems.get(part.index),
        )
        for part in segments.parts
    ]


# ── inside ───────────────────────────────────────────────────────────────────────────────────


def _info(segment: Segment, lines: int | None) -> SegmentInfo:
    return SegmentInfo(
        segment.index,
        segment.span.size,
        segment.boundary,
        segment.first_timestamp,
        segment.last_timestamp,
        "sealed",
        lines,
    )


def _look(segments: SegmentSet, client: Client, part: SegmentFile) -> SegmentInfo:
    """Return what a segment's first line says, for a set without a manifest."""
    found: Boundary | None = None
    if part.index and part.file is not None:
        with suppress(DamagedError):
            found = first_line.boundary(client, partial(body, segments, part))
    time = found.timestamp if found is not None else None
    return SegmentInfo(part.index, part.size, found, time, None, "sealed")


def of_live(
    source: Source, client: Client, prefix: int, first: int, start: int, *, is_cut: bool = False
) -> Iterator[OpenSegment]:
    """Yield the segments of a live file from offset `prefix` on: `start` in the history.

    `is_cut` is as in `plan.spans`.
    """
    with storage("read the session"):
        scanned = scan.scan(source, client, lambda _done: None)
        segments = live_body.segments(
            source, client, scanned, prefix, number=first, start=start, is_cut=is_cut
        )
    for segment in segments:
        info, span = replace(_info(segment, None), standing="live"), segment.span
        if segment.boundary is not None:
            info = replace(info, boundary=replace(segment.boundary, offset=span.start))
        here = Span(span.start - start + prefix, span.end - start + prefix)
        yield OpenSegment(info, partial(source.pieces, here))


def _merged(
    entries: list[OpenSegment], source: Source, before: Span, size: int, late: Pieces
) -> Iterator[OpenSegment]:
    """Yield the segments of a live file with late bytes inserted after those of `before`."""
    start = before.start
    for entry in entries:
        info, end = entry.info, start + (entry.info.bytes or 0)
        if start >= before.end and info.boundary is not None:
            boundary = replace(info.boundary, offset=info.boundary.offset + size)
            yield replace(entry, info=replace(info, boundary=boundary))
        elif start < before.end <= end:
            first, rest = Span(start, before.end), Span(before.end, end)
            parts = (partial(source.pieces, first), late, partial(source.pieces, rest))
            info = replace(info, bytes=end - start + size)
            yield OpenSegment(info, partial(_chained, *parts), entry.problem)
        else:
            yield entry
        start = end


def _chained(*parts: Pieces) -> Iterator[bytes | memoryview]:
    return chain.from_iterable(part() for part in parts)
