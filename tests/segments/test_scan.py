"""Boundaries are found wherever blocks and buffers happen to end."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.claude import client as claude
from sessrotate.errors import InUseError, NotASessionError
from sessrotate.parsing import candidates, json_line
from sessrotate.segments import scan
from sessrotate.system.source import Source
from support import oracle, sets
from support.examples import examples
from support.lines import BOUNDARY_LINE, row, session, sessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessrotate.model import Scan


def scanned(path: Path, progress: Callable[[int], None] = sets.nothing) -> Scan:
    with Source(path) as source:
        return scan.scan(source, claude, progress)


@given(
    data=sessions(),
    read=st.integers(18, 90),
    block=st.integers(1, 200),
    threads=st.booleans(),
    small=st.sampled_from([-1, 60, 1 << 18]),
)
@examples(200)
def test_the_boundaries_are_those_of_the_whole_file(
    data: bytes, read: int, block: int, threads: bool, small: int
) -> None:
    if small < json_line.SMALL:  # by its brackets a line that is no JSON may count as an object
        lines = data.split(b"\n")
        data = b"\n".join(line for line in lines if not line or oracle.is_object(line))
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        path = Path(name, "s.jsonl")
        path.write_bytes(data)
        patch.setattr(scan, "READ", read)
        patch.setattr(scan, "BLOCK", block)
        patch.setattr(scan, "WORTH_THREADS", 0 if threads else 1 << 40)
        patch.setattr(json_line, "SMALL", small)
        found = scanned(path)
    assert [boundary.offset for boundary in found.boundaries] == oracle.boundaries(data)
    assert found.end == len(data)
    assert found.opaque_lines == sum(
        b'compact_boundary"' in line and not oracle.is_object(line) for line in data.split(b"\n")
    )


@given(st.binary(max_size=60), st.integers(0, 70), st.integers(0, 70))
def test_the_c_librarys_search_means_what_pythons_does(data: bytes, start: int, end: int) -> None:
    memmem = candidates.memmem()
    if memmem is None:
        pytest.skip("this system's C library has no memmem")
    ours, theirs = candidates.Finder(64, memmem=memmem), candidates.Finder(64, memmem=None)
    ours.view[: len(data)] = theirs.view[: len(data)] = data
    for wanted in (data[3:6], data[1:2], b"ab", b"\0\0"):
        if wanted:
            assert ours.find(wanted, start, end) == theirs.find(wanted, start, end)


def test_a_boundary_carries_what_its_record_says(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(row() + b"\n" + BOUNDARY_LINE + b"\n")
    (boundary,) = scanned(path).boundaries
    assert boundary.offset == len(row()) + 1
    assert boundary.uuid == "5a3c0e1e-0000-4000-8000-000000000001"
    assert boundary.timestamp == "2026-03-01T12:00:00.000Z"
    assert (boundary.trigger, boundary.pre_tokens) == ("auto", 155_000)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"2026-03-01T12:00:00.000Z"', b'"yesterday"'),
        (b'"2026-03-01T12:00:00.000Z"', b"5"),
        (b'{"trigger":"auto","preTokens":155000}', b'["trigger"]'),
        (b'"auto"', b"7"),
        (b"155000", b"true"),
        (b"155000", b"1.5"),
        (b"155000", b"1" * 30),
    ],
)
def test_a_value_of_the_wrong_kind_is_left_out_and_the_boundary_stays(
    tmp_path: Path, old: bytes, new: bytes
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(BOUNDARY_LINE.replace(old, new) + b"\n")
    (boundary,) = scanned(path).boundaries
    values = (boundary.timestamp, boundary.trigger, boundary.pre_tokens)
    assert None in values
    assert "yesterday" not in values


def test_lines_with_the_marker_that_are_no_json_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    torn = BOUNDARY_LINE[:-1]
    path.write_bytes(b"\n".join([torn, BOUNDARY_LINE, torn + b"}}", b'"compact_boundary"', b""]))
    found = scanned(path)
    assert len(found.boundaries) == 1
    assert found.opaque_lines == 3


def test_a_file_that_grows_ends_with_the_last_newline_it_had(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    whole = session(3)
    path.write_bytes(whole + BOUNDARY_LINE[:40])

    def append(_done: int) -> None:
        with path.open("ab") as file:
            file.write(BOUNDARY_LINE[40:] + b"\n" + BOUNDARY_LINE + b"\n")

    found = scanned(path, append)
    assert found.end == len(whole)
    assert [boundary.offset for boundary in found.boundaries] == oracle.boundaries(whole)


def test_a_file_that_shrinks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(session(40))
    monkeypatch.setattr(scan, "BLOCK", 64)

    def shrink(_done: int) -> None:
        path.write_bytes(b"short\n")

    with pytest.raises(InUseError, match="shorter"):
        scanned(path, shrink)


def test_a_file_that_is_replaced_is_an_error(tmp_path: Path) -> None:
    path, other = tmp_path / "s.jsonl", tmp_path / "other"
    path.write_bytes(session(2))

    def replace(_done: int) -> None:
        other.write_bytes(session(2))
        other.rename(path)

    with pytest.raises(InUseError, match="replaced"):
        scanned(path, replace)


def test_more_boundaries_than_any_session_has_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(session(12))
    monkeypatch.setattr(scan, "MAX_BOUNDARIES", 11)
    assert len(scanned(path).boundaries) == 11
    monkeypatch.setattr(scan, "MAX_BOUNDARIES", 10)
    with pytest.raises(NotASessionError, match="More than 10"):
        scanned(path)


def test_progress_ends_with_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(session(5))
    told: list[int] = []
    scanned(path, told.append)
    assert told == sorted(told)
    assert told[-1] == path.stat().st_size
