"""A segment's time span is that of its first and last dated records."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.claude import client as claude
from sessrotate.model import Span
from sessrotate.parsing.json_line import SMALL
from sessrotate.segments import scan
from sessrotate.system.source import Source
from support.examples import examples
from support.lines import row

ROWS = st.lists(
    st.one_of(
        st.integers(0, 3599).map(row),
        st.just(b'{"type":"summary","summary":"x","leafUuid":"y"}'),
        st.just(b'{"type":"user","message":{"timestamp":"2020-01-01T00:00:00Z"}}'),
        st.just(b'{"type":"user","timestamp":"soon"}'),
        st.just(b'{"timestamp":"2026-01-01T00:00:00Z"'),
        st.integers(1, 300_000).map(lambda size: b'{"type":"mode","x":"' + b"a" * size + b'"}'),
        st.integers(250_000, 300_000).map(lambda size: row(size, x="a" * size)),
    ),
    max_size=12,
)  # the largest is streamed, the others are parsed at once


def slowly(data: bytes) -> list[str]:
    times = []
    for line in data.split(b"\n"):
        try:
            time = json.loads(line).get("timestamp")
        except ValueError:
            continue
        if time and time.startswith("20"):
            times.append(time)
    return times


@given(ROWS, st.sampled_from([b"", b"\n"]), st.binary(max_size=9))
@examples(200)
def test_the_times_are_the_first_and_the_last_of_the_span(
    rows: list[bytes], end: bytes, around: bytes
) -> None:
    data = b"\n".join(rows) + end
    with TemporaryDirectory() as name:
        path = Path(name, "s.jsonl")
        path.write_bytes(around + data + around)
        span = Span(len(around), len(around) + len(data))
        with Source(path) as source:
            found = (
                scan.first(source, claude, span),
                scan.last(source, claude, span),
            )
    times = slowly(b"\n".join(line for line in data.split(b"\n") if len(line) <= SMALL))
    times = times or slowly(data)
    assert found == ((times[0], times[-1]) if times else (None, None))


def test_a_record_behind_too_many_others_is_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    undated = b'{"type":"mode"}\n'
    path.write_bytes(undated * 10 + row() + b"\n" + undated * 10)
    for most, found in ((10, None), (11, "2026-03-01T12:00:01.000Z")):
        monkeypatch.setattr(scan, "MOST_LINES", most)
        with Source(path) as source:
            span = Span(0, source.size())
            assert (
                scan.first(source, claude, span),
                scan.last(source, claude, span),
            ) == (found, found)


def test_a_line_that_reaches_out_of_the_window_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(row() + b"\n" + row(2, x="a" * 5000) + b"\n" + row(3))
    monkeypatch.setattr(scan, "WINDOW", 2_000)
    with Source(path) as source:
        middle = Span(len(row()) + 1, source.size() - len(row(3)) - 1)
        assert (
            scan.first(source, claude, middle),
            scan.last(source, claude, middle),
        ) == (None, None)
        monkeypatch.setattr(scan, "WINDOW", 6_000)
        assert scan.first(source, claude, middle) == scan.last(source, claude, middle) is not None
