"""The edges of a file are its first and last bytes, and what cannot be read is told."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from sessrotate.clients.preview import EDGE
from sessrotate.reports import file_edges
from support.command_line import row, write


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
