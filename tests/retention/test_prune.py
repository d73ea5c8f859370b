"""What is pruned goes to the trash and comes back, whatever happens in between."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from sessrotate import fs
from sessrotate.archive import state
from sessrotate.errors import (
    DamagedError,
    InUseError,
    RefusedError,
    StorageError,
)
from sessrotate.retention import prune, trash
from sessrotate.retention.policy import Policy
from sessrotate.retention.prune import PrunePlan
from sessrotate.units import DAY
from support import command_line, homes, oracle, sets
from support.command_line import ID, boundary, row
from support.homes import Home, snapshot

DATA = command_line.session(boundaries=4)
BODIES = oracle.bodies(DATA)
NOW = 1_800_000_000.0
LAST_TWO = Policy(keep_last=2)


@pytest.fixture
def home(home: Home) -> Home:
    home.rotate()
    return home


def planned(home: Home, policy: Policy = LAST_TWO, now: float = NOW) -> PrunePlan:
    return prune.prepare([home.where], policy, now, lambda _done: None)


def pruned(home: Home, policy: Policy = LAST_TWO) -> PrunePlan:
    plan = planned(home, policy)
    assert [done.error for done in prune.execute(plan, 1)] == [None]
    return plan


def stitched(home: Home) -> tuple[bytes, list[str]]:
    gaps: list[str] = []
    with state.opened(home.where) as found:
        return sets.whole(found, gaps.append), gaps


def names(home: Home, *numbers: int) -> set[str]:
    """Return the names of these segments in the trash."""
    return {homes.sealed(home.archive / "trash", number).name for number in numbers}


@pytest.mark.parametrize("moved", [0, 1])
def test_what_an_interrupted_restoration_was_to_bring_back_is_not_deleted(
    home: Home, moved: int
) -> None:
    pruned(home)

    def interrupted(folder: Path, files: list[str], to: Path) -> None:
        for file in files[:moved]:
            (folder / file).rename(to / file)
        raise OSError(errno.ENOSPC, "no space")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fs, "move_files", interrupted)
        with pytest.raises(StorageError):
            trash.undelete(home.where, 1, [0, 1])
    assert stitched(home) == (DATA, [])
    for _ in range(2):
        assert trash.empty(home.where, 7 * DAY, NOW + 30 * DAY, 1) == 0
    assert stitched(home) == (DATA, [])
    assert home.trashed() == set()
    trash.undelete(home.where, 1, [0, 1])  # they are back already


def test_what_another_process_moves_while_the_trash_is_looked_into_is_no_fault(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with state.opened(home.where) as found:
        before, listing = found.manifest, found.listing
    assert before is not None
    pruned(home)
    there = trash.in_trash(home.where)
    assert {*there} == names(home, 0, 1)
    left = trash.unsettled(home.where, before, listing, there)
    assert not left.risen  # the look into the archive is older
    real = os.listdir

    def listed(folder: Path) -> list[str]:
        found = real(folder)
        (folder / found[0]).unlink()
        return found

    monkeypatch.setattr(os, "listdir", listed)
    assert len(trash.in_trash(home.where)) == 1


def test_what_is_pruned_once_more_while_the_trash_is_emptied_begins_a_new_grace_period(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    pruned(home)
    later = NOW + 30 * DAY
    real = trash.due

    def due(*args: Any) -> trash.Due:
        found = real(*args)
        trash.undelete(home.where, 1, [0, 1])
        assert not any(done.error for done in prune.execute(planned(home, now=later), 1))
        return found

    monkeypatch.setattr(trash, "due", due)
    assert trash.empty(home.where, 7 * DAY, later, 1) == 0
    assert home.trashed() == names(home, 0, 1)


def test_a_pruned_session_goes_on_and_is_rotated_again(home: Home) -> None:
    pruned(home)
    more = row(90) + boundary(91) + row(92)
    home.append(more)
    home.rotate()
    data, gaps = stitched(home)
    assert data == b"".join(BODIES[2:]) + more
    assert len(gaps) == 1
    with pytest.raises(RefusedError, match="still in the trash"):
        home.restore()
    trash.undelete(home.where, 1, [0, 1])
    home.restore()
    assert home.live.read_bytes() == DATA + more


def test_what_does_not_verify_stays(home: Home) -> None:
    file = home.segment(1)
    homes.rewrite(file, homes.content(file)[:-1])
    plan = planned(home)
    assert [entry.keep for entry in plan.decisions] == [False, True, True, True]
    assert "does not verify" in plan.decisions[1].reasons[0]


def test_an_archive_that_changed_since_the_plan_is_left_alone(home: Home) -> None:
    plan = planned(home)
    prune.pin(home.where, 0, "wait", 1)
    before = snapshot(home.config)
    (error,) = [done.error for done in prune.execute(plan, 1)]
    assert isinstance(error, InUseError)
    assert snapshot(home.config) == before


def test_a_client_that_came_since_the_plan_is_left_alone(home: Home) -> None:
    plan = planned(home)
    running = json.dumps({"pid": os.getpid(), "sessionId": ID}).encode()
    command_line.write(home.config / "sessions" / f"{os.getpid()}.json", running)
    before = snapshot(home.config)
    (error,) = [done.error for done in prune.execute(plan, 1)]
    assert isinstance(error, InUseError)
    assert "client" in str(error)
    assert snapshot(home.config) == before


def test_a_segment_in_the_trash_that_nobody_pruned_comes_back(home: Home) -> None:
    file = home.segment(1)
    (home.archive / "trash").mkdir()
    file.rename(home.archive / "trash" / file.name)
    prune.pin(home.where, 0, "whatever is done next", 1)
    assert home.stitched() == DATA


# ── a segment both in the archive and in the trash, as where a backup was put over the present ────


def twice(home: Home, number: int, data: bytes | None = None) -> Path:
    """Have a segment be in the archive and in the trash, as two files; return the latter's path."""
    file = home.segment(number)
    other = home.archive / "trash" / file.name
    other.parent.mkdir(exist_ok=True)
    path, source = (other, file) if file.exists() else (file, other)
    path.write_bytes(homes.packed(homes.content(source) if data is None else data))
    return other


def test_what_is_in_the_trash_already_is_pruned_all_the_same(home: Home) -> None:
    other = twice(home, 1)
    pruned(home)
    assert home.trashed() == names(home, 0, 1)
    assert not home.segment(1).exists()
    other.unlink()  # and it is told as any that is gone
    trash.undelete(home.where, 1, [0])
    assert stitched(home)[0] == b"".join([BODIES[0], *BODIES[2:]])


@pytest.mark.parametrize("command", ["restore", "run", "pin", "prune"])
def test_what_was_pruned_and_came_back_with_a_backup_is_settled(home: Home, command: str) -> None:
    pruned(home)
    twice(home, 0)
    twice(home, 1)
    more = {"pin": [ID, "2"], "prune": [ID, "--keep-last", "1", "--yes"], "restore": [ID]}
    ended = command_line.called(command, *more.get(command, []))
    assert ended.code == 0, ended
    if command != "restore":
        assert names(home, 0, 1) <= home.trashed()
        assert not home.segment(0).exists()
        assert command_line.called("restore", ID).code == 0
    assert home.live.read_bytes() == DATA


@pytest.mark.parametrize("damaged", ["archive", "trash"])
@pytest.mark.parametrize("is_pruned", [False, True])
def test_where_the_two_differ_nothing_is_changed_and_the_damaged_one_is_named(
    home: Home, is_pruned: bool, damaged: str
) -> None:
    if is_pruned:
        pruned(home)
    other, archived = twice(home, 1), home.segment(1)
    plan = planned(home)
    path = archived if damaged == "archive" else other
    path.write_bytes(homes.packed(homes.content(path) + b"more\n"))
    before = snapshot(home.config)
    (error,) = [done.error for done in prune.execute(plan, 1)]
    assert isinstance(error, DamagedError)
    assert f"{archived} and {other}" in str(error)
    assert f"{path} is damaged" in str(error)
    assert snapshot(home.config) == before
    path.rename(home.config / "damaged")
    prune.pin(home.where, 2, "", 1)
    if is_pruned:
        trash.undelete(home.where, 1, [0, 1])
    assert home.stitched() == DATA
