"""A piece of a session's history → its bytes, from whichever file of the archive holds them.

Rule: only reads. A sealed segment and one that is still in the pack are compared with their digests
while they pass; damage is an error at the latest behind the last byte. What another run moves away
meanwhile is not damaged: who reads is told to try again.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from sessrotate import names
from sessrotate.archive import late_lines, state
from sessrotate.archive.history import HistorySpan
from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, InUseError, printable
from sessrotate.model import Span
from sessrotate.segments import load
from sessrotate.segments.segment_set import SegmentFile, SegmentSet, body
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source


def archived(found: State) -> SegmentSet | None:
    """Return the segments in a session's archive, None if nothing is archived."""
    if found.listed is None:
        return None
    return load.of_manifest(found.place.archive, found.listing, found.listed)


def read(found: State, piece: HistorySpan, segments: SegmentSet | None) -> Iterator[memoryview]:
    """Yield the bytes of one piece of a session's history; `segments` is what `archived` returned.

    Each view is valid until the next is asked for. Raises DamagedError if the piece is gone or has
    changed, InUseError if another run moved it meanwhile, StorageError if the system reports an
    error.
    """
    try:
        yield from _read(found, piece, segments)
    except DamagedError:
        if state.is_replaced(found):
            raise InUseError("The session was replaced while it was read; try again.") from None
        raise


def _read(found: State, piece: HistorySpan, segments: SegmentSet | None) -> Iterator[memoryview]:
    if piece.where == "live" and found.live is not None:
        yield from _bytes(found.live, piece.span)
    elif piece.where == "late":
        yield from late_lines.kept(found)
    elif segments is None or piece.index is None:
        yield from _bytes(_pack(found), piece.span)
    elif piece.where == "sealed":
        yield from body(segments, segments.parts[piece.index])
    else:
        yield from _from_pack(found, segments, segments.parts[piece.index], piece.span)


def _pack(found: State) -> Source:
    if found.pack is None:
        raise DamagedError(f"{printable(str(found.place.pack))} is gone.")
    return found.pack


def _bytes(source: Source, span: Span) -> Iterator[memoryview]:
    return map(memoryview, source.pieces(span))


def _from_pack(
    found: State, segments: SegmentSet, part: SegmentFile, span: Span
) -> Iterator[memoryview]:
    """Yield a segment that is not sealed yet, or was while it was read: then from its file."""
    pack, done, read = _pack(found), 0, Fingerprint()
    try:
        for data in _bytes(pack, span):
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
