"""On a disk that is almost full a plan fails where the command does, and what was done is known."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import fs
from sessrotate.in_place import gain, seal
from sessrotate.system import user_folders
from support import command_line, homes
from support.command_line import ID, called, row, write
from support.homes import Home, snapshot

if TYPE_CHECKING:
    from pathlib import Path

DATA: Final = command_line.session(boundaries=4, rows=20, padding=30_000)
OTHER: Final = "0therid0-0000-4000-a000-000000000002"


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def only(patch: pytest.MonkeyPatch, free: int) -> None:
    patch.setattr(fs, "free_bytes", lambda _folder: free)


@pytest.mark.parametrize(
    ("steps", "most"),
    [
        ([], 0),
        ([(5, 9)], 5),
        ([(5, 9), (8, 20)], 5),  # the first one frees 4
        ([(5, 9), (10, 20)], 6),
        ([(7, 7), (7, 7)], 7),
    ],
)
def test_what_has_to_be_free_counts_what_the_steps_before_have_freed(
    steps: list[tuple[int, int]], most: int
) -> None:
    assert gain.peak(steps) == most
    for free in range(12):
        left, is_enough = free, True
        for takes, frees in steps:
            is_enough = is_enough and left >= takes
            left += frees - takes
        assert is_enough is (free >= most)


def test_what_archiving_moved_and_could_not_compress_is_undone_like_the_rest(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = home.beside(OTHER, DATA)
    with monkeypatch.context() as patch:
        patch.setattr(fs.Draft, "append", full)
        ended = called("archive", "-y", ID, OTHER)
    assert ended.code == 74
    assert re.search(r"2 sessions: moved [\d.]+ MiB out of the client's folder", ended.out)
    assert not home.live.exists()
    assert called("restore", "--last-run", "-y").code == 0
    assert home.live.read_bytes() == DATA
    assert other.exists()


def test_what_is_beside_an_archived_session_counts_in_what_it_gains_and_needs(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = home.live.with_suffix("") / "tool-results" / "x.txt"
    command_line.write(beside, b"p" * 3_000_000)
    planned = called("archive", "-n", "--json", ID).document()["disk_bytes_gained"]
    with monkeypatch.context() as patch:
        patch.setattr(fs.Draft, "append", full)
        assert called("archive", ID).code == 74
    again = called("archive", "-n", "--json", ID).document()["disk_bytes_gained"]
    assert again == pytest.approx(planned, rel=0.05)
    assert planned > 5_000_000


@pytest.mark.usefixtures("home")
def test_a_plan_of_one_rotation_fails_where_the_rotation_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    only(monkeypatch, 1000)
    planned = called("rotate", "-n", ID)
    assert planned.code == 74
    assert "Would cut" in planned.out
    assert "for the segments, compressed, and the new live file, and 1000 B is" in planned.err


def test_a_rotation_that_failed_leaves_a_restored_session_as_its_owner_wants_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.rotate()
    assert called("restore", ID).code == 0
    with monkeypatch.context() as patch:
        patch.setattr(fs.Draft, "append", full)
        assert called("rotate", ID).code == 74
    assert "1 session that you restored stays whole" in called().out
    assert called("rotate", ID).code == 0
    assert "restored" not in called().out


@pytest.fixture
def half(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a session whose restoration a full disk has stopped behind the swap."""
    home.rotate()
    with monkeypatch.context() as patch:
        patch.setattr(seal, "finish", full)
        ended = called("restore", ID)
    assert ended.code == 74
    return home


def test_an_interrupted_restoration_is_finished_by_the_command_that_everybody_names(
    half: Home,
) -> None:
    archived = ("archive", ID), ("archive", "-n", ID)
    for words in (*archived, ("rotate", "-n", ID), ("doctor",)):
        ended = called(*words)
        assert ended.code in {1, 75, 77}, words
        assert f"sessrotate restore {ID}" in ended.out + ended.err, words
        assert "adopt" not in ended.out + ended.err
    dry = called("restore", "-n", ID)
    assert (dry.code, "the next run finishes it" in dry.out) == (0, True)
    assert "Nothing to restore" not in dry.out
    done = called("restore", ID)
    assert (done.code, done.out) == (0, "Finished a restoration that was interrupted.\n")
    assert half.live.read_bytes() == DATA
    assert "Nothing to restore" in called("restore", ID).out


@pytest.mark.usefixtures("half")
def test_a_plan_of_finishing_a_restoration_fails_on_a_full_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert called("tidy", "-n").code == 0
    only(monkeypatch, 0)
    assert called("tidy", "-n").code == 74


def test_a_plan_of_pruning_fails_on_a_full_disk(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.rotate()
    words = ("prune", ID, "--keep-last", "1", "-n")
    assert called(*words).code == 0
    only(monkeypatch, 0)
    before = snapshot(home.config)
    ended = called(*words)
    assert (ended.code, "8.0 KiB for the list of segments" in ended.err) == (74, True)
    assert snapshot(home.config) == before


def test_a_second_live_file_of_a_session_that_was_put_away_is_no_tidy_state(home: Home) -> None:
    assert called("archive", ID).code == 0
    command_line.write(home.live, row(3))
    assert "Failing    1 session (" in called().out
    assert called("tidy", "-n").code == 77


@pytest.mark.parametrize("command", [("rotate", ID), ("archive", "-y", ID), ("tidy", "-y", ID)])
@pytest.mark.usefixtures("home")
def test_a_disk_without_room_for_more_files_is_not_called_full(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    real, usage = os.statvfs, list[int]()

    def refuse(_self: object, path: Path, *_: object, **__: object) -> None:
        usage.append(1)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def crowded(path: str) -> os.statvfs_result:
        found = [*real(path)]
        found[5:8] = [1000, 3, 3]  # files of the disk, and how many more it takes
        return os.statvfs_result(found)

    monkeypatch.setattr(os, "statvfs", crowded)
    monkeypatch.setattr(fs.NewFile, "__init__", refuse)
    monkeypatch.setattr(fs.Draft, "__init__", refuse)
    ended = called(*command)
    assert (ended.code, bool(usage)) == (74, True)
    assert "not for more files (too few inodes are free). Remove or move many small" in ended.err
    assert "No space left" not in ended.err
    assert "bytes for" not in ended.err


@pytest.mark.parametrize("command", [("run",), ("tidy", "--yes"), ("archive", ID)])
def test_what_cannot_be_compressed_stays_where_its_client_looks(
    home: Home, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    write(user_folders.config_file(), b'rotate.min_gain = false\narchive.older_than = "1d"\n')
    os.utime(home.live, (0, 0))
    only(monkeypatch, 8192)
    dry = called(*(each for each in command if each != "--yes"), "--dry-run")
    ended = called(*command)
    assert (dry.code, ended.code) == (74, 74)
    for said in (dry.err, ended.err):
        assert "The disk is too full: this needs" in said
    assert home.live.read_bytes() == DATA


def test_what_its_client_would_delete_is_put_away_on_a_full_disk_too(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(user_folders.config_file(), b'rotate.min_gain = false\narchive.before_cleanup = "3d"\n')
    homes.unused_for(home.live, 29)
    only(monkeypatch, 8192)
    assert "archive" in called("run", "--dry-run").out
    monkeypatch.setattr(fs.Draft, "append", full)
    assert called("run").code == 74
    assert not home.live.exists()
    assert called("stitch", ID).out.encode() == DATA
