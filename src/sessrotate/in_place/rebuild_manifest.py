"""A lost manifest, made again from what the segments and the live file say of themselves.

Rule: only what proves itself. Every segment's header must fit its neighbours, the live file's
header must end the chain, and every body must have its digest; else there is no manifest.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sessrotate import names
from sessrotate.clients.claude import client as claude
from sessrotate.errors import DamagedError
from sessrotate.model import Boundary, SealedSegment, Segment, Span
from sessrotate.segments import first_line, header_chain
from sessrotate.segments.manifest import Manifest
from sessrotate.segments.segment_set import body
from sessrotate.system.digest import Tally

if TYPE_CHECKING:
    from sessrotate.archive.state import State
    from sessrotate.segments.segment_set import SegmentFile, SegmentSet


def is_lost(found: State) -> bool:
    """Tell whether a live file goes on from an archive that has lost its manifest."""
    first = names.segment_file(found.place.session, "numbered", 0)
    has_segments = any(
        f"{first}{suffix}" in found.listing for suffix in names.CODEC_SUFFIX.values()
    )
    return (
        found.header is not None
        and found.intent is None
        and found.manifest is None
        and has_segments
    )


def manifest(found: State) -> Manifest:
    """Return the manifest that was lost; every segment is read for it.

    What only a scan would tell (when a segment's last record was written) stays unknown. Raises
    DamagedError if the segments do not prove themselves.
    """
    place, header = found.place, found.header
    if header is None:
        raise DamagedError("Without the header of a live file nobody knows how many there were.")
    first = names.segment_file(place.session, "numbered", 0)
    segments = header_chain.from_headers(place.archive, found.listing, first, header)
    for problem in segments.problems:
        raise DamagedError(problem.detail)
    sealed: list[SealedSegment] = []
    for part in segments.parts:
        sealed.append(_sealed(segments, part, sealed[-1].segment.span.end if sealed else 0))
    return Manifest(
        session=place.session,
        client=claude.NAME,
        layout="numbered",
        source_bytes=header.start,
        source_digest=None,
        segments=tuple(sealed),
    )


def _sealed(segments: SegmentSet, part: SegmentFile, start: int) -> SealedSegment:
    boundary = None
    if part.index:
        # A made-up one makes another header than the segment has, so it is found damaged.
        told = first_line.boundary(claude, partial(body, segments, part), start)
        boundary = told or Boundary(start)
    tally = Tally()
    for piece in body(segments, part):
        data = bytes(piece)
        tally.update(data, len(data))
    segment = Segment(
        index=part.index,
        span=Span(start, start + tally.size),
        boundary=boundary,
        first_timestamp=boundary.timestamp if boundary else None,
        last_timestamp=None,
    )
    return SealedSegment(segment, tally.digest, tally.lines, part.codec)
