"""A header says what it was given, and nothing that was changed passes for one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.model import LAYOUTS
from sessrotate.segments import headers
from sessrotate.segments.headers import Header

DIGESTS = st.text("0123456789abcdef", min_size=32, max_size=32).map("xxh3_128:".__add__)
COUNTS = st.integers(0, 1 << 62)
NAMES = st.text(max_size=60)

drawn = st.builds(
    Header,
    layout=st.sampled_from(LAYOUTS),
    parent=NAMES,
    root=NAMES,
    index=COUNTS,
    timestamp=st.none() | st.text(max_size=30),
    start=COUNTS,
    digest=DIGESTS,
    parent_digest=DIGESTS,
    segments=COUNTS,
    source_bytes=COUNTS,
)

SAMPLE = Header(
    layout="numbered",
    parent="ID.1.jsonl",
    root="ID",
    index=2,
    timestamp="2026-03-01T12:00:00.000Z",
    start=1000,
    digest="xxh3_128:" + "0a" * 16,
    parent_digest="xxh3_128:" + "0b" * 16,
    segments=3,
    source_bytes=2000,
)


@given(drawn)
def test_a_header_reads_back_as_it_was_written(value: Header) -> None:
    assert headers.parse(headers.line(value)) == value


@given(drawn)
def test_a_header_is_one_line_of_ascii(value: Header) -> None:
    line = headers.line(value)
    assert line.isascii()
    assert line.index(b"\n") == len(line) - 1


def test_a_header_has_the_fields_of_the_proposal_first() -> None:
    assert list(json.loads(headers.line(SAMPLE))) == [
        "type",
        "subtype",
        "parentFile",
        "rootSession",
        "segmentIndex",
        "timestamp",
        "sessrotate",
    ]


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_no_header(data: bytes) -> None:
    assert headers.parse(data) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"segmentIndex":2', b'"segmentIndex":2.0'),
        (b'"segmentIndex":2', b'"segmentIndex":true'),
        (b'"segmentIndex":2', b'"segmentIndex":-2'),
        (b'"segmentIndex":2', b'"segmentIndex":2,"segmentIndex":2'),
        (b'"start":1000', b'"start":' + b"1" * 5000),
        (b"xxh3_128:0a", b"xxh3_128:0A"),
        (b"xxh3_128:0a", b"sha256:0a"),
        (b'"rootSession":"ID"', b'"rootSession":null'),
        (b'"rootSession":"ID"', b'"rootSession":"ID","more":1'),
        (b'"rootSession":"ID"', b'"rootSession": "ID"'),
        (b"ID.1.jsonl", b"\xff"),
        (b'"ID.1.jsonl"', b"[" * 10_000 + b"]" * 10_000),
        (b"ID.1.jsonl", b"x" * 70_000),
    ],
)
def test_a_forged_header_is_none(old: bytes, new: bytes) -> None:
    line = headers.line(SAMPLE)
    assert old in line
    assert headers.parse(line.replace(old, new)) is None
