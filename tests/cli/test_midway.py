"""What was interrupted on its way out of the client's folder or back, and what came back."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate import fs
from sessrotate.errors import StorageError
from sessrotate.render import size
from sessrotate.retention import away_files
from sessrotate.system import user_folders
from sessrotate.system.source import Source
from support import command_line
from support.command_line import ID, called, row, write
from support.homes import Home, snapshot
from support.processes import needs_proc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sessrotate.archive.record import AwayStep

DATA: Final = command_line.session(boundaries=4, rows=20, padding=30_000)
LARGE: Final = "5e55107a-0000-4000-a000-000000000200"
BESIDE: Final = b"p" * 300_000


@pytest.fixture
def home(home: Home) -> Home:
    write(beside(home), BESIDE)
    return home


def beside(home: Home) -> Path:
    return home.live.with_suffix("") / "tool-results" / "x.txt"


def half(home: Home, standing: AwayStep) -> None:
    """Leave a session as a kill does: its live file where its client looks, the rest put away."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fs.Draft, "append", full)
        assert called("archive", ID).code == 74  # all of it is put away, and plain
    (home.archive / "archived" / home.live.name).rename(home.live)
    away_files.write_standing(home.where, standing)


def full(*_: object) -> None:
    raise OSError(28, os.strerror(28))


@contextlib.contextmanager
def opened_elsewhere(path: Path) -> Iterator[None]:
    """Have another process hold a file open for writing."""
    with path.open("ab") as file:
        process = subprocess.Popen(["sleep", "60"], stdout=file)
    try:
        yield
    finally:
        process.kill()
        process.wait()


# ── interrupted ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("words", [("tidy", "--yes"), ("run",)])
def test_the_next_run_finishes_putting_a_session_away(home: Home, words: tuple[str, ...]) -> None:
    half(home, "archiving")
    assert "sessrotate archive" in called("doctor").out
    before = snapshot(home.config)
    planned = called(words[0], "-n", "--json").document()
    assert planned["code"] == 0
    assert snapshot(home.config) == before
    assert called(*words).code == 0
    assert (home.live.exists(), beside(home).exists()) == (False, False)
    assert called("doctor").code == 0
    assert called("restore", ID).code == 0
    assert (home.live.read_bytes(), beside(home).read_bytes()) == (DATA, BESIDE)


@pytest.mark.parametrize("words", [("tidy", "--yes"), ("run",), ("restore", ID)])
def test_bringing_a_session_back_is_finished_and_called_what_it_is(
    home: Home, words: tuple[str, ...]
) -> None:
    half(home, "unarchiving")
    said = called("doctor").out
    assert "Bringing the session back was interrupted: `sessrotate restore" in said
    assert "rchiving was" not in said
    told = called("restore", "-n", ID).out
    assert f"Would put {ID} back: {size(len(DATA) + len(BESIDE))} in" in told
    ended = called(*words)
    assert ended.code == 0, ended
    assert (home.live.read_bytes(), beside(home).read_bytes()) == (DATA, BESIDE)
    assert called("doctor").code == 0


@needs_proc
def test_a_session_that_is_used_again_is_left_half_way_and_nothing_is_lost(home: Home) -> None:
    half(home, "archiving")
    with opened_elsewhere(home.live):
        assert called("run").code == 0  # in use is no failure
        assert "in use" in called("archive", ID, "--wait", "0").err
    assert home.live.read_bytes() == DATA
    assert called("restore", ID).code == 0
    assert beside(home).read_bytes() == BESIDE


# ── restored ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", [(), ("--keep-rotated",)])
def test_what_its_owner_brought_back_no_rule_puts_away_again(
    home: Home, how: tuple[str, ...]
) -> None:
    write(user_folders.config_file(), b'[archive]\nolder_than = "1m"\n')
    assert called("rotate", ID).code == 0
    assert called("archive", ID).code == 0
    assert called("restore", *how, ID).code == 0
    taken = home.live.stat().st_size
    for words in (("run",), ("tidy", "--yes"), ("archive", "--older-than", "1m", "--yes")):
        assert called(*words).code == 0
        assert home.live.stat().st_size == taken
    assert called("archive", ID).code == 0  # by name
    assert not home.live.exists()


def test_rotating_it_by_name_lets_the_rules_have_it_again(home: Home) -> None:
    write(user_folders.config_file(), b'[archive]\nolder_than = "1m"\n')
    assert called("archive", ID).code == 0
    assert called("restore", ID).code == 0
    assert called("rotate", ID).code == 0
    assert called("run").code == 0
    assert not home.live.exists()


def test_what_was_restored_since_the_last_run_is_named_without_a_command_that_does_nothing(
    home: Home,
) -> None:
    home.beside(LARGE, DATA)
    assert called("tidy", "--yes").code == 0
    assert called("restore", "--last-run", "--yes").code == 0
    again = called("restore", "--run", "1", "--yes").out
    assert again.count("nothing to do: undone already\n") == 2
    assert called("rotate", ID, LARGE, "--yes").code == 0
    assert called("restore", ID, LARGE, "--yes").code == 0
    again = called("restore", "--last-run", "--yes").out
    assert "restored since: left alone\n" in again
    assert "restores it" not in again


# ── nothing to do, and why ───────────────────────────────────────────────────────────────────


@needs_proc
def test_that_nothing_is_tidied_has_the_reason_that_there_is(home: Home) -> None:
    with opened_elsewhere(home.live):
        ended = called("tidy", "-n", ID)
    assert "Nothing to tidy now: sessions and archives take" in ended.out
    assert "worth it" not in ended.out
    assert called("archive", ID).code == 0
    assert called("restore", ID).code == 0
    ended = called("tidy", "-n")
    assert "Nothing to tidy now" in ended.out
    assert "You restored this session" in ended.out
    assert "worth it" not in ended.out


@needs_proc
def test_a_session_in_use_is_no_part_of_what_tidying_frees(home: Home) -> None:
    home.beside(LARGE, DATA)
    whole = called("report", "--all").out
    assert "Rotating 2 sessions would free" in whole
    with opened_elsewhere(home.live):
        said = called("report", "--all").out
        assert "Rotating 1 session would free" in said
        assert "1 session in use would free about" in said
        assert "close its client first" in said


def test_a_session_that_its_owner_restored_is_no_part_of_it_either(home: Home) -> None:
    home.beside(LARGE, DATA)
    assert called("archive", ID).code == 0
    assert called("restore", ID).code == 0
    said = called("report", "--all").out
    assert "Rotating 1 session would free" in said
    assert "1 session that you restored would free about" in said
    assert "rotate it by name, as above" in said
    assert f"sessrotate rotate {ID}" in said


# ── a full disk ──────────────────────────────────────────────────────────────────────────────


def test_what_cannot_be_made_smaller_is_tried_once(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = os.urandom(200_000)
    beside(home).write_bytes(noise)
    assert called("archive", ID).code == 0
    monkeypatch.setattr(fs.Draft, "append", full)
    ended = called("archive", ID)
    assert (ended.code, "nothing to do" in ended.out) == (0, True)
    assert called("doctor").code == 0


def test_a_plan_does_with_what_beside_a_session_cannot_be_read(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside(home).write_bytes(b"p" * 2_000_000)
    itself = Source.itself

    def refused(path: Path) -> Source:
        if path.name == "x.txt":
            raise StorageError("Cannot open it.")
        return itself(path)

    readable = called("archive", "-n", "--json", ID).document()["disk_bytes_gained"]
    monkeypatch.setattr(Source, "itself", refused)
    ended = called("archive", "-n", "--json", ID)
    assert ended.code == 0
    assert ended.document()["disk_bytes_gained"] == pytest.approx(readable - 2_000_000, abs=20_000)


def test_verifying_all_on_a_full_disk_is_no_damage(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert called("archive", ID).code == 0
    assert home.archive.exists()
    monkeypatch.setattr(fs, "scratch", full)
    ended = called("verify", "--all")
    assert ended.code == 74
    assert "Cannot decompress the session: No space left on device" in ended.out


def test_what_there_was_no_room_to_finish_is_finished_when_a_run_has_freed_some(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside(home).unlink()
    noise = json.dumps({"type": "user", "text": os.urandom(1_500_000).hex()}).encode()
    home.live.write_bytes(row(1) + noise + b"\n")
    home.beside(LARGE, DATA)
    with monkeypatch.context() as patch:
        patch.setattr(fs.Draft, "append", full)
        assert called("archive", ID).code == 74
    compress = away_files.compress

    def cramped(*args: Any) -> None:
        if not (home.archive.parent / LARGE).exists():
            full()
        compress(*args)

    monkeypatch.setattr(away_files, "compress", cramped)
    ended = called("tidy", "--yes")
    assert ended.code == 74, ended
    assert "otated 1 session" in ended.out
    ended = called("tidy", "--yes")
    assert ended.code == 0, ended
    assert "Recovered 1 session" in ended.out
    assert not (home.archive / "archived" / home.live.name).exists()  # compressed
