"""`setup` asks three questions and does what they say; `--remove` leaves what was there before."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Final

import pytest

from sessrotate import automation
from sessrotate.job import schedule
from sessrotate.render import setup as render_setup
from sessrotate.system import user_folders
from support import command_line, homes
from support.command_line import called, write
from support.homes import Home, snapshot
from support.terminals import asked

SYSTEMD: Final = command_line.patched(
    "from pathlib import Path; from sessrotate.job import schedule; schedule.BOOTED = Path('/')"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A client's folder, on a machine whose systemd can be told everything."""
    made = homes.home(tmp_path, monkeypatch, command_line.session(boundaries=1))
    systemctl(tmp_path / "bin", "exit 0")
    monkeypatch.setattr(schedule, "BOOTED", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return made


def systemctl(folder: Path, script: str) -> None:
    write(folder / "systemctl", f"#!/bin/sh\n{script}\n".encode()).chmod(0o755)


def settings(home: Home) -> Path:
    return home.config / "settings.json"


def units() -> list[str]:
    planned = schedule.plan("daily")
    return [path.name for path, _ in planned.files if path.exists()]


def test_without_questions_all_of_it_is_on_and_gone_again(home: Home) -> None:
    before = snapshot(home.config.parent)
    ended = called("setup", "--yes")
    assert (ended.code, ended.err) == (0, "")
    assert set(json.loads(settings(home).read_bytes())["hooks"]) == {"SessionStart", "SessionEnd"}
    assert 'before_cleanup = "3d"' in user_folders.config_file().read_text()
    assert stat.S_IMODE(user_folders.config_file().stat().st_mode) == 0o600
    assert units() == ["sessrotate.service", "sessrotate.timer"]
    assert render_setup.FOR_AGENTS in ended.out
    assert "already" in called("setup", "--yes").out
    ended = called("setup", "--remove")
    assert (ended.code, ended.err) == (0, "")
    assert snapshot(home.config.parent) == before
    assert "Nothing to change." in called("setup", "--remove").out


def test_a_dry_run_shows_every_change_and_makes_none(home: Home) -> None:
    before = snapshot(home.config.parent)
    ended = called("setup", "--dry-run")
    assert ended.code == 0
    assert '+        "matcher": "compact",' in ended.out
    assert '+before_cleanup = "3d"' in ended.out
    assert "sessrotate.timer" in ended.out
    assert snapshot(home.config.parent) == before


def test_nobody_is_asked_without_a_terminal(home: Home) -> None:
    before = snapshot(home.config.parent)
    assert called("setup").code == 2
    assert snapshot(home.config.parent) == before


@pytest.mark.parametrize("answers", ["yyy", "nnn", "ynn", "nyn", "nny", "   "])
def test_a_person_has_what_the_answers_say(home: Home, answers: str) -> None:
    typed = "".join(f"{each.strip()}\n" for each in answers)  # Enter alone is yes
    env = {**home.env, "PATH": os.environ["PATH"]}
    code, said = asked(typed, "setup", env=env, program=SYSTEMD)
    assert code == 0
    assert said.count("[Y/n]") == 3
    hook, nightly, saving = (each != "n" for each in answers)
    assert settings(home).exists() == hook
    assert bool(units()) == nightly
    assert user_folders.config_file().exists() == saving
    assert ("Nothing to change." in said) == (answers == "nnn")
    assert ("setup --remove" in said) == (answers != "nnn")


def test_where_the_scheduler_cannot_be_told_the_rest_is_done_and_cron_has_a_line(
    home: Home, tmp_path: Path
) -> None:
    systemctl(tmp_path / "bin", "echo no bus >&2; exit 1")
    ended = called("setup", "--yes")
    assert (ended.code, ended.err) == (0, "")
    assert schedule.cron_line("daily") in ended.out
    assert units() == []
    assert settings(home).exists()


def test_a_line_for_cron_names_the_folders_of_all_clients(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", "/srv/codex")
    monkeypatch.setenv("GEMINI_SESSIONS_DIR", "/srv/gemini")
    line = schedule.cron_line("daily")
    assert "CODEX_HOME=/srv/codex" in line
    assert "GEMINI_SESSIONS_DIR=/srv/gemini" in line
    assert f"CLAUDE_CONFIG_DIR={home.config}" in line


def test_a_part_that_fails_keeps_nobody_from_the_others(home: Home) -> None:
    write(settings(home), b"{")
    ended = called("setup", "--yes")
    assert ended.code == 77
    assert str(settings(home)) in ended.err
    assert settings(home).read_bytes() == b"{"
    assert user_folders.config_file().exists()
    assert units()


@pytest.mark.usefixtures("home")
def test_settings_of_ones_own_stay_and_only_our_line_goes() -> None:
    own = '# mine\n[archive]\nolder_than = "90d"\n[prune]\nkeep_last = 3\n'
    path = write(user_folders.config_file(), own.encode())
    assert called("setup", "--yes").code == 0
    assert 'before_cleanup = "3d"' in path.read_text()
    assert called("setup", "--remove").code == 0
    assert path.read_text() == own


@pytest.mark.usefixtures("home")
def test_what_somebody_has_set_already_is_left() -> None:
    own = '[archive]\nbefore_cleanup = "9d"\n'
    path = write(user_folders.config_file(), own.encode())
    assert called("setup", "--yes").code == 0
    assert path.read_text() == own
    assert called("setup", "--remove").code == 0
    assert path.read_text() == own


@pytest.mark.parametrize("wanted", [(), ("hook",), ("saving",), ("schedule", "saving")])
def test_only_what_is_wanted_is_planned(home: Home, wanted: tuple[str, ...]) -> None:
    planned = automation.plan(frozenset(wanted))
    there = {
        "hook": planned.hook is not None,
        "schedule": planned.schedule is not None,
        "saving": planned.settings is not None,
    }
    assert there == {name: name in wanted for name in there}
    assert not settings(home).exists()


def test_a_running_client_is_told_of(home: Home) -> None:
    registered = {"pid": os.getpid(), "sessionId": command_line.ID, "cwd": "/"}
    write(home.config / "sessions" / f"{os.getpid()}.json", json.dumps(registered).encode())
    assert "1 client runs now" in called("setup", "--yes").out


def test_the_line_for_agents_is_that_of_the_guide() -> None:
    guide = Path(__file__).parents[2] / "docs" / "guide"
    assert render_setup.FOR_AGENTS in (guide / "getting-started.md").read_text()
    assert render_setup.FOR_AGENTS in (guide.parents[1] / "README.md").read_text()


@pytest.mark.usefixtures("home")
def test_cron_is_all_there_is_on_a_machine_without_systemd(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bin" / "systemctl").unlink()
    monkeypatch.setattr(schedule, "BOOTED", tmp_path / "none")
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert schedule.cron_line("daily") in called("setup", "--yes").out


def test_settings_that_are_a_link_stay_one_and_lines_end_as_they_did(home: Home) -> None:
    target = write(home.config.parent / "dot.toml", b'[archive]\r\nolder_than = "90d"\r\n')
    path = user_folders.config_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    before = target.read_bytes()
    assert called("setup", "--yes").code == 0
    assert path.is_symlink()
    assert b'before_cleanup = "3d"  # by `sessrotate setup`\r\n' in target.read_bytes()
    assert called("setup", "--remove").code == 0
    assert path.is_symlink()
    assert target.read_bytes() == before


def test_one_part_that_cannot_be_removed_keeps_nobody_from_the_others(home: Home) -> None:
    assert called("setup", "--yes").code == 0
    write(settings(home), b"x")
    ended = called("setup", "--remove")
    assert ended.code == 77
    assert not user_folders.config_file().exists()
    assert units() == []


def test_a_dry_run_says_what_would_fail(home: Home) -> None:
    write(user_folders.config_file(), b"[archive]\nenabled = false\n")
    assert called("setup", "--dry-run").code == 2
    assert str(user_folders.config_file()) in called("setup", "--yes").err
    assert settings(home).exists()  # the others are done
