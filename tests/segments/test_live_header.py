"""The header of a rotated live file: one value, one line, and nothing else is one."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sessrotate.segments import headers
from sessrotate.segments.headers import MAX_LINE, LiveHeader
from sessrotate.system.digest import ZERO

DIGEST: Final = "xxh3_128:" + "0123456789abcdef" * 2

HEADER: Final = LiveHeader(
    root="s",
    index=2,
    timestamp="2026-03-01T12:00:00.000Z",
    start=1000,
    parent_digest=DIGEST,
    carried_bytes=20,
    carried_digest=ZERO,
    boundary_digest=DIGEST,
    judged_bytes=300,
)

digests: Final = st.text("0123456789abcdef", min_size=32, max_size=32).map("xxh3_128:{}".format)
counts: Final = st.integers(0, 2**53 - 1)
# A name that a file can have: a header that says another one is none.
ids: Final = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="/\\\0"),
    min_size=1,
    max_size=80,
).filter(lambda name: name not in {".", ".."})

DRAWN: Final = st.builds(
    LiveHeader,
    root=ids,
    index=st.integers(1, 2**53 - 1),
    timestamp=st.none() | st.text(max_size=30),
    start=counts,
    parent_digest=digests,
    carried_bytes=counts,
    carried_digest=digests,
    boundary_digest=digests,
    judged_bytes=counts,
)


@given(DRAWN)
def test_what_is_written_is_read(header: LiveHeader) -> None:
    line = headers.live_line(header)
    assert headers.parse_live(line, header.root) == header
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert headers.prefix(header) == len(line) + header.carried_bytes


def test_no_client_takes_it_for_a_row() -> None:
    fields: dict[str, Any] = json.loads(headers.live_line(HEADER))
    assert fields["type"] == "segment_header"
    assert not {"uuid", "subtype", "message", "sessionId"} & set(fields)
    assert fields["parentFile"] == "s.1.jsonl"


def test_the_header_of_another_session_is_none() -> None:
    assert headers.parse_live(headers.live_line(HEADER), "other") is None


def test_the_first_live_segment_of_all_has_no_header() -> None:
    assert headers.parse_live(headers.live_line(replace(HEADER, index=0)), "s") is None


@given(st.integers(0, len(headers.live_line(HEADER)) - 1), st.integers(0, 255))
def test_one_changed_byte_makes_another_header_or_none(at: int, byte: int) -> None:
    line = bytearray(headers.live_line(HEADER))
    line[at] = byte
    found = headers.parse_live(bytes(line), "s")
    assert found is None or headers.live_line(found) == bytes(line)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"type":"segment_header"', b'"type":null'),
        (b'"rootSession":"s"', b'"rootSession":"../s"'),
        (b'"parentFile":"s.1.jsonl"', b'"parentFile":"s.0.jsonl"'),
        (b'"segmentIndex":2', b'"segmentIndex":true'),
        (b'"timestamp":"2026-03-01T12:00:00.000Z"', b'"timestamp":1.5'),
        (b'"start":1000', b'"start":-1'),
        (b'"start":1000', b'"start":' + b"1" * 400),
        (DIGEST.encode(), b"../../etc/passwd"),
        (b'"sessrotate":{', b'"sessrotate":{"more":1,'),
    ],
)
def test_a_forged_header_is_none(old: bytes, new: bytes) -> None:
    line = headers.live_line(HEADER)
    assert old in line
    assert headers.parse_live(line.replace(old, new), "s") is None


def test_what_we_do_not_write_is_not_ours() -> None:
    fields = json.loads(headers.live_line(HEADER))
    assert headers.parse_live(_dump({**fields, "more": 1}), "s") is None
    assert headers.parse_live(json.dumps(fields).encode() + b"\n", "s") is None
    assert headers.parse_live(headers.live_line(HEADER)[:-1], "s") is None
    assert headers.parse_live(headers.live_line(HEADER) * 2, "s") is None
    assert headers.parse_live(b'{"type":"segment_header",' + b"[" * (MAX_LINE - 100), "s") is None


def _dump(fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"
