"""A sealed segment as an open file, whatever its form: any bytes of it, by offset.

Rule: a compressed one is decompressed into a file without a name beside it, which is gone when it
is closed, by whatever. The archive itself is only read.
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
        with fs.nameless(where.archive) as scratch:
            if scratch is None or not _decompressed(where, file, scratch):
                yield None
            else:
                with Source(scratch.path) as source:
                    yield source


def _decompressed(where: Place, file: str, scratch: fs.Nameless) -> bool:
    try:
        with opened(where.archive, file) as stream:
            for buffer, size in content(stream, "zstd"):
                with memoryview(buffer) as view:
                    scratch.append(view[:size])
    except DamagedError:
        return False
    return True
