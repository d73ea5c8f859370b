"""Compressed bytes come back, or are an error that says damaged."""

from __future__ import annotations

import contextlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.errors import DamagedError
from sessrotate.system import zstd


def compressed(data: bytes) -> bytes:
    frame = zstd.compressor(len(data))
    return frame.compress(data) + frame.flush()


def decompressed(data: bytes, most: int = 1 << 16) -> bytes:
    return b"".join(zstd.decompressed(io.BytesIO(data).read, most))


@given(st.binary(max_size=3_000) | st.just(b"abc" * 100_000), st.integers(1, 100_000))
def test_bytes_come_back_in_pieces_no_larger_than_asked(data: bytes, most: int) -> None:
    pieces = list(zstd.decompressed(io.BytesIO(compressed(data)).read, most))
    assert b"".join(pieces) == data
    assert max(map(len, pieces), default=0) <= most


@given(st.binary(max_size=300), st.data())
def test_a_changed_or_cut_frame_is_damaged_or_gives_the_same(
    data: bytes, drawn: st.DataObject
) -> None:
    frame = bytearray(compressed(data))
    at = drawn.draw(st.integers(0, len(frame) - 1))
    if drawn.draw(st.booleans()):
        frame[at] ^= drawn.draw(st.integers(1, 255))
    else:
        del frame[at:]
    with contextlib.suppress(DamagedError):
        assert decompressed(bytes(frame)) in (data, b"")


def test_the_checksum_is_there() -> None:
    assert compressed(b"x" * 100)[4] & 0b100


def test_frames_one_behind_the_other_are_one_content() -> None:
    assert decompressed(compressed(b"one ") + compressed(b"two")) == b"one two"


def test_a_frame_that_wants_too_much_memory_is_refused() -> None:
    # A frame header that asks for a window of 2 GiB: magic, descriptor, window 2^31.
    with pytest.raises(DamagedError):
        decompressed(b"\x28\xb5\x2f\xfd\x00" + bytes([(31 - 10) << 3]) + b"\x01\x00\x00")
