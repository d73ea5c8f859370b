"""Segments of an archive: copied from the live file, repaired, and their manifest made again.

Rule: the live file is only read. Each copy was read back, and all of them are on the disk, before
any gets its name; and they have their names before the live file is replaced. So whoever finds the
new live file finds what it goes on from, too.

A manifest is made again only from what proves itself. Every segment's header must fit its
neighbours, the live file's header must end the chain, and every body must have its digest; else
there is no manifest. What only the lost one said (pins, notes, what was pruned) stays unknown, so
every segment is pinned: none is pruned before its owner agrees.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients, fs, names
from sessrotate.archive import misfits
from sessrotate.archive.live_tail import first_line
from sessrotate.archive.state import State
from sessrotate.clients.common import listed
from sessrotate.errors import DamagedError, InUseError, printable
from sessrotate.fs import replacing
from sessrotate.fs.replacing import Replacement
from sessrotate.in_place import obstacles
from sessrotate.model import Boundary, SealedSegment, Segment, Span
from sessrotate.segments import (
    SegmentFile,
    SegmentSet,
    body,
    check,
    compressed,
    header_chain,
    headers,
    load,
    manifest,
    scan,
)
from sessrotate.segments.manifest import Manifest
from sessrotate.system.digest import Fingerprint, Tally
from sessrotate.system.source import Source

BUFFER: Final = 256 * 1024

_BATCH: Final = 256 * 1024 * 1024
"""Bytes of segments that are written before the disk has to have them all."""


class Copying(Struct, frozen=True):
    """What is copied: these `entries` of a manifest to be, of a live file or one that it replaced.

    `shift` is where in the live file the history begins, in bytes; negative where it begins in the
    archive. `spare` bytes of the disk stay free: clients append meanwhile.
    """

    archive: Path
    source: Source
    manifest: Manifest
    entries: tuple[SealedSegment, ...]
    shift: int
    spare: int

    def path(self, entry: SealedSegment) -> Path:
        """Return the name that a segment's file gets."""
        return self.archive / names.sealed_file(self.manifest.session, entry.segment.index)

    def draft(self, entry: SealedSegment) -> Path:
        """Return the name that it has until then."""
        path = self.path(entry)
        return path.with_name(path.name + names.PARTIAL)


def write(copying: Copying, progress: Callable[[int], None]) -> None:
    """Write the segments under their drafts' names; they are on the disk when this returns.

    `progress` is told how many bytes of the history are copied. Raises InUseError if the live file
    has not what was planned any more, OSError as the system reports: also of a disk that would have
    less than `spare` bytes free.
    """
    segments = load.of_manifest(copying.archive, frozenset(), copying.manifest)

    def file(entry: SealedSegment) -> Replacement:
        return Replacement(
            copying.draft(entry), copying.path(entry), partial(_write, copying, segments, entry)
        )

    done = 0
    for batch in replacing.batches(copying.entries, lambda entry: entry.segment.span.size, _BATCH):
        sizes = [entry.segment.span.size for entry in batch]
        replacing.write_drafts([*map(file, batch)], threads=compressed.workers(sizes))
        done += sum(sizes)
        progress(done)


def _write(copying: Copying, segments: SegmentSet, entry: SealedSegment, draft: fs.Draft) -> bool:
    head = segments.parts[entry.segment.index].head
    frame = compressed.Frame(draft, len(head) + entry.segment.span.size)
    frame.append(head)
    if _copied(copying, entry.segment.span, frame.append) != entry.digest:
        raise InUseError("The session was changed while it was read; try again.")
    frame.finish()
    # Before it is synced: what is read comes from memory in any case, and a write that the disk
    # refuses is an error of the sync.
    compressed.prove(segments, entry.segment.index, copying.draft(entry).name)
    return True  # each is wanted


def name(copying: Copying) -> None:
    """Give the segments' files their names, for good. Raises OSError as the system reports."""
    fs.rename_files({copying.draft(entry): copying.path(entry) for entry in copying.entries})


def repair(found: State) -> None:
    """Copy again what the replaced file has, and in the archive is gone or does not read back.

    Raises DamagedError if that file has changed, too.
    """
    begun, pack, listed = found.intent, found.pack, found.manifest
    if begun is None or listed is None:
        return
    segments = load.of_manifest(found.place.archive, found.listing, listed)
    lost, problem = list[SealedSegment](), None
    entries = begun.moved(listed)
    if pack is not None and begun.count:  # it may have more that was archived before
        own = headers.parse_live(first_line(pack), found.place.session)
        entries = listed.segments[0 if own is None else own.index :]
    for entry in entries:
        try:
            check(segments, entry.segment.index)
        except DamagedError as error:
            lost.append(entry)
            problem = error
    if problem is None:
        return
    if pack is None:
        raise problem
    shift = begun.swap.cut - listed.source_bytes
    copying = Copying(found.place.archive, pack, listed, tuple(lost), shift, 0)
    try:
        write(copying, lambda _done: None)
    except InUseError:
        raise problem from None
    name(copying)


def _copied(copying: Copying, span: Span, append: Callable[[memoryview], None]) -> str:
    copied, buffer = Fingerprint(), bytearray(BUFFER)
    with memoryview(buffer) as view:
        for start in range(span.start, span.end, BUFFER):
            if (start - span.start) % obstacles.STEP == 0 and start > span.start:
                _check_room(copying)
            size = min(BUFFER, span.end - start)
            copying.source.fill(view[:size], start + copying.shift)
            copied.update(view[:size])
            append(view[:size])
    return copied.digest


def _check_room(copying: Copying) -> None:
    """Raise OSError of a full disk before it is one: a client's next line must find room."""
    free = fs.free_bytes(copying.archive)
    if free is not None and free < copying.spare + obstacles.STEP:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(copying.archive))


# ── a manifest that is lost or damaged ────────────────────────────────────────────────────────────

_PIN: Final = "its manifest was lost"
"""The note of the pins that every segment gets."""


def is_manifest_lost(found: State) -> bool:
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


def rebuild_manifest(found: State) -> None:
    """Put a new manifest in the place of the one that was lost; a damaged one is kept beside it.

    Segments in the trash move to the archive. Raises DamagedError, and makes no manifest, if the
    segments do not prove themselves.
    """
    archive, trashed = found.place.archive, _trashed(found)
    if trashed:
        fs.move_files(archive / names.TRASH, trashed, archive)
        fs.remove_folder(archive / names.TRASH)
    data = manifest.dump(_made(found, trashed))
    manifest.parse(data)  # or whoever finds it would make it again, and again
    _replace(found, data)


def as_if_rebuilt(found: State) -> State:
    """Return what will be found when the manifest was made again; change nothing.

    Unless some segments are in the trash, from where `rebuild_manifest` reads them only once they
    are back. Raises DamagedError if the segments do not prove themselves.
    """
    if _trashed(found):
        return found
    made = _made(found)
    return replace(found, manifest=made, listed=made, problem=None)


def _replace(found: State, data: bytes) -> None:
    path, number = found.place.archive / names.MANIFEST, 1
    while os.path.lexists(kept := path.with_name(f"{path.name}.damaged.{number}")):
        number += 1
    if path.name in found.listing:
        fs.rename_files({path: kept})
    fs.create_file_at_once(path, data)


def _made(found: State, moved: Sequence[str] = ()) -> Manifest:
    """Return the manifest that was lost, with every segment pinned; each is read for it.

    `moved` are the names of those that came to the archive since it was opened. What only a scan
    would tell (when a segment's last record was written) stays unknown. Raises DamagedError if the
    segments do not prove themselves.
    """
    place, header = found.place, found.header
    if header is None:
        raise DamagedError("Without a live file's header the number of segments is unknown.")
    if not place.project:  # a manifest without one would be no manifest
        name = printable(place.session)
        raise DamagedError(
            f"No record says in which project {name} was: `sessrotate restore {name} --project "
            "FOLDER` brings it back."
        )
    first = names.segment_file(place.session, "numbered", 0)
    folder = header_chain.Folder(place.archive, found.listing.union(moved))
    segments = header_chain.from_headers(folder, first, header)
    for problem in segments.problems:
        raise DamagedError(problem.detail)
    sealed = list[SealedSegment]()
    for part in segments.parts:
        sealed.append(_sealed_of(segments, part, sealed[-1].segment.span.end if sealed else 0))
    return Manifest(
        session=place.session,
        client=place.client.files.NAME,
        layout="numbered",
        source_bytes=header.start,
        source_digest=None,
        segments=tuple(sealed),
        project=place.project,
    )


def _sealed_of(segments: SegmentSet, part: SegmentFile, start: int) -> SealedSegment:
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
    return SealedSegment(segment, tally.digest, tally.lines, part.codec, pin=_PIN)
