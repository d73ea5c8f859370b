"""A manifest that is lost or damaged, made again from the segments and the live file.

Rule: only what proves itself. Every segment's header must fit its neighbours, the live file's
header must end the chain, and every body must have its digest; else there is no manifest. What only
the lost one said (pins, notes, when segments were pruned) stays unknown, and it is marked as made
again: nothing is pruned by it before its owner agrees.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import partial
from typing import Final

from msgspec.structs import replace

from sessrotate import clients, fs, names, units
from sessrotate.archive import clock, misfits
from sessrotate.archive.state import State
from sessrotate.clients.common import listed
from sessrotate.errors import DamagedError, printable
from sessrotate.model import Boundary, Pruned, SealedSegment, Segment, Span
from sessrotate.segments import header_chain, manifest, scan
from sessrotate.segments.manifest import Manifest
from sessrotate.segments.segment_set import SegmentFile, SegmentSet, body
from sessrotate.system.digest import Tally

RULE: Final = "before its manifest was lost"
"""Of the tombstones of segments that are in the trash."""


def is_lost(found: State) -> bool:
    """Tell whether a live file goes on from an archive that lacks its manifest, and only that."""
    if found.header is None or found.manifest is not None or found.deed not in {None, "finish"}:
        return False
    there = {*names.segments_among(found.listing, found.place.session), *_trashed(found)}
    return bool(there) and not misfits.missing(found)


def _trashed(found: State) -> list[str]:
    """Return the session's segments that are in the archive's trash and not in the archive.

    Raises DamagedError unless the trash is a folder: what a link leads to is not ours to move.
    """
    trash = found.place.archive / names.TRASH
    if trash.is_symlink() or (trash.exists() and not trash.is_dir()):
        raise DamagedError(f"{printable(str(trash))} is not a folder: move it away.")
    there = (path.name for path in listed(trash) if path.is_file() and not path.is_symlink())
    session = found.place.session
    return [name for name in names.segments_among(there, session) if name not in found.listing]


def rebuild(found: State) -> None:
    """Put a new manifest in the place of the one that was lost; a damaged one is kept beside it.

    Segments in the trash get their tombstones back, as if they were pruned now. Raises DamagedError
    and changes nothing if the segments do not prove themselves.
    """
    archive, pruned = found.place.archive, _trashed(found)
    if pruned:
        fs.move_files(archive / names.TRASH, pruned, archive)
    try:
        data = manifest.dump(_made(found, frozenset(pruned)))
    except DamagedError:
        fs.move_files(archive, pruned, archive / names.TRASH)
        raise
    _replace(found, data)
    if pruned:
        fs.move_files(archive, pruned, archive / names.TRASH)


def as_if(found: State) -> State:
    """Return what will be found when the manifest was made again; change nothing.

    Unless some segments are in the trash, from where `rebuild` reads them only once they are back.
    Raises DamagedError if the segments do not prove themselves.
    """
    if _trashed(found):
        return found
    made = _made(found, frozenset())
    return replace(found, manifest=made, listed=made, problem=None)


def _replace(found: State, data: bytes) -> None:
    path, number = found.place.archive / names.MANIFEST, 1
    while os.path.lexists(kept := path.with_name(f"{path.name}.damaged.{number}")):
        number += 1
    if path.name in found.listing:
        fs.rename_files({path: kept})
    fs.create_file_at_once(path, data)


def _made(found: State, pruned: Collection[str]) -> Manifest:
    """Return the manifest that was lost; every segment is read for it.

    Those of these names were pruned. What only a scan would tell (when a segment's last record was
    written) stays unknown. Raises DamagedError if the segments do not prove themselves.
    """
    place, header = found.place, found.header
    if header is None:
        raise DamagedError("Without a live file's header the number of segments is unknown.")
    first = names.segment_file(place.session, "numbered", 0)
    folder = header_chain.Folder(place.archive, found.listing.union(pruned))
    segments = header_chain.from_headers(folder, first, header)
    for problem in segments.problems:
        raise DamagedError(problem.detail)
    at, sealed = units.written(clock.stamp()), list[SealedSegment]()
    for part in segments.parts:
        sealed.append(_sealed(segments, part, sealed[-1].segment.span.end if sealed else 0))
    return Manifest(
        session=place.session,
        client=place.client.files.NAME,
        layout="numbered",
        source_bytes=header.start,
        source_digest=None,
        segments=tuple(
            replace(entry, pruned=Pruned(at, RULE)) if part.file in pruned else entry
            for entry, part in zip(sealed, segments.parts, strict=True)
        ),
        is_rebuilt=True,
        project=place.project,
    )


def _sealed(segments: SegmentSet, part: SegmentFile, start: int) -> SealedSegment:
    boundary = told = None
    if part.index:
        # Its client cut out what it began with. Were that not so, the header would not be the
        # segment's, and it would be found damaged.
        client, read = clients.in_place().files, partial(body, segments, part)
        told = scan.boundary(client, read, start)
        boundary = told or Boundary(start, timestamp=scan.time(client, read))
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
        is_cut=boundary is not told,
    )
    return SealedSegment(segment, tally.digest, tally.lines, part.codec)
