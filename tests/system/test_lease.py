"""Leases where there are some; where there are none, what was replaced waits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import fs
from sessrotate.in_place import waiting
from sessrotate.system import locks
from support import command_line
from support.abilities import needs_leases
from support.command_line import row
from support.homes import Home, without_leases
from support.portable import lack

if TYPE_CHECKING:
    from pathlib import Path

DATA: Final = command_line.session(boundaries=2)


# ── what the system says ─────────────────────────────────────────────────────────────────────


@needs_leases
def test_a_read_lease_is_refused_while_somebody_may_write(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    reader = os.open(path, os.O_RDONLY)
    writer = os.open(path, os.O_WRONLY)
    assert locks.read_lease(reader) == "busy"
    os.close(writer)
    assert locks.read_lease(reader) == "taken"
    assert not locks.is_lease_wanted(reader)
    with pytest.raises(BlockingIOError):
        os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    assert locks.is_lease_wanted(reader)
    locks.release_lease(reader)
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    os.close(reader)


@needs_leases
def test_a_write_lease_needs_to_be_the_only_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    mine = os.open(path, os.O_RDWR | os.O_CREAT)
    other = os.open(path, os.O_RDONLY)
    assert locks.write_lease(mine) == "busy"
    os.close(other)
    assert locks.write_lease(mine) == "taken"
    locks.release_lease(mine)
    os.close(mine)


@needs_leases
def test_what_has_no_leases_says_so(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    assert locks.read_lease(reading) == "none"
    os.close(reading)
    os.close(writing)
    folder = os.open(tmp_path, os.O_RDONLY)
    assert locks.read_lease(folder) in {"none", "taken"}
    os.close(folder)


def test_a_system_without_leases_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.touch()
    fd = os.open(path, os.O_RDONLY)
    lack(monkeypatch, "leases")
    assert (locks.read_lease(fd), locks.write_lease(fd)) == ("none", "none")
    os.close(fd)


@pytest.mark.parametrize("last", ["taken", "none"])
def test_who_waits_asks_again_until_nobody_is_in_the_way(last: locks.Answer) -> None:
    answers: list[locks.Answer] = [last, "busy", "busy"]
    asked: list[int] = []

    def ask(fd: int) -> locks.Answer:
        asked.append(fd)
        return answers.pop()

    assert locks.within(60, ask, 7) == last
    assert asked == [7, 7, 7]


def test_who_has_waited_long_enough_is_told_that_it_is_busy() -> None:
    answers: list[locks.Answer] = ["taken", "busy"]
    assert locks.within(-1, lambda _fd: answers.pop(), 7) == "busy"
    assert answers == ["taken"]


# ── where there are none ─────────────────────────────────────────────────────────────────────


@pytest.fixture
def waits(home: Home, monkeypatch: pytest.MonkeyPatch) -> tuple[Home, Path]:
    """A session that was rotated, and its old file, which somebody may still have open."""
    without_leases(monkeypatch)
    done = home.rotate()
    assert done.pending is not None
    assert "cannot tell whether a process still writes" in done.pending
    (pack,) = waiting.packs(home.where)
    return home, pack.path


def test_its_history_is_archived_at_once_and_the_old_file_waits(waits: tuple[Home, Path]) -> None:
    home, pack = waits
    assert len(home.live.read_bytes()) < len(DATA)
    assert pack.read_bytes() == DATA
    assert home.stitched() == DATA
    assert not home.problems()
    assert not home.is_busy()


def test_what_a_client_still_writes_to_the_old_file_arrives(waits: tuple[Home, Path]) -> None:
    home, pack = waits
    with pack.open("ab") as held:
        held.write(row(70))
        held.flush()
        home.append(row(71))
        home.rotate()
        assert home.stitched() == DATA + row(71) + row(70) + row(71)
        held.write(row(72))
    home.rotate()
    # The last row of the conversation is said again: a client goes on from that.
    assert home.live.read_bytes().endswith(row(71) + row(70) + row(71) + row(72) + row(71))


def test_a_late_line_that_comes_while_others_are_brought_over_is_not_lost(
    waits: tuple[Home, Path],
) -> None:
    home, pack = waits
    with pack.open("ab") as held:
        held.write(row(70))
    appended: list[bytes] = []
    real = fs.append

    def append(path: Path, data: bytes) -> None:
        real(path, data)
        appended.append(data)
        if len(appended) == 1:
            with pack.open("ab") as held:
                held.write(row(71))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fs, "append", append)
        home.rotate()
    assert appended == [row(70), row(71)]
    assert home.stitched() == DATA + row(70) + row(71)


def test_a_restoration_too_keeps_what_it_replaced(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.rotate()
    without_leases(monkeypatch)
    done = home.restore()
    assert done is not None
    assert "cannot tell whether a process still writes" in (done.pending or "")
    assert home.live.read_bytes() == DATA
    (pack,) = waiting.packs(home.where)
    with pack.path.open("ab") as held:
        held.write(row(70))
    home.restore()
    assert home.live.read_bytes() == DATA + row(70)
    home.age(2 * 86_400)
    home.restore()
    assert home.live.read_bytes() == DATA + row(70)
    assert not any(waiting.packs(home.where))
    assert home.is_whole
