"""What the archive of a session holds: sizes, compactions, and its first and last bytes.

Rule: only reads, and of segments only the edges. The manifest says what they are; on the disk is
what all files of the archive take in blocks, the trash and an archived session included.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import names
from sessrotate.archive import away_file
from sessrotate.archive.place import Place
from sessrotate.archive.record import Record
from sessrotate.clients.preview import EDGE
from sessrotate.errors import SessrotateError
from sessrotate.model import Segment
from sessrotate.reports import file_edges
from sessrotate.reports.file_edges import Edges
from sessrotate.segments import live_header, load, manifest, segment_set
from sessrotate.segments.manifest import Manifest
from sessrotate.system.disk_use import allocated

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread


class ArchiveSummary(Struct, frozen=True):
    """What an archive holds. Sizes are bytes, times nanoseconds since 1970.

    `content_bytes` is the history that it holds, not compressed and without what was pruned, None
    if its manifest cannot be read. `away` are the edges of a live file that was archived (of a
    compressed one only the first), and `used` is when its last record was written, empty where that
    is not known. `head` is the beginning of the oldest segment.
    `disk_bytes` are the blocks of the disk that all of it takes, its folders among it, and
    `waiting_bytes` those of replaced live files that somebody may still write to. `is_busy`: a
    rotation or restoration was interrupted.
    """

    content_bytes: int | None
    disk_bytes: int
    modified: int
    segments: tuple[Segment, ...] = ()
    head: bytes = b""
    away: Edges | None = None
    used: str = ""
    waiting_bytes: int = 0
    is_busy: bool = False

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

_WAITING: Final = f"{names.WAITING}/"


def look(where: Place, unread: Unread, live: Edges | None = None) -> ArchiveSummary | None:
    """Return what the archive of a session holds, None if it is empty.

    `live` are the edges of the live file. Where that is whole again, nothing of the history counts
    as archived. Before a swap, the archive has another name of it, which takes nothing more of the
    disk.
    """
    files, waiting_bytes, taken, modified = set[str](), 0, 0, 0
    here = None if live is None else live.file
    try:
        for name, status in _below(str(where.archive)):
            taken += allocated(status) if (status.st_dev, status.st_ino) != here else 0
            if stat.S_ISDIR(status.st_mode) or names.is_hidden(name.rpartition("/")[2]):
                continue
            files.add(name)
            waiting_bytes += allocated(status) if name.startswith(_WAITING) else 0
        folder = where.archive.stat()
        modified, taken = folder.st_mtime_ns, taken + allocated(folder)
    except OSError as error:
        unread(str(where.archive), error.strerror or "")
        return ArchiveSummary(None, taken, modified)
    if not files:
        return None
    found = ArchiveSummary(0, taken, modified, waiting_bytes=waiting_bytes)
    try:
        is_asked = live is None or names.RECORD in files  # most have neither
        told = away_file.told(where) if is_asked else Record(where.session)
        found = replace(found, is_busy=told.intent is not None or names.PACK in files)
        if told.away is not None:
            found = replace(_away(where, found), used=told.away.used)
        newest = live or found.away
        is_whole = newest is not None and not newest.head.startswith(names.ROTATED)
        if is_whole and told.restored is not None:
            return found
        if names.MANIFEST in files:
            data = load.read_small(where.archive, names.MANIFEST, manifest.MAX_BYTES)
            is_sure = told.intent is None or newest is None
            listed = manifest.parse(data)
            counted = listed if is_sure else manifest.until(listed, _counted(where, newest))
            found = found if counted is None else _listed(where, counted, found)
        elif told.away is None:
            found = replace(found, content_bytes=None)
    except SessrotateError as error:
        unread(str(where.archive), str(error))
        found = replace(found, content_bytes=None)
    return found


def _below(folder: str) -> list[tuple[str, os.stat_result]]:
    """Return what is in an archive and in the folders in it: names and facts, one look at each."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                found.append((entry.name, entry.stat(follow_symlinks=False)))
                if entry.is_dir(follow_symlinks=False):
                    within = _below(entry.path)
                    found += [(f"{entry.name}/{name}", status) for name, status in within]
    return found


def _listed(where: Place, listed: Manifest, found: ArchiveSummary) -> ArchiveSummary:
    kept = [sealed for sealed in listed.segments if sealed.pruned is None]
    return replace(
        found,
        content_bytes=sum(sealed.segment.span.size for sealed in kept) + (found.content_bytes or 0),
        segments=tuple(sealed.segment for sealed in listed.segments),
        head=segment_set.beginning_of(where.archive, where.session, listed, EDGE),
    )


def _away(where: Place, found: ArchiveSummary) -> ArchiveSummary:
    source = away_file.opened(where)
    if source is None:
        return found
    with source:
        is_plain = source.path.name == where.live.name
        away = file_edges.of_source(source, source.size(), with_tail=is_plain)
    known = 0 if found.content_bytes is None else found.content_bytes
    header = file_edges.header(where.session, away)
    own = away.size if header is None else max(0, away.size - live_header.prefix(header))
    return replace(found, content_bytes=known + own, away=away)


def _counted(where: Place, newest: Edges | None) -> int:
    """Return how many segments the live file with these edges counts as archived."""
    header = None if newest is None else file_edges.header(where.session, newest)
    return 0 if header is None else header.index
