"""A sealed segment as an open file, whatever its form: any bytes of it, by offset.

Rule: one that was pruned counts while it is in the trash. A compressed one is decompressed into a
file beside it that is gone when it is closed, by whatever: it has no name, or only for an instant
where the system needs one to make a file.
Nothing else in the archive is touched.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from io import FileIO
from typing import TYPE_CHECKING

from sessrotate import fs, names
from sessrotate.errors import DamagedError
from sessrotate.model import Span
from sessrotate.segments.segment_set import content
from sessrotate.system import inside
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sessrotate.model import SealedSegment


def file_of(session: str, entry: SealedSegment) -> str:
    """Return where a segment of a session's archive is, seen from the archive; be it the trash."""
    file = names.segment_file(session, "numbered", entry.segment.index, entry.codec)
    return file if entry.pruned is None else f"{names.TRASH}/{file}"


@contextmanager
def sealed(folder: Path, session: str, entry: SealedSegment) -> Iterator[Source | None]:
    """Open a segment of a session's archive; None where it is not there, or is damaged.

    Raises OSError if there is no room for what it is decompressed to.
    """
    file = file_of(session, entry)
    try:
        fd = inside.opened(folder, file)
    except (DamagedError, FileNotFoundError):
        fd = None
    if fd is None:
        yield None
    elif entry.codec == "plain":
        with Source(folder / file, fd) as source:
            yield source if _is_whole(source, entry) else None
    else:
        scratch = _decompressed(fd, folder)
        if scratch is None:
            yield None
            return
        with Source(folder / file, scratch) as source:
            yield source if _is_whole(source, entry) else None


def _is_whole(source: Source, entry: SealedSegment) -> bool:
    """Tell whether what stands behind a segment's header is what was sealed."""
    size, found = source.size(), Fingerprint()
    if size < entry.segment.span.size:
        return False
    for piece in source.pieces(Span(size - entry.segment.span.size, size)):
        found.update(piece)
    return found.digest == entry.digest


def _decompressed(fd: int, folder: Path) -> int | None:
    """Return an open file without a name of what a compressed one holds; None if it is damaged."""
    with FileIO(fd, "rb") as stream, suppress(DamagedError):
        pieces = (memoryview(data)[:size] for data, size in content(stream, "zstd"))
        return fs.scratch(folder, pieces)
    return None
