"""What of a history is in a pack, or came late to a replaced file: its bytes, and its place.

Rule: only reads. Whatever readers do for the pack alone is here, and goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessrotate import names
from sessrotate.archive import late_lines
from sessrotate.archive.history import HistorySpan
from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, InUseError, SessrotateError, printable
from sessrotate.model import Span
from sessrotate.reading.open_segments import Loose, OpenSegment, SegmentInfo
from sessrotate.segments.segment_set import Problem, SegmentFile, SegmentSet, body
from sessrotate.system import locks
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from sessrotate.reading.open_segments import Pieces


def interrupted(found: State) -> Iterator[Problem]:
    """Yield a problem if a run was interrupted, unless one is at work just now."""
    is_begun = found.intent is not None or found.pack is not None
    if is_begun and not locks.is_held(found.place.lock):
        command = "rotate" if found.intent is None else found.intent.finished_by
        finishes = f"`sessrotate {command} {printable(found.place.session)}` finishes it."
        yield Problem("leftover", f"A run was interrupted: {finishes}")


def read(
    found: State, segments: SegmentSet | None, piece: HistorySpan
) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a piece of the history that is in the pack, or late.

    A segment that is not sealed yet is compared with its digest. Raises DamagedError if the file
    is gone or has changed.
    """
    if piece.where == "late":
        yield from late_lines.kept(found)
    elif segments is None or piece.index is None:
        yield from _pack(found).pieces(piece.span)
    else:
        yield from _segment(found, segments, segments.parts[piece.index], piece.span)


def _pack(found: State) -> Source:
    if found.pack is None:
        raise DamagedError(f"{printable(str(found.place.pack))} is gone.")
    return found.pack


def _segment(
    found: State, segments: SegmentSet, part: SegmentFile, span: Span
) -> Iterator[bytes | memoryview]:
    """Yield a segment that is not sealed yet, or was while it was read: then from its file."""
    pack, done, read = _pack(found), 0, Fingerprint()
    try:
        for data in pack.pieces(span):
            read.update(data)
            yield data
            done += len(data)
    except InUseError:
        for view in body(segments, replace(part, file=part.name)):
            known = min(done, len(view))
            done -= known
            yield view[known:]
        return
    if read.digest != part.digest:
        raise DamagedError(f"Segment {part.index} has changed in the {names.PACK}.")


def with_late(live: Iterable[OpenSegment], loose: Sequence[Loose]) -> list[OpenSegment]:
    """Return the segments of a live file with what came late to the replaced one.

    The first of `loose` is what of the live file stands before it.
    """
    entries = [*live]
    for late in loose[1:]:
        if late.file is None:
            entries = [*_merged(entries, loose[0], late)]
    return entries


def behind(last: OpenSegment, loose: Iterable[Loose]) -> OpenSegment:
    """Return the last segment with what there is behind it, where no live file begins that."""
    parts = [partial(each.read, each.span) for each in loose]
    size = (last.info.bytes or 0) + sum(each.span.size for each in loose)
    known = replace(last.info, bytes=size, lines=None)
    return replace(last, info=known, pieces=partial(_chained, last.pieces, *parts))


def _merged(entries: Iterable[OpenSegment], before: Loose, late: Loose) -> Iterator[OpenSegment]:
    """Yield the segments of a live file with late lines inserted after those of `before`."""
    start, at, size = before.span.start, before.span.end, late.span.size
    for entry in entries:
        info, end = entry.info, start + (entry.info.bytes or 0)
        if start >= at and info.boundary is not None:
            boundary = replace(info.boundary, offset=info.boundary.offset + size)
            yield replace(entry, info=replace(info, boundary=boundary))
        elif start < at <= end:
            first, rest = Span(start, at), Span(at, end)
            reads = (before.read, first), (late.read, late.span), (before.read, rest)
            parts = [partial(read, span) for read, span in reads]
            info = replace(info, bytes=end - start + size)
            yield OpenSegment(info, partial(_chained, *parts), entry.problem)
        else:
            yield entry
        start = end


def _chained(*parts: Pieces) -> Iterator[bytes | memoryview]:
    return chain.from_iterable(part() for part in parts)


def late(
    folder: Path, listing: frozenset[str], index: int, stack: ExitStack
) -> Iterator[OpenSegment]:
    """Yield the late lines that wait in a file of their own, unless the pack has them still."""
    if names.LATE not in listing:
        return
    with suppress(SessrotateError):
        found = stack.enter_context(Source.inside(folder, names.LATE))
        size = found.size()
        if names.PACK in listing:
            pack = stack.enter_context(Source.inside(folder, names.PACK))
            end = pack.size()
            if end >= size and all(
                one == other
                for one, other in zip(
                    pack.pieces(Span(end - size, end)), found.pieces(Span(0, size)), strict=True
                )
            ):
                return
        info = SegmentInfo(index, size, None, None, None, "sealed")
        yield OpenSegment(info, partial(found.pieces, Span(0, size)))
