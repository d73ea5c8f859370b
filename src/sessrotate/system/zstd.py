"""zstd by the standard library's interface: `compression.zstd` from 3.14 on, its backport before.

Rule: a frame always carries a checksum of its content, and reading one never needs more memory
than `MAX_WINDOW` allows, whatever the frame asks for.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from sessrotate.errors import DamagedError

if sys.version_info >= (3, 14):
    from compression.zstd import (
        CompressionParameter,
        DecompressionParameter,
        ZstdCompressor,
        ZstdDecompressor,
        ZstdError,
        get_frame_info,
    )
else:
    from backports.zstd import (
        CompressionParameter,
        DecompressionParameter,
        ZstdCompressor,
        ZstdDecompressor,
        ZstdError,
        get_frame_info,
    )

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LEVEL: Final = 3
MAX_WINDOW: Final = 23
"""Log 2 of the largest window that is read: 8 MiB, which levels up to 19 keep to."""

_PIECE: Final = 64 * 1024

_JOB: Final = 2 * 1024 * 1024
"""Bytes that a thread compresses at a time; left to itself, zstd takes 8 MiB and many of them."""


def compressor(size: int, threads: int = 0) -> ZstdCompressor:
    """Return a compressor for one frame of `size` bytes, with a content checksum.

    With `threads`, that many compress beside the caller (zstd's manual, `ZSTD_c_nbWorkers`).
    """
    result = ZstdCompressor(
        options={
            CompressionParameter.compression_level: LEVEL,
            CompressionParameter.checksum_flag: 1,
            CompressionParameter.nb_workers: threads,
            **({CompressionParameter.job_size: _JOB} if threads else {}),
        }
    )
    result.set_pledged_input_size(size)
    return result


def content_size(head: bytes) -> int | None:
    """Return how many bytes the frame that begins so says that it holds, None if it does not."""
    try:
        return get_frame_info(head).decompressed_size
    except ZstdError:
        return None


def decompressed(read: Callable[[int], bytes], most: int) -> Iterator[bytes]:
    """Yield what the frames that `read(size)` gives hold, in pieces of at most `most` bytes.

    Raises DamagedError if they are cut, changed, or no zstd at all.
    """
    try:
        yield from _frames(read, most)
    except ZstdError:
        raise DamagedError("its compressed data is damaged") from None


def _frames(read: Callable[[int], bytes], most: int) -> Iterator[bytes]:
    data = read(_PIECE)
    while data:
        frame = ZstdDecompressor(options={DecompressionParameter.window_log_max: MAX_WINDOW})
        while not frame.eof:
            if frame.needs_input and not data:
                data = read(_PIECE)
                if not data:
                    raise DamagedError("its compressed data ends too early")
            piece = frame.decompress(data, most)
            data = b""
            if piece:
                yield piece
        data = frame.unused_data or read(_PIECE)
