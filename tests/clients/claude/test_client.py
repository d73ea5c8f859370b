"""What Claude Code's files are recognised by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.claude import client as claude
from sessrotate.parsing import json_line
from support.lines import row


@pytest.mark.parametrize(
    ("head", "is_session"),
    [
        (row() + b"\n", True),
        (b"torn\x00\n" + row() + b"\n", True),
        (b'{"type":"summary","summary":"x","leafUuid":"y"}\n', True),
        (b'{"type":"user","message":"' + b"a" * 300_000, True),
        (b' { "type" :', True),
        (b"", False),
        (b"\n\n\n", False),
        (b"\x7fELF\x02\x01\x01" + b"\x00" * 90, False),
        (b"PK\x03\x04", False),
        (b'{"name":"a package","version":"1.0.0"}\n', False),
        (b'[{"type":"user","sessionId":"x"}]\n', False),
        (b'{"timestamp":"t","type":"session_meta","payload":{"id":"x"},"uuid":"y"}\n', False),
        (b'{"name":"a package","version":1}', False),
        (b'{"a":1}\n{"a":2}', False),
        (b'{"a": broken', False),
        (b"plain text, and more of it\n", False),
    ],
)
def test_a_file_is_recognised_by_a_row_that_belongs_to_a_session(
    head: bytes, is_session: bool
) -> None:
    is_whole = len(head) < 1_000 and head != b' { "type" :'
    assert claude.recognise(head, is_whole=is_whole) == is_session


@pytest.mark.parametrize(
    ("line", "time"),
    [
        (row(5), "2026-03-01T12:00:05.000Z"),
        (b'{"timestamp":"2026-03-01T12:00:05+02:00"}', "2026-03-01T12:00:05+02:00"),
        (b'{"timestamp":"2026-03-01"}', None),
        (b'{"timestamp":"2026-03-01T12:00:05Z\\u001b[31m"}', None),
        (b'{"timestamp":1700000000}', None),
        (b'{"snapshot":{"timestamp":"2026-03-01T12:00:05Z"}}', None),
        (b"no json", None),
    ],
)
def test_a_time_is_the_records_own_and_looks_like_one(line: bytes, time: str | None) -> None:
    assert claude.timestamp([line], len(line)) == time


TIME = "2026-03-01T12:00:05.000Z"
_PARTS = st.binary(max_size=3) | st.sampled_from(
    [b'"timestamp":"2026-03-02T10:00:00Z",', b'"timestamp":5,', b"NaN", b"\\ud800", b"\xef\xbb\xbf"]
)


@given(st.lists(st.tuples(st.integers(0, len(row(5))), _PARTS, st.integers(0, 2)), max_size=3))
def test_a_time_is_what_json_says_it_is(edits: list[tuple[int, bytes, int]]) -> None:
    line = row(5)
    for at, part, cut in edits:
        line = line[:at] + part + line[at + cut :]
    parsed = json_line.values([line], len(line), {"timestamp": None}) or {}
    told, found = parsed.get("timestamp"), claude.timestamp([line], len(line))
    assert found is None or found == told
    assert told != TIME or found == TIME


@pytest.mark.parametrize("key", ["payload", "projectHash"])
def test_a_long_line_of_another_client_is_not_recognised_by_its_beginning(key: str) -> None:
    beginning = b'{"timestamp":"2026-03-01T12:00:00.000Z","%b":{"x":"' % key.encode()
    assert not claude.recognise(beginning + b"a" * 300_000, is_whole=False)
    quoted = b'{"type":"user","message":{"content":"\\"%b\\":' % key.encode()
    assert claude.recognise(quoted + b"a" * 300_000, is_whole=False)
