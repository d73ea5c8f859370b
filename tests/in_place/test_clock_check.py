"""A clock that cannot be believed prunes and frees nothing, and every command says why."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from support import command_line, homes
from support.command_line import ID, Ended, assert_one_sentence, called
from support.homes import Home, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

DAY: Final = 86_400.0
DATA: Final = command_line.session(boundaries=4)
RULES: Final = 'prune.max_age = "52w"\nrotate.min_gain = false\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = homes.home(tmp_path, monkeypatch, DATA)
    made.rotate()
    Path("settings.toml").write_text(RULES)
    return made


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Return what runs a command by a clock that is off by days."""
    real = time.time

    def call(days: float, *arguments: str) -> Ended:
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: real() + days * DAY)
            return called(*arguments)

    return call


RUN: Final = ("run", "--config", "settings.toml")
EMPTY: Final = ("prune", ID, "--empty-trash", "--yes")
PRUNE: Final = ("prune", ID, "--keep-last", "1", "--yes")


def trashed(home: Home) -> set[str]:
    folder = home.archive / "trash"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_a_clock_that_is_far_ahead_frees_nothing_in_that_run(
    home: Home, at: Callable[..., Ended]
) -> None:
    assert at(0, *PRUNE).code == 0
    there = trashed(home)
    assert there
    for days in (30, 30.5):
        ended = at(days, *RUN)
        assert ended.code == 0
        assert "Nothing was pruned or freed by its age. The clock" in ended.err
        assert trashed(home) == there
    assert at(31.1, *RUN).code == 0
    assert trashed(home) == set()


def test_a_restored_archive_is_not_freed_by_it_either(home: Home, at: Callable[..., Ended]) -> None:
    assert called("restore", ID).code == 0
    at(30, *RUN)
    assert_one_sentence(at(30, *EMPTY), 77)
    assert (home.archive / "manifest.json").exists()


def test_set_right_again_it_frees_nothing_at_once(home: Home, at: Callable[..., Ended]) -> None:
    at(0, *RUN)
    at(-30, *PRUNE)
    there = trashed(home)
    assert there
    at(0, *RUN)
    assert trashed(home) == there
    for days in range(1, 7):
        at(days, *RUN)
    assert trashed(home) == there
    at(8, *RUN)
    assert trashed(home) == set()


def test_a_restoration_under_a_clock_that_is_behind_keeps_its_grace_time(
    home: Home, at: Callable[..., Ended]
) -> None:
    at(0, *RUN)
    assert at(-30, "restore", ID).code == 0
    at(0.1, *RUN)
    at(1.2, *RUN)
    at(6, *RUN)
    assert (home.archive / "manifest.json").exists()


@pytest.mark.parametrize("days", [30, -30])
def test_a_clock_that_jumped_prunes_nothing_by_age(
    home: Home, at: Callable[..., Ended], days: int
) -> None:
    at(0, "run", "--config", "none.toml")
    before = snapshot(home.archive)
    ended = at(days + 400, *RUN)
    assert "Nothing was pruned" in ended.err
    assert_one_sentence(at(days + 400, "prune", ID, "--max-age", "52w", "--yes"), 77)
    assert snapshot(home.archive) == before


def test_a_person_is_refused_and_told_what_helps(home: Home, at: Callable[..., Ended]) -> None:
    at(0, *PRUNE)
    there = trashed(home)
    ended = at(30, *EMPTY)
    assert_one_sentence(ended, 77)
    assert "30 days ahead of what was last known" in ended.err
    assert "if it is right, wait for that" in ended.err
    assert "`--empty-trash --grace 0`" in ended.err
    assert trashed(home) == there
    assert at(30, *EMPTY, "--grace", "0").code == 0
    assert trashed(home) == set()


def test_keep_rules_go_by_no_clock(home: Home, at: Callable[..., Ended]) -> None:
    at(0, *RUN)
    assert at(30, *PRUNE).code == 0
    assert trashed(home)


def test_a_dry_run_shows_it_and_remembers_nothing(home: Home, at: Callable[..., Ended]) -> None:
    at(0, *PRUNE)
    memory = home.config / "sessrotate" / "locks" / "clock.json"
    before, known = snapshot(home.config.parent), memory.read_bytes()
    assert at(30, *EMPTY[:-1], "--dry-run").code == 77
    shown = at(30, *RUN, "--dry-run")
    assert "Nothing was pruned or freed" in shown.err
    document = at(30, *RUN, "--dry-run", "--json").document()
    assert "30 days ahead" in document["clock"]
    assert snapshot(home.config.parent) == before
    assert memory.read_bytes() == known


@pytest.mark.usefixtures("home")
def test_doctor_says_so(at: Callable[..., Ended]) -> None:
    assert at(30, "doctor").code == 0  # nothing is there that could go
    at(0, *PRUNE)
    assert at(0, "doctor").code == 0
    findings = at(30, "doctor", "--json").document()["findings"]
    assert [entry["kind"] for entry in findings] == ["clock"]
    at(30, *RUN)
    assert "The clock stepped at" in at(30.5, "doctor").out
    assert at(31.5, "doctor").code == 0


def test_a_memory_that_is_lost_or_cannot_be_written_frees_nothing_early(
    home: Home, at: Callable[..., Ended]
) -> None:
    at(0, *PRUNE)
    there = trashed(home)
    memory = home.config / "sessrotate" / "locks" / "clock.json"
    assert set(json.loads(memory.read_bytes())) == {"format", "first", "last", "newest", "highest"}
    memory.write_bytes(b"{")
    at(30, *RUN)
    assert trashed(home) == there
    memory.unlink()
    memory.mkdir()
    at(30, *RUN)
    assert trashed(home) == there


def test_a_first_run_on_a_machine_without_archives_believes_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: Callable[..., Ended]
) -> None:
    made = homes.home(tmp_path, monkeypatch, DATA)
    Path("settings.toml").write_text("[rotate]\nmin_gain = 0\n[prune]\nkeep_last = 1\n")
    assert at(300, *RUN).err == ""
    assert trashed(made)
