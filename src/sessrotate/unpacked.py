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
from sessrotate.segments import content, opened
from sessrotate.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.model import SealedSegment
    from sessrotate.place import Place


@contextmanager
def sealed(where: Place, entry: SealedSegment) -> Iterator[Source | None]:
    """Open a segment of an archive; None where it is not there, or cannot be decompressed.

    Raises OSError if there is no room for what it is decompressed to.
    """
    file = names.segment_file(where.session, "numbered", entry.segment.index, entry.codec)
    path = where.archive / file
    if entry.pruned is not None or path.is_symlink() or not path.is_file():
        yield None
    elif entry.codec == "plain":
        with Source(path) as source:
            yield source
    else:
        with Source(path, fs.scratch(where.archive)) as source:
            yield source if _decompressed(where, file, source.fd) else None


def _decompressed(where: Place, file: str, scratch: int) -> bool:
    try:
        with opened(where.archive, file) as stream:
            for buffer, size in content(stream, "zstd"):
                with memoryview(buffer) as view:
                    fs.write_all(scratch, view[:size])
    except DamagedError:
        return False
    return True
