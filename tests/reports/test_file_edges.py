"""What is told of compactions by a file's edges is what the whole file would say, or nothing."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients import opaque
from sessrotate.clients.claude import client as claude
from sessrotate.clients.preview import EDGE
from sessrotate.reports import file_edges
from sessrotate.reports.file_edges import Edges
from support import oracle
from support.command_line import boundary, row, write

DECOYS = (
    b'{"type":"user","message":{"content":"compact_boundary\\""}}\n',
    b'{"type":"system","subtype":"microcompact_boundary"}\n',
    b'{"data":{"type":"system","subtype":"compact_boundary"}}\n',
    b'{"type":"system","subtype":"compact_boundary"\n',
    b"\n",
)
LINES = st.one_of(
    st.integers(1, 9).map(boundary),
    st.sampled_from(DECOYS),
    st.integers(0, 40_000).map(lambda size: row(1, pad="p" * size)),
)


def edges_of(data: bytes) -> Edges:
    tail = data[-EDGE:] if len(data) > EDGE else data
    return Edges(data[:EDGE], tail, len(data), 0, (0, 0))


@given(st.lists(LINES, max_size=9), st.booleans())
def test_compactions_in_sight_are_those_of_the_whole_file(
    lines: list[bytes], is_torn: bool
) -> None:
    data = b"".join(lines)
    data = data[:-1] if is_torn else data
    found, tail = file_edges.compactions(edges_of(data), claude, 0)
    offsets = oracle.boundaries(data)
    assert found in {None, len(offsets)}
    assert tail in {None, len(data) - (offsets[-1] if offsets else 0)}
    if len(data) <= EDGE:
        assert (found, tail) != (None, None)
        assert found is not None
    in_sight = [at for at in offsets if at > len(data) - EDGE]
    assert tail is not None or not in_sight


@given(st.lists(LINES, min_size=1, max_size=6), st.integers(0, 5))
def test_what_stands_before_the_history_is_not_counted(lines: list[bytes], skipped: int) -> None:
    data = b"".join(lines)
    start = len(b"".join(lines[:skipped]))
    found, tail = file_edges.compactions(edges_of(data), claude, start)
    offsets = [at for at in oracle.boundaries(data) if at >= start]
    assert found in {None, len(offsets)}
    assert tail in {None, len(data) - (offsets[-1] if offsets else start)}


def test_a_file_shorter_than_what_stands_before_the_history_has_no_figures() -> None:
    data = row(1) + boundary(2)  # a client trimmed it behind a rotation's back
    for size in (len(data), len(data) - 1):
        figures = file_edges.compactions(edges_of(data[:size]), claude, len(data))
        assert figures == ((0, 0) if size == len(data) else (None, None))


def test_a_line_whose_beginning_is_not_in_sight_is_no_compaction() -> None:
    inner = boundary(1).rstrip(b"\n")
    for before in (b"", boundary(2)):
        torn = b"x" * EDGE + inner + b"\n"  # no JSON, and the tail sees only what is
        data = before + torn + row(3, pad="p" * (EDGE - len(inner) - 1 - len(row(3, pad=""))))
        found = edges_of(data)
        assert found.tail.startswith(inner)
        assert file_edges.compactions(found, claude, 0) == (None, None)


def test_compactions_before_what_is_in_sight_are_not_left_out() -> None:
    long = row(1, pad="p" * EDGE)
    data = boundary(1) + long + long
    assert file_edges.compactions(edges_of(data), claude, 0) == (None, None)
    assert file_edges.compactions(edges_of(data + boundary(2)), claude, 0) == (
        None,
        len(boundary(2)),
    )


def test_a_format_without_compactions_has_none() -> None:
    assert file_edges.compactions(edges_of(b"x" * 200_000), opaque, 0) == (0, 200_000)


def test_the_edges_of_a_file_are_its_first_and_last_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for size in (0, 1, EDGE - 1, EDGE, EDGE + 1, 3 * EDGE):
        data = random.Random(1).randbytes(size)
        path.write_bytes(data)
        found = file_edges.of(path)
        assert (found.head, found.tail, found.size) == (data[:EDGE], data[-EDGE:], size)
        assert found.is_whole == (size <= EDGE)
        status = path.stat()
        assert found.modified == status.st_mtime_ns
        assert found.file == (status.st_dev, status.st_ino)


def test_a_file_that_cannot_be_read_is_told_and_its_size_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)

    def refuse(*_: object, **_folder: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    told: dict[str, str] = {}
    found = file_edges.seen(str(path), told.__setitem__)
    assert found is not None
    assert (found.head, found.size, found.is_whole, found.is_read) == (b"", 10, False, False)
    assert file_edges.compactions(found, claude, 0) == (None, None)
    assert told == {str(path): "Permission denied"}


def test_a_file_that_went_away_is_passed_over(tmp_path: Path) -> None:
    told: dict[str, str] = {}
    assert file_edges.seen(str(tmp_path / "none"), told.__setitem__) is None
    assert told == {}


def test_a_file_that_a_rotation_holds_for_a_moment_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "session", row(1))
    real = os.open

    def held(name: Path, flags: int, *, dir_fd: int | None = None) -> int:
        if flags & os.O_NONBLOCK:
            raise BlockingIOError
        return real(name, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", held)
    assert file_edges.of(path).head == row(1)


def test_a_pipe_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    told: dict[str, str] = {}
    found = file_edges.seen(str(tmp_path / "pipe"), told.__setitem__)
    assert found is not None
    assert not found.is_read
    assert list(told.values()) == ["it is not a regular file"]
