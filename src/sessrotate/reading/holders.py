"""The segments of a session and where their bytes are read from, whatever holds them.

Rule: only reads, and opens a segment when its bytes are asked for. Three things hold a session: a
live file with its archive, a folder of segments, and a single file that was never split.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Literal

from sessrotate import clients
from sessrotate.clients.claude import client as claude
from sessrotate.errors import DamagedError, storage
from sessrotate.model import Boundary, Segment, Span
from sessrotate.parsing.records import LONGEST
from sessrotate.reading import stitch
from sessrotate.segments import dating, plan, scan
from sessrotate.segments.files import Part, SegmentSet, beginning, body, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.archive.history import Piece
    from sessrotate.archive.state import State
    from sessrotate.clients.protocol import Client
    from sessrotate.system.source import Source

    Pieces = Callable[[], Iterator[bytes | memoryview]]
    """Gives a segment's bytes from their beginning; each piece is valid until the next."""

Standing = Literal["live", "sealed"]


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """One segment of a session.

    `bytes` is its size in the history, None where that takes reading it. `boundary` is the
    compaction that opens it; the times are those of its first and last dated records, ISO 8601.
    `lines` are counted in the manifest alone. Each is None where there is none, or where the
    archive does not say.
    """

    index: int
    bytes: int | None
    boundary: Boundary | None
    first_timestamp: str | None
    last_timestamp: str | None
    standing: Standing
    lines: int | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """A segment, how to read it, and why that is of no use if it is not."""

    info: SegmentInfo
    pieces: Pieces
    problem: str | None = None


def of_state(found: State) -> list[Body]:
    """Return the segments of a session in place, the live ones last.

    Raises DamagedError if the live file does not go on from its archive.
    """
    pieces, parts = found.history(), stitch.parts(found)
    listed = found.listed.segments if found.listed is not None else ()
    problems = {} if parts is None else unreadable(parts)
    bodies = [
        Body(
            _info(listed[piece.index].segment, listed[piece.index].lines),
            _piece(found, piece, parts),
            None if piece.where == "pack" else problems.get(piece.index),
        )
        for piece in pieces
        if piece.index is not None
    ]
    start = listed[-1].segment.span.end if listed else 0
    loose = [piece for piece in pieces if piece.index is None]
    if found.live is not None and loose and loose[0].where == "live":
        begin = loose[0].span
        entries = list(_live(found.live, claude, begin.start, len(bodies), start))
        for piece in loose[1:]:  # what came late to a file that was replaced, then the rest
            if piece.where != "live":
                late = _piece(found, piece, parts)
                entries = list(_merged(entries, found.live, begin, piece.span.size, late))
        return bodies + entries
    for piece in loose:
        bodies[-1] = _followed(bodies[-1], piece.span.size, _piece(found, piece, parts))
    return bodies


def of_file(source: Source, client: Client) -> list[Body]:
    """Return the segments of a session that was never split; it is read once, for its boundaries.

    Raises as `scan.scan` does.
    """
    return list(_live(source, client, 0, 0, 0))


def client_of(segments: SegmentSet) -> Client:
    """Return whose session the segments of a folder are: by their manifest, else by content.

    Segment 0 says it, and where that is gone the first that is there.
    """

    def head() -> bytes:
        parts = (part for part in segments.parts if part.file is not None)
        return next((beginning(segments.folder, part, clients.HEAD) for part in parts), b"")

    return clients.of_set(segments.client, head)


def of_set(segments: SegmentSet, client: Client) -> list[Body]:
    """Return the segments of a folder. Raises DamagedError if what it holds is no set."""
    problems = unreadable(segments)
    if None in problems:
        raise DamagedError(problems[None])
    return [
        Body(
            _info(part.segment, part.lines)
            if part.segment is not None
            else _look(segments, client, part),
            _part(segments, part),
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


def _look(segments: SegmentSet, client: Client, part: Part) -> SegmentInfo:
    """Return what a segment's first line says, where no manifest does."""
    found: Boundary | None = None
    if part.index and part.file is not None:
        line = bytearray()
        try:
            for piece in body(segments, part):
                line += piece
                if b"\n" in line or len(line) > LONGEST:
                    break
        except DamagedError:
            line = bytearray()
        text = bytes(line).partition(b"\n")[0]
        told = client.boundary([text], Span(0, len(text)))
        found = told if isinstance(told, Boundary) else None
    time = found.timestamp if found is not None else None
    return SegmentInfo(part.index, part.size, found, time, None, "sealed")


def _piece(found: State, piece: Piece, parts: SegmentSet | None) -> Pieces:
    return lambda: stitch.read(found, piece, parts)


def _part(segments: SegmentSet, part: Part) -> Pieces:
    return lambda: body(segments, part)


def _span(source: Source, span: Span) -> Pieces:
    return lambda: iter(source.pieces(span))


def _live(source: Source, client: Client, prefix: int, first: int, start: int) -> Iterator[Body]:
    """Yield the segments of a live file from offset `prefix` on: that is `start` in the history."""
    with storage("read the session"):
        parts = plan.spans(scan.scan(source, client, lambda _done: None), prefix)
        times = list(dating.times(source, client, parts))
    for number, ((span, boundary), (earliest, latest)) in enumerate(zip(parts, times, strict=True)):
        offset = span.start - prefix + start
        opening = replace(boundary, offset=offset) if boundary is not None else None
        info = SegmentInfo(first + number, span.size, opening, earliest, latest, "live")
        yield Body(info, _span(source, span))


def _merged(
    entries: list[Body], source: Source, before: Span, size: int, late: Pieces
) -> Iterator[Body]:
    """Yield the segments of a live file with late bytes in it, behind those of `before`."""
    start = before.start
    for entry in entries:
        info, end = entry.info, start + (entry.info.bytes or 0)
        first, rest = _span(source, Span(start, before.end)), _span(source, Span(before.end, end))
        if start >= before.end and info.boundary is not None:
            boundary = replace(info.boundary, offset=info.boundary.offset + size)
            yield replace(entry, info=replace(info, boundary=boundary))
        elif start < before.end <= end:
            info = replace(info, bytes=end - start + size)
            yield Body(info, partial(_chained, first, late, rest), entry.problem)
        else:
            yield entry
        start = end


def _chained(*parts: Pieces) -> Iterator[bytes | memoryview]:
    return chain.from_iterable(part() for part in parts)


def _followed(entry: Body, size: int, pieces: Pieces) -> Body:
    info = replace(entry.info, bytes=(entry.info.bytes or 0) + size, lines=None)
    return Body(info, lambda: chain(entry.pieces(), pieces()), entry.problem)
