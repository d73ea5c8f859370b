"""A sealed segment as an open file, whatever its form: any bytes of it, by offset.

Rule: a compressed one is decompressed into a file beside it that is gone when it is closed,
by whatever: it has no name, or only for an instant where the system needs one to make a file.
Nothing else in the archive is touched.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sessrotate import fs, names
from sessrotate.errors import DamagedError
from sessrotate.segments.segment_set import content, opened
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
    path = folder / file
    if entry.pruned is not None or path.is_symlink() or not path.is_file():
        yield None
    elif entry.codec == "plain":
        with Source(path) as source:
            yield source
    else:
        with Source(path, fs.scratch(folder)) as source:
            yield source if _decompressed(folder, file, source.fd) else None


def _decompressed(folder: Path, file: str, scratch: int) -> bool:
    try:
        with opened(folder, file) as stream:
            for buffer, size in content(stream, "zstd"):
                with memoryview(buffer) as view:
                    fs.write_all(scratch, view[:size])
    except DamagedError:
        return False
    return True
