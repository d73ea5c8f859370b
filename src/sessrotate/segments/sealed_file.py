"""A sealed segment as an open file, whatever its form: any bytes of it, by offset.

Rule: a compressed one is decompressed into a file beside it that is gone when it is closed,
by whatever: it has no name, or only for an instant where the system needs one to make a file.
Nothing else in the archive is touched.
"""

from __future__ import annotations

from contextlib import contextmanager
from io import FileIO
from typing import TYPE_CHECKING

from sessrotate import fs, names
from sessrotate.errors import DamagedError
from sessrotate.segments.segment_set import content
from sessrotate.system import inside
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sessrotate.model import SealedSegment


@contextmanager
def sealed(folder: Path, session: str, entry: SealedSegment) -> Iterator[Source | None]:
    """Open a segment of a session's archive; None where it is not there, or cannot be decompressed.

    Raises OSError if there is no room for what it is decompressed to.
    """
    file = names.segment_file(session, "numbered", entry.segment.index, entry.codec)
    try:
        fd = None if entry.pruned is not None else inside.opened(folder, file)
    except (DamagedError, FileNotFoundError):
        fd = None
    if fd is None:
        yield None
    elif entry.codec == "plain":
        with Source(folder / file, fd) as source:
            yield source
    else:
        with FileIO(fd, "rb") as stream, Source(folder / file, fs.scratch(folder)) as source:
            yield source if _decompressed(stream, source.fd) else None


def _decompressed(stream: FileIO, scratch: int) -> bool:
    try:
        for buffer, size in content(stream, "zstd"):
            with memoryview(buffer) as view:
                fs.write_all(scratch, view[:size])
    except DamagedError:
        return False
    return True
