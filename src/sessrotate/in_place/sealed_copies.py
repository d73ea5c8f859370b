"""Copying segments from a live file to compressed files of their own, before it is replaced.

Rule: the live file is only read. Each copy was read back, and all of them are on the disk, before
any gets its name; and they have their names before the live file is replaced. So whoever finds the
new live file finds what it goes on from, too.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import fs, names
from sessrotate.archive.live_tail import first_line
from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, InUseError
from sessrotate.fs import replacing
from sessrotate.fs.replacing import Replacement
from sessrotate.in_place import obstacles
from sessrotate.model import SealedSegment, Span
from sessrotate.segments import compressed, headers, load, segment_set
from sessrotate.segments.manifest import Manifest
from sessrotate.segments.segment_set import SegmentSet
from sessrotate.system.digest import Fingerprint
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
            segment_set.check(segments, entry.segment.index)
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
