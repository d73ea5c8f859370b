"""What of a history is in a pack, late lines too: its bytes, and a segment's with what is behind.

Rule: only reads. Whatever readers do for the pack alone is here, and goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessrotate import names
from sessrotate.archive.history import HistorySpan
from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, InUseError, printable
from sessrotate.model import Span
from sessrotate.reading.open_segments import Loose, OpenSegment
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
    """Yield the bytes of a piece of the history that is in the pack.

    A segment that is not sealed yet is compared with its digest. Raises DamagedError if the file
    is gone or has changed.
    """
    if segments is None or piece.index is None:
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


def behind(last: OpenSegment, loose: Iterable[Loose]) -> OpenSegment:
    """Return the last segment with these lines behind it."""
    parts = [partial(each.read, each.span) for each in loose]
    size = (last.info.bytes or 0) + sum(each.span.size for each in loose)
    known = replace(last.info, bytes=size, lines=None)
    return replace(last, info=known, pieces=partial(_chained, last.pieces, *parts))


def _chained(*parts: Pieces) -> Iterator[bytes | memoryview]:
    return chain.from_iterable(part() for part in parts)
