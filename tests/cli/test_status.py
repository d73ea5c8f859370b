"""`sessrotate` alone says where things stand, and its gain is what tidying then gives."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from sessrotate.clients.claude import client as claude
from support import command_line, homes
from support.command_line import called, on_terminal
from support.homes import Home, snapshot

if TYPE_CHECKING:
    from pathlib import Path

DATA = command_line.session(boundaries=6, rows=20, padding=30_000)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return homes.home(tmp_path, monkeypatch, DATA)


def test_alone_it_says_what_is_there_what_to_gain_and_how_and_changes_nothing(home: Home) -> None:
    before = snapshot(home.config.parent)
    ended = called()
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert re.fullmatch(r"On disk    Claude Code 4\.\d MiB \(1 session\)", lines[0])
    assert re.fullmatch(r"To gain    about 3\.\d MiB from 1 session, nothing is lost", lines[1])
    assert lines[2].split() == ["Command", "sessrotate", "tidy"]
    assert "setup" in lines[3]
    assert "none so far" in lines[4]
    assert snapshot(home.config.parent) == before


@pytest.mark.usefixtures("home")
def test_after_tidying_there_is_nothing_to_gain_and_a_last_run() -> None:
    assert called("tidy", "--yes").code == 0
    lines = called().out.splitlines()
    assert "of it archives" in lines[0]
    assert "nothing" in lines[1]
    assert lines[4].endswith("done")


@pytest.mark.usefixtures("home")
def test_what_its_owner_restored_is_not_called_tidy() -> None:
    assert called("tidy", "--yes").code == 0
    assert called("restore", command_line.ID).code == 0
    assert "To gain    nothing; 1 session that you restored stays whole\n" in called().out


def test_an_archive_that_is_missing_is_named_and_then_not_all_is_tidy(home: Home) -> None:
    assert called("tidy", "--yes").code == 0
    assert "all is tidy" in called().out
    assert "Missing" not in called().out
    shutil.rmtree(home.config / "sessrotate")
    said = called().out
    assert "all is tidy" not in said
    (line,) = (line for line in said.splitlines() if line.startswith("Missing"))
    told = f"the archive of 1 session ({command_line.ID}): `sessrotate doctor` says what to do"
    assert line == f"Missing    {told}"


def test_of_many_missing_archives_three_are_named(home: Home) -> None:
    for number in range(5):
        homes.another(home, f"{number}0000000-0000-4000-a000-00000000000a", DATA)
    shutil.rmtree(home.config / "sessrotate")
    said = called().out
    assert "\nMissing    the archives of 5 sessions (" in said
    assert "20000000-0000-4000-a000-00000000000a and 2 more)" in said


@pytest.mark.usefixtures("home")
def test_what_runs_by_itself_is_said() -> None:
    assert called("hook", "install").code == 0
    assert "compactions and session ends; `sessrotate setup` adds the nightly run" in called().out


@pytest.mark.usefixtures("home")
def test_a_hook_that_the_client_does_not_call_runs_nothing() -> None:
    assert called("hook", "install").code == 0
    path = claude.settings_file()
    path.write_bytes(path.read_bytes().replace(b"{", b'{"disableAllHooks": true,', 1))
    assert "compactions" not in called().out


def test_without_any_session_it_says_so(home: Home) -> None:
    home.live.unlink()
    assert called().out.startswith("On disk    no sessions found\n")


def test_on_a_terminal_it_is_the_same(home: Home) -> None:
    assert (
        command_line.without_ansi(on_terminal(env=home.env).out).replace("\r", "") == called().out
    )
