"""The first and last bytes of a session, in a file or an archive, and what they show.

Rule: only reads, at most `EDGE` bytes at each end, and nothing that the client writes meanwhile.

The manifest says what the segments of an archive are. On the disk is what all files of it take in
blocks, the trash and an archived session included.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients, names
from sessrotate.archive import away_file
from sessrotate.archive.place import Place
from sessrotate.archive.record import Record
from sessrotate.clients.common import passing_over
from sessrotate.clients.preview import EDGE, Sight, edges_of
from sessrotate.errors import SessrotateError
from sessrotate.model import Segment
from sessrotate.platforms import NO_LINK
from sessrotate.segments import beginning_of, headers, load, manifest
from sessrotate.segments.headers import LiveHeader
from sessrotate.segments.manifest import Manifest
from sessrotate.system import inside
from sessrotate.system.disk_use import allocated
from sessrotate.system.source import Source, is_zeros

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread


class Edges(Struct, frozen=True):
    """The first and last `EDGE` bytes of a file; `head` is all of a file that is not longer.

    `size` is in bytes, `modified` in nanoseconds since 1970, and `file` the device and inode. Both
    edges are empty if the file cannot be read. `disk` is how many bytes of the disk it takes, 0 of
    a file in an archive, which is counted there.
    """

    head: bytes
    tail: bytes
    size: int
    modified: int
    file: tuple[int, int]
    is_read: bool = True
    disk: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether `head` is all of the file."""
        return self.is_read and self.size <= EDGE


NOTHING: Final = Edges(b"", b"", 0, 0, (0, 0), is_read=False)
"""The edges of a file that nothing is known of."""


def seen(path: str, unread: Unread) -> Edges | None:
    """Return the edges of a file, None if it does not exist.

    If it cannot be read, `unread` is called with its path and the reason.
    """
    try:
        return of(path)
    except OSError as error:
        with passing_over(path, unread):
            status = os.stat(path)  # noqa: PTH116 - thousands: no objects
            is_link = os.path.islink(path)  # noqa: PTH114 - as above
            unread(path, inside.LINK if is_link else error.strerror or type(error).__name__)
            return Edges(b"", b"", *_facts(status), is_read=False, disk=allocated(status))
        return None


def has_only_zeros(edges: Edges, path: Path) -> bool:
    """Tell whether a file with these edges has nothing but zeros: it is no session of anybody."""
    is_likely = edges.head[:1] == edges.tail[-1:] == b"\0"
    return is_likely and is_zeros(path)


def of(path: str | os.PathLike[str]) -> Edges:
    """Return the edges of a file.

    Raises OSError if it is not a regular file, which a link is not, or cannot be read.
    """
    fd = inside.open_soon(path, NO_LINK)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        head = tail = os.read(fd, min(EDGE, status.st_size))
        if status.st_size > EDGE:
            os.lseek(fd, status.st_size - EDGE, os.SEEK_SET)  # Windows has no pread
            tail = os.read(fd, EDGE)
    finally:
        os.close(fd)
    return Edges(head, tail, *_facts(status), disk=allocated(status))


def of_source(source: Source, size: int, *, with_tail: bool = True) -> Edges:
    """Return the edges of the first `size` bytes of an open file.

    Without `with_tail`, the last bytes are not read, unless they are the first ones too.
    """
    head, tail = edges_of(source, size, with_tail=with_tail)
    found = source.identity()
    return Edges(head, tail, size, found.modified_ns, (found.device, found.inode))


def sight(session: str, newest: Edges, older: bytes, *, brief: bool = False) -> Sight:
    """Return what is in sight of a session of Claude Code, whose archive begins with `older`.

    That is empty where it was never rotated. In `brief`, only whether somebody used the session,
    and when.
    """
    edges = clients.in_place().edges
    look = edges.brief if brief else edges.of_live
    return look(session, newest.head, newest.tail, older, is_whole=newest.is_whole)


def header(session: str, edges: Edges) -> LiveHeader | None:
    """Return the header of a rotated session's live file, None where it begins with none."""
    return headers.parse_live(edges.head[: edges.head.find(b"\n") + 1], session)


def _facts(status: os.stat_result) -> tuple[int, int, tuple[int, int]]:
    return status.st_size, status.st_mtime_ns, (status.st_dev, status.st_ino)


# ── an archive ────────────────────────────────────────────────────────────────────────────────────


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


NO_ARCHIVE: Final = ArchiveSummary(0, 0, 0)
"""What a session without an archive has there."""

_WAITING: Final = f"{names.WAITING}/"


def archive_of(where: Place, unread: Unread, live: Edges | None = None) -> ArchiveSummary | None:
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
        elif told.away is None or not is_whole:
            found = _unlisted(where, found, unread, is_whole=is_whole)
    except SessrotateError as error:
        unread(str(where.archive), str(error))
        found = replace(found, content_bytes=None)
    return found


def _unlisted(
    where: Place, found: ArchiveSummary, unread: Unread, *, is_whole: bool
) -> ArchiveSummary:
    """Return what an archive without its manifest holds; say so where the session needs it."""
    if not (is_whole or found.is_busy):
        unread(str(where.archive), f"its {names.MANIFEST} is gone: `sessrotate doctor` says more")
    return replace(found, content_bytes=None)


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
        head=beginning_of(where.archive, where.session, listed, EDGE),
    )


def _away(where: Place, found: ArchiveSummary) -> ArchiveSummary:
    source = away_file.opened(where)
    if source is None:
        return found
    with source:
        is_plain = source.path.name == where.live.name
        away = of_source(source, source.size(), with_tail=is_plain)
    known = 0 if found.content_bytes is None else found.content_bytes
    head = header(where.session, away)
    own = away.size if head is None else max(0, away.size - headers.prefix(head))
    return replace(found, content_bytes=known + own, away=away)


def _counted(where: Place, newest: Edges | None) -> int:
    """Return how many segments the live file with these edges counts as archived."""
    head = None if newest is None else header(where.session, newest)
    return 0 if head is None else head.index
