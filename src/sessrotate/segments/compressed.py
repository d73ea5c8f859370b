"""A segment's compressed file: one frame, read back before anybody goes by it.

Promise: a `Frame` takes a segment's plain bytes and fills a draft; `prove` raises unless what was
written is, decompressed, what the set says of that segment.

Rule: the plain bytes go only after `prove`. Small segments are compressed side by side, `workers`
at a time; a large one has all cores to itself, so that memory stays the same.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessrotate.errors import DamagedError, StorageError, printable
from sessrotate.segments.segment_set import body

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessrotate import fs
    from sessrotate.segments.segment_set import SegmentSet

_LARGE: Final = 16 * 1024 * 1024
"""Bytes from which on one segment occupies all cores by itself."""

_MOST: Final = 2
"""Small segments at a time; each takes 12 MiB or more, with what its thread keeps."""

_CORES: Final = 2
"""Cores that a large segment occupies; each takes about 3 MiB."""


def workers(sizes: Iterable[int]) -> int:
    """Return how many segments are best compressed at a time, if they have so many bytes."""
    return 1 if any(size >= _LARGE for size in sizes) else min(os.cpu_count() or 1, _MOST)


class Frame:
    """A draft that is given plain bytes, `size` of them, and has them compressed."""

    def __init__(self, draft: fs.Draft, size: int) -> None:
        from sessrotate.system import zstd  # noqa: PLC0415 - not needed where nothing is sealed

        self._draft: Final = draft
        threads = min(os.cpu_count() or 1, _CORES) if size >= _LARGE else 0
        self._frame: Final = zstd.compressor(size, threads)

    def append(self, data: bytes | memoryview) -> None:
        """Compress all of `data`."""
        self._draft.append(self._frame.compress(data))

    def finish(self) -> None:
        """Write what is left; nothing can be appended any more."""
        self._draft.append(self._frame.flush())


def prove(segments: SegmentSet, index: int, file: str) -> None:
    """Read a compressed segment back from `file`; raise StorageError if it has changed."""
    part = replace(segments.parts[index], file=file, codec="zstd")
    try:
        for _ in body(segments, part):
            pass
    except DamagedError:
        raise StorageError(
            f"{printable(file)} does not read back as it was written: the disk is failing."
        ) from None
