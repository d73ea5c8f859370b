"""What the archive of a session holds: sizes, compactions, and its first and last bytes.

Rule: only reads, and of segments only the edges. The manifest says what they are; sizes on the
disk are those of all files of the archive, the trash and an archived session included.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sessrotate import names
from sessrotate.archive import archived_file
from sessrotate.clients.preview import EDGE
from sessrotate.errors import SessrotateError
from sessrotate.reports import file_edges
from sessrotate.segments import load, manifest
from sessrotate.segments.segment_set import SegmentFile, beginning
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from sessrotate.archive.place import Place
    from sessrotate.model import SealedSegment, Segment
    from sessrotate.reports.file_edges import Edges, Unread
    from sessrotate.segments.manifest import Manifest


@dataclass(frozen=True, slots=True)
class ArchiveSummary:
    """What an archive holds. Sizes are bytes, times nanoseconds since 1970.

    `content_bytes` is the history that it holds, not compressed and without what was pruned, None
    if its manifest cannot be read. `away` are the edges of a live file that was archived (of a
    compressed one only the first), `head` and `tail` those of the oldest and newest segment.
    """

    content_bytes: int | None
    disk_bytes: int
    modified: int
    segments: tuple[Segment, ...] = ()
    head: bytes = b""
    tail: bytes = b""
    away: Edges | None = None

    @property
    def compactions(self) -> int:
        """How many compactions open archived segments."""
        return sum(segment.boundary is not None for segment in self.segments)

    @property
    def boundaries(self) -> frozenset[str]:
        """The uuids of these compactions."""
        found = (segment.boundary for segment in self.segments)
        return frozenset(each.uuid for each in found if each is not None and each.uuid is not None)


NOTHING: Final = ArchiveSummary(0, 0, 0)
"""What a session without an archive has there."""


def look(where: Place, unread: Unread) -> ArchiveSummary | None:
    """Return what the archive of a session holds, None if it is empty."""
    files, disk_bytes, modified = set[str](), 0, 0
    try:
        for name, size in _files(str(where.archive)):
            files.add(name)
            disk_bytes += size
        modified = where.archive.stat().st_mtime_ns
    except OSError as error:
        unread(str(where.archive), error.strerror or "")
        return ArchiveSummary(None, disk_bytes, modified)
    if not files:
        return None
    found = ArchiveSummary(0, disk_bytes, modified)
    try:
        if names.MANIFEST in files:
            data = load.read_small(where.archive, names.MANIFEST, manifest.MAX_BYTES)
            found = _listed(where, manifest.parse(data), found)
        elif names.ARCHIVED_NOTE not in files:
            found = replace(found, content_bytes=None)
        if names.ARCHIVED_NOTE in files:
            found = _away(where, found)
    except SessrotateError as error:
        unread(str(where.archive), str(error))
        found = replace(found, content_bytes=None)
    return found


def _files(folder: str) -> list[tuple[str, int]]:
    """Return the files of an archive and of the folders in it: their names, their sizes."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    found += [(f"{entry.name}/{name}", size) for name, size in _files(entry.path)]
                else:
                    found.append((entry.name, entry.stat(follow_symlinks=False).st_size))
    return found


def _listed(where: Place, listed: Manifest, found: ArchiveSummary) -> ArchiveSummary:
    kept = [sealed for sealed in listed.segments if sealed.pruned is None]
    head = tail = b""
    if kept:
        first, last = _part(where, kept[0]), _part(where, kept[-1])
        head = beginning(where.archive, first, EDGE)
        if last.codec == "plain":
            with suppress(SessrotateError), Source.inside(where.archive, last.name) as source:
                tail = file_edges.of_source(source, source.size()).tail
    return replace(
        found,
        content_bytes=sum(sealed.segment.span.size for sealed in kept),
        segments=tuple(sealed.segment for sealed in listed.segments),
        head=head,
        tail=tail,
    )


def _away(where: Place, found: ArchiveSummary) -> ArchiveSummary:
    source = archived_file.opened(where)
    if source is None:
        return found
    with source:
        is_plain = source.path.name == where.live.name
        away = file_edges.of_source(source, source.size(), with_tail=is_plain)
    known = 0 if found.content_bytes is None else found.content_bytes
    return replace(found, content_bytes=known + away.size, away=away)


def _part(where: Place, sealed: SealedSegment) -> SegmentFile:
    index, codec = sealed.segment.index, sealed.codec
    name = names.segment_file(where.session, "numbered", index, codec)
    return SegmentFile(index, name, name, codec)
