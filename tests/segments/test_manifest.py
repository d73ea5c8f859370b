"""A manifest reads back as it was written, and anything else is an error and no other."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.errors import DamagedError
from sessrotate.model import CODECS, LAYOUTS, Boundary, SealedSegment, Segment, Span
from sessrotate.segments import manifest
from sessrotate.segments.manifest import Manifest
from support.examples import examples

DIGEST = "xxh3_128:" + "0" * 32
TEXTS = st.none() | st.text(max_size=20)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    sizes = draw(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=4))
    sealed, position = [], 0
    for index, size in enumerate(sizes):
        boundary = Boundary(
            position, draw(TEXTS), draw(TEXTS), draw(TEXTS), draw(st.none() | st.integers(0, 10**6))
        )
        span = Span(position, position + size)
        segment = Segment(index, span, boundary if index else None, draw(TEXTS), draw(TEXTS))
        codec = draw(st.sampled_from(CODECS))
        sealed.append(SealedSegment(segment, DIGEST, draw(st.integers(0, 99)), codec))
        position += size
    layout = draw(st.sampled_from(LAYOUTS))
    return Manifest(draw(st.text()), "claude", layout, position, DIGEST, tuple(sealed))


@given(manifests())
def test_a_manifest_reads_back_as_it_was_written(value: Manifest) -> None:
    assert manifest.parse(manifest.dump(value)) == value


@given(manifests(), st.data())
@examples(300)
def test_a_manifest_with_a_changed_byte_is_damaged_or_another_sound_one(
    value: Manifest, data: st.DataObject
) -> None:
    written = bytearray(manifest.dump(value))
    at = data.draw(st.integers(0, len(written) - 1))
    written[at] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(DamagedError):
        assert manifest.dump(manifest.parse(bytes(written))) == written


@given(st.binary(max_size=100) | st.recursive(st.none() | st.integers() | st.text(), st.lists))
def test_anything_else_is_damaged(value: object) -> None:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(DamagedError):
        manifest.parse(data)


@pytest.mark.parametrize(
    "data",
    [b"[" * 200_000, b'{"format":' + b"9" * 5000 + b"}", b"\xff\xfe", b"{}", b"null", b""],
    ids=["deep", "digits", "not utf-8", "empty", "null", "nothing"],
)
def test_hostile_bytes_are_damaged(data: bytes) -> None:
    with pytest.raises(DamagedError):
        manifest.parse(data)


def a_manifest(*segments: Segment, source_bytes: int) -> bytes:
    sealed = tuple(SealedSegment(segment, DIGEST, 1, "plain") for segment in segments)
    return manifest.dump(Manifest("s", "claude", "numbered", source_bytes, DIGEST, sealed))


def a_segment(index: int, start: int, end: int, *, opened: bool | None = None) -> Segment:
    boundary = Boundary(start) if (index > 0 if opened is None else opened) else None
    return Segment(index, Span(start, end), boundary, None, None)


def test_segments_must_adjoin_and_make_up_the_whole() -> None:
    first, second = a_segment(0, 0, 10), a_segment(1, 10, 30)
    manifest.parse(a_manifest(first, second, source_bytes=30))
    for damaged in (
        a_manifest(source_bytes=0),
        a_manifest(first, second, source_bytes=31),
        a_manifest(second, source_bytes=30),
        a_manifest(first, a_segment(1, 11, 30), source_bytes=30),
        a_manifest(first, a_segment(2, 10, 30), source_bytes=30),
        a_manifest(first, a_segment(1, 10, 9), source_bytes=9),
        a_manifest(first, a_segment(1, 10, 30, opened=False), source_bytes=30),
        a_manifest(a_segment(0, 0, 10, opened=True), source_bytes=10),
    ):
        with pytest.raises(DamagedError):
            manifest.parse(damaged)
