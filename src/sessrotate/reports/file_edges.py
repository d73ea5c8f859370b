"""The first and last bytes of a session file, and the compactions that they show.

Rule: only reads, at most `EDGE` bytes at each end, and nothing that the client writes meanwhile.
What it says of compactions is what a scan of the whole file would say, or None.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import clients
from sessrotate.clients.common import passing_over
from sessrotate.clients.preview import EDGE, Sight, edges_of
from sessrotate.clients.protocol import Client
from sessrotate.model import Boundary, Span
from sessrotate.platforms import BINARY, NO_LINK, NO_WAIT
from sessrotate.segments import live_header
from sessrotate.segments.live_header import LiveHeader
from sessrotate.system import inside
from sessrotate.system.disk_use import allocated
from sessrotate.system.source import Source, is_zeros

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread

_FLAGS: Final = os.O_RDONLY | NO_WAIT | NO_LINK | BINARY


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
    fd = os.open(path, _FLAGS)
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
    return live_header.parse(edges.head[: edges.head.find(b"\n") + 1], session)


def _facts(status: os.stat_result) -> tuple[int, int, tuple[int, int]]:
    return status.st_size, status.st_mtime_ns, (status.st_dev, status.st_ino)


def compactions(edges: Edges, client: Client, start: int) -> tuple[int | None, int | None]:
    """Return how many compactions a file has after `start`, and the bytes from the last one on.

    Without a compaction, those are all bytes from `start` on. A figure that the edges do not show
    is None.
    """
    if not edges.is_read:
        return None, None
    if not client.MARKER:
        return 0, edges.size - start
    found: list[Boundary] = []  # the last one first
    data, base = edges.tail, edges.size - len(edges.tail)
    floor = max(0, start - base)
    end = len(data) if client.MARKER in data else floor  # three times as fast as from behind
    while (at := data.rfind(client.MARKER, floor, end)) >= 0:
        begin = data.rfind(b"\n", floor, at) + 1 or floor
        if begin == floor and base + begin != start:
            break  # the line's beginning is not in sight
        stop = data.find(b"\n", at)
        line = Span(base + begin, base + (stop if stop >= 0 else len(data)))
        text = data[begin : line.end - base]
        if isinstance(boundary := client.boundary([text], line), Boundary):
            found.append(boundary)
        end = begin
    else:
        if base <= start:
            if not clients.in_place().edges.is_compacted(found, edges.size):
                return 0, edges.size - start
            return len(found), edges.size - found[0].offset
    return None, edges.size - found[0].offset if found else None
