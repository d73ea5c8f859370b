"""zstd by the standard library's interface: `compression.zstd` from 3.14 on, its backport before.

Rule: a frame always carries a checksum of its content, and reading one never needs more memory
than `MAX_WINDOW` allows, whatever the frame asks for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Final

from sessrotate.errors import DamagedError
from sessrotate.units import amount

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


LEVEL: Final = 3

MAX_WINDOW: Final = 27
"""Log 2 of the largest window that is read: 128 MiB, as much as `zstd -d` and Codex read."""

_FAR: Final = CompressionParameter.enable_long_distance_matching
_PIECE: Final = 64 * 1024

_JOB: Final = 2 * 1024 * 1024
"""Bytes that a thread compresses at a time; left to itself, zstd takes 8 MiB and many of them."""


def compressor(size: int, threads: int = 0, *, window: int = 0) -> ZstdCompressor:
    """Return a compressor for one frame of `size` bytes, with a content checksum.

    With `threads`, that many compress beside the caller (zstd's manual, `ZSTD_c_nbWorkers`). With a
    `window`, a log 2 of bytes, what stands twice is found that far back: with 27 that takes 152 MiB
    of memory to write, and 136 MiB to read.
    """
    result = ZstdCompressor(
        options={
            CompressionParameter.compression_level: LEVEL,
            CompressionParameter.checksum_flag: 1,
            CompressionParameter.nb_workers: threads,
            **({CompressionParameter.job_size: _JOB} if threads else {}),
            **({_FAR: 1, CompressionParameter.window_log: window} if window else {}),
        }
    )
    result.set_pledged_input_size(size)
    return result


def content_size(fd: int) -> int | None:
    """Return how many bytes the frame that an open file begins with holds; None if it is not said.

    Raises OSError as the system reports.
    """
    return _content_size(os.pread(fd, _HEADER, 0))


def has_checksum(fd: int) -> bool:
    """Tell whether the frame that an open file begins with ends with a checksum.

    The fifth byte of a frame says it (RFC 8878, 3.1.1.1.1). Raises OSError as the system reports.
    """
    descriptor = os.pread(fd, 1, 4)
    return bool(descriptor) and bool(descriptor[0] & 0b100)


def _content_size(head: bytes) -> int | None:
    """Return the same of the frame that begins so."""
    try:
        return get_frame_info(head).decompressed_size
    except ZstdError:
        return None


def decompressed(read: Callable[[int], bytes], most: int) -> Iterator[bytes]:
    """Yield what the frames that `read(size)` gives hold, in pieces of at most `most` bytes.

    Raises DamagedError if they are cut, changed, or no zstd at all, or if reading them takes more
    memory than `MAX_WINDOW` allows.
    """
    try:
        yield from _frames(read, most)
    except ZstdError:
        limit = amount(1 << MAX_WINDOW)
        told = (
            f"its compressed data is damaged, or needs more than {limit} of memory to read (then "
            "`zstd -d --long=31` reads it)"
        )
        raise DamagedError(told) from None


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


_HEADER: Final = 18
"""Bytes of the longest header of a frame."""
