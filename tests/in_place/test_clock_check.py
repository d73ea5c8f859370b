"""A clock that cannot be believed prunes and frees nothing, and every command says why."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import clock
from sessrotate.system import user_folders
from support import command_line, homes, rollouts
from support.command_line import ID, Ended, assert_one_sentence, called
from support.homes import Home, snapshot
from support.rollouts import Codex

if TYPE_CHECKING:
    from collections.abc import Callable

DAY: Final = 86_400.0
DATA: Final = command_line.session(boundaries=4)
RULES: Final = 'prune.max_age = "52w"\nrotate.min_gain = false\n'


@pytest.fixture
def home(home: Home) -> Home:
    home.rotate()
    Path("settings.toml").write_text(RULES)
    return home


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Return what runs a command by a clock that is off by days. The system's own is right."""
    real = time.time

    def call(days: float, *arguments: str) -> Ended:
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: real() + days * DAY)
            return called(*arguments)

    return call


RUN: Final = ("run", "--config", "settings.toml")
EMPTY: Final = ("prune", ID, "--empty-trash", "--yes")
PRUNE: Final = ("prune", ID, "--keep-last", "1", "--yes")


def written_at(home: Home, days: float) -> None:
    """Date what sessrotate wrote so many days from now, as by a clock that is off."""
    then = time.time() + days * DAY
    for path in clock._written():  # noqa: SLF001
        os.utime(path, (then, then))
    assert home.archive.stat().st_mtime == pytest.approx(then, abs=1)


@pytest.mark.parametrize("days", [400, -30])
def test_a_clock_that_is_far_off_prunes_and_frees_nothing(
    home: Home, at: Callable[..., Ended], days: int
) -> None:
    assert at(0, *PRUNE).code == 0
    there, before = home.trashed(), snapshot(home.archive)
    assert there
    ended = at(days, *RUN)
    assert ended.code == 0
    assert "deleted, archived or compressed for its age. The clock says" in ended.err
    assert snapshot(home.archive) == before


@pytest.mark.parametrize("days", [400, -30])
def test_by_hand_nothing_goes_by_its_age(home: Home, at: Callable[..., Ended], days: int) -> None:
    before = snapshot(home.archive)
    assert_one_sentence(at(days, "prune", ID, "--max-age", "1d", "--yes"), 77)
    assert snapshot(home.archive) == before
    assert at(0, "prune", ID, "--max-age", "1d", "--yes").code == 0
    assert home.trashed()


NO_PRUNING: Final = "rotate.min_gain = false\ntrash.grace = false\n"


@pytest.mark.parametrize("is_planned", [True, False])
def test_a_clock_that_is_far_ahead_archives_nothing_for_its_age(
    home: Home, at: Callable[..., Ended], *, is_planned: bool
) -> None:
    """Whatever else is set: neither pruning nor the trash has to ask for it."""
    Path("settings.toml").write_text(f'{NO_PRUNING}archive.older_than = "90d"\n')
    ended = at(400, *RUN, *(["--dry-run"] if is_planned else []))
    assert ended.code == 0
    assert "archived or compressed for its age. The clock says" in ended.err
    assert home.live.exists()
    written_at(home, 399)  # so the clock is right
    if not is_planned:
        assert at(400, *RUN).err == ""
        assert not home.live.exists()


def test_by_whatever_clock_what_the_client_deletes_by_it_is_saved_before(
    home: Home, at: Callable[..., Ended]
) -> None:
    Path("settings.toml").write_text(f'{NO_PRUNING}archive.before_cleanup = "3d"\n')
    assert at(400, *RUN).code == 0
    assert not home.live.exists()
    assert called("restore", ID).code == 0
    assert home.stitched() == DATA


def test_a_clock_that_is_far_ahead_compresses_nothing_and_removes_no_leftover(
    home: Home, at: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex = Codex(tmp_path / "codex")
    monkeypatch.setenv("CODEX_HOME", str(codex.root))
    codex.begin(rollouts.rollout(size=2 << 20), days=1)
    command_line.write(codex.day / "rollout-compress-Ab12Cd.tmp", b"a client writes this now")
    Path("settings.toml").write_text(f'{NO_PRUNING}codex.compress_after = "7d"\n')
    before = codex.names()
    assert at(400, *RUN).code == 0
    assert codex.names() == before
    written_at(home, 399)  # so the clock is right
    assert at(400, *RUN).code == 0
    assert codex.names() == [f"{codex.path().name}.zst"]


def test_once_it_has_run_by_that_clock_it_is_believed(home: Home, at: Callable[..., Ended]) -> None:
    """As after a year without a run: the first one says so, and the next frees what is due."""
    at(0, *PRUNE)
    written_at(home, -400)
    at(0, *RUN)
    assert home.trashed()
    assert at(8, *RUN).err == ""
    assert home.trashed() == set()


def test_the_date_of_the_log_does_not_go_back(home: Home, at: Callable[..., Ended]) -> None:
    """By it a clock that is behind is known, however often a run sees it."""
    at(0, *RUN)
    written_at(home, 30)
    log = user_folders.log_file()
    before = log.stat().st_mtime_ns
    at(0, *RUN)
    assert log.stat().st_mtime_ns == before
    assert len(log.read_text().splitlines()) == 2


def test_a_restored_archive_is_not_freed_by_it_either(home: Home, at: Callable[..., Ended]) -> None:
    assert called("restore", ID).code == 0
    at(400, *RUN)
    assert_one_sentence(at(800, *EMPTY), 77)
    assert (home.archive / "manifest.json").exists()


def test_what_is_pruned_by_a_clock_that_is_behind_keeps_its_grace_time(
    home: Home, at: Callable[..., Ended]
) -> None:
    at(-30, *PRUNE)
    there = home.trashed()
    assert there
    for days in (0, 6):
        at(days, *RUN)
        assert home.trashed() == there
    at(8, *RUN)
    assert home.trashed() == set()


def test_a_restoration_under_a_clock_that_is_behind_keeps_its_grace_time(
    home: Home, at: Callable[..., Ended]
) -> None:
    assert at(-30, "restore", ID).code == 0
    at(6, *RUN)
    assert (home.archive / "manifest.json").exists()


def test_a_person_is_refused_and_told_what_helps(home: Home, at: Callable[..., Ended]) -> None:
    at(0, *PRUNE)
    there = home.trashed()
    ended = at(400, *EMPTY)
    assert_one_sentence(ended, 77)
    assert "Age rules are suspended until the next rotation or `sessrotate run`: " in ended.err
    assert "`--empty-trash --grace 0`" in ended.err
    assert home.trashed() == there
    assert at(400, *EMPTY, "--grace", "0").code == 0
    assert home.trashed() == set()


@pytest.mark.parametrize("by_hand", [True, False])
def test_without_a_grace_time_what_is_pruned_goes_at_once_by_whatever_clock(
    home: Home,
    at: Callable[..., Ended],
    by_hand: bool,
) -> None:
    Path("settings.toml").write_text('[prune]\nkeep_last = 1\n[trash]\ngrace = "0"\n')
    command = (*PRUNE, "--empty-trash", "--grace", "0") if by_hand else RUN
    at(-0.5, *command)  # by less than a day: nothing is said
    assert len([*home.archive.glob("*.jsonl.zst")]) == 1
    assert home.trashed() == set()


def test_what_a_clock_that_was_ahead_has_dated_is_named_until_it_is_touched(
    home: Home, at: Callable[..., Ended]
) -> None:
    at(0, *PRUNE)
    written_at(home, 400)
    ended = at(8, *EMPTY)
    assert_one_sentence(ended, 77)
    assert f"touch {home.archive}`" in ended.err
    os.utime(home.archive)
    assert at(8, *EMPTY).code == 0
    assert home.trashed() == set()


def test_keep_rules_go_by_no_clock(home: Home, at: Callable[..., Ended]) -> None:
    assert at(400, *PRUNE).code == 0
    assert home.trashed()


def test_a_dry_run_shows_it_and_changes_nothing(home: Home, at: Callable[..., Ended]) -> None:
    at(0, *PRUNE)
    before = snapshot(home.config.parent)
    assert at(400, *EMPTY[:-1], "--dry-run").code == 77
    assert "Nothing was pruned, and" in at(400, *RUN, "--dry-run").err
    document = at(400, *RUN, "--dry-run", "--json").document()
    assert "Age rules are suspended" in document["clock"]
    assert snapshot(home.config.parent) == before


@pytest.mark.usefixtures("home")
def test_doctor_says_so(at: Callable[..., Ended]) -> None:
    assert at(0, "doctor").code == 0
    findings = at(400, "doctor", "--json").document()["findings"]
    assert [entry["kind"] for entry in findings] == ["clock"]


@pytest.mark.parametrize("command", [PRUNE, ("restore", ID)])
def test_what_was_dated_in_the_future_is_deleted_without_a_grace_period(
    home: Home, at: Callable[..., Ended], command: tuple[str, ...]
) -> None:
    log = command_line.write(user_folders.log_file(), b"")
    written_at(home, 400)
    assert at(0, *command).code == 0
    for path in (home.archive, log):
        os.utime(path)
    assert at(8, "prune", ID, "--empty-trash", "--grace", "0", "--yes").code == 0
    assert home.trashed() == set()


def test_a_first_run_on_a_machine_without_archives_believes_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: Callable[..., Ended]
) -> None:
    made = homes.home(tmp_path, monkeypatch, DATA)
    Path("settings.toml").write_text("[rotate]\nmin_gain = 0\n[prune]\nkeep_last = 1\n")
    assert at(900, *RUN).err == ""
    assert made.trashed()
