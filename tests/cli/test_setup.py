"""`setup` asks three questions and does what they say; `--remove` leaves what was there before."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Final

import pytest

from sessrotate.job import run_log, schedule
from sessrotate.render import setup as render_setup
from sessrotate.system import user_folders
from support import command_line, homes
from support.command_line import called, write
from support.homes import Home, snapshot
from support.terminals import asked

DATA: Final = command_line.session(boundaries=1)

SYSTEMD: Final = command_line.patched(
    "from pathlib import Path; from sessrotate.job import schedule; schedule.BOOTED = Path('/')"
)


ENABLES: Final = """wants="$XDG_CONFIG_HOME/systemd/user/timers.target.wants"
case "$2" in
enable) mkdir -p "$wants" && ln -sf "../$4" "$wants/$4" ;;
disable) rm -f "$wants/$4" ;;
esac"""
"""What systemctl leaves of a timer that it starts."""


@pytest.fixture
def home(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A client's folder, on a machine whose systemd can be told everything."""
    systemctl(tmp_path / "bin", ENABLES)
    monkeypatch.setattr(schedule, "BOOTED", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return home


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
    assert not user_folders.config_file().parent.exists()
    assert "Nothing to change." in called("setup", "--remove").out


def test_a_removal_leaves_every_folder_but_the_one_of_its_settings(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    dotfiles = home.config.parent / "dotfiles"
    dotfiles.mkdir()
    client = home.config.parent / "linked"
    client.symlink_to(dotfiles)  # and nothing is in it but what is installed
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(client))
    assert called("setup", "--yes").code == 0
    assert (dotfiles / "settings.json").exists()
    assert called("setup", "--remove").code == 0
    assert [*dotfiles.iterdir()] == []
    assert not user_folders.config_file().parent.exists()


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


@pytest.mark.parametrize("answers", ["yyy", "nnn", "ynn", "nyn", "nny", "nyy", "   "])
def test_a_person_has_what_the_answers_say(home: Home, answers: str) -> None:
    typed = "".join(f"{each.strip()}\n" for each in answers)  # Enter alone is yes
    typed += "\n"  # and no age
    env = {**home.env, "PATH": os.environ["PATH"], "COLUMNS": "60"}
    code, said = asked(typed, "setup", env=env, program=SYSTEMD)
    assert code == 0
    assert said.count("[Y/n]") == 3
    questions = said[: said.rindex("[Y/n]")].splitlines()
    assert max(map(len, questions)) <= 60
    hook, nightly, saving = (each != "n" for each in answers)
    nightly |= saving  # which it is done by
    assert settings(home).exists() == hook
    assert bool(units()) == nightly
    assert user_folders.config_file().exists() == saving
    said = " ".join(said.split())
    assert ("Nothing to change." in said) == (answers == "nnn")
    assert ("setup --remove" in said) == (answers != "nnn")


@pytest.mark.parametrize(("typed", "told"), [("14d\n", "14d"), ("soon\n2w\n", "2w"), ("\n", None)])
def test_a_person_may_have_old_sessions_put_away_sooner(
    home: Home, typed: str, told: str | None
) -> None:
    env = {**home.env, "PATH": os.environ["PATH"]}
    code, said = asked(f"n\nn\ny\n{typed}", "setup", env=env, program=SYSTEMD)
    assert code == 0
    assert ("Cannot use soon:" in said) == typed.startswith("soon")
    text = user_folders.config_file().read_text()
    assert (f'\nolder_than = "{told}"' in text) == (told is not None)
    assert '\nbefore_cleanup = "3d"' in text
    assert f"once it is unused for {'14 days' if told else '27 days'}" in said
    assert called("setup", "--remove").code == 0
    assert not user_folders.config_file().exists()


def test_where_the_scheduler_cannot_be_told_the_rest_is_done_and_cron_has_a_line(
    home: Home, tmp_path: Path
) -> None:
    systemctl(tmp_path / "bin", "echo no bus >&2; exit 1")
    ended = called("setup", "--yes")
    assert (ended.code, ended.err) == (0, "")
    assert schedule.plan("daily").line in ended.out
    assert units() == []
    assert settings(home).exists()


def test_a_part_that_fails_keeps_nobody_from_the_others(home: Home) -> None:
    write(settings(home), b"{")
    ended = called("setup", "--yes")
    assert ended.code == 77
    assert str(settings(home)) in ended.err
    assert settings(home).read_bytes() == b"{"
    assert user_folders.config_file().exists()
    assert units()


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("own", "is_set"),
    [
        ('# mine\n[archive]\nolder_than = "90d"\n[prune]\nkeep_last = 3\n', False),
        ('[archive]\nbefore_cleanup = "9d"\n', True),
        ('\ufeff[archive]\nolder_than = "90d"\n', False),
    ],
)
def test_settings_of_ones_own_stay_and_only_our_line_goes(own: str, is_set: bool) -> None:
    path = write(user_folders.config_file(), own.encode())
    assert called("setup", "--yes").code == 0
    assert ('before_cleanup = "3d"' in path.read_text()) != is_set
    assert (path.read_text() == own) == is_set
    assert called("setup", "--remove").code == 0
    assert path.read_text() == own


def test_a_running_client_is_told_of(home: Home) -> None:
    home.run_by_a_client()
    assert "1 client runs now" in called("setup", "--yes").out


def test_the_line_for_agents_is_that_of_the_guide() -> None:
    guide = Path(__file__).parents[2] / "docs" / "guide"
    assert render_setup.FOR_AGENTS in (guide / "getting-started.md").read_text()
    assert render_setup.FOR_AGENTS in (guide.parents[1] / "README.md").read_text()


def test_settings_that_are_a_link_stay_one_and_lines_end_as_they_did(home: Home) -> None:
    target = write(home.config.parent / "dot.toml", b'[archive]\r\nolder_than = "90d"\r\n')
    path = user_folders.config_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    before = target.read_bytes()
    assert called("setup", "--yes").code == 0
    assert path.is_symlink()
    assert b'before_cleanup = "3d" # by `sessrotate setup`\r\n' in target.read_bytes()
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


# ── what it says is true ─────────────────────────────────────────────────────────────────────


def without_a_scheduler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin" / "systemctl").unlink()
    monkeypatch.setattr(schedule, "BOOTED", tmp_path / "none")


def crontab(folder: Path, line: str) -> None:
    write(folder / "crontab", f"#!/bin/sh\ncat <<'END'\n{line}\nEND\n".encode()).chmod(0o755)


def test_without_a_scheduler_it_says_that_nothing_is_saved_until_cron_has_the_line(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_a_scheduler(monkeypatch, tmp_path)
    said = called("setup", "--yes").out
    assert f"{schedule.plan('daily').line}\nUntil that line is there, nothing is saved" in said
    (finding,) = called("doctor", "--json").document()["findings"]
    assert finding["kind"] == "schedule"
    assert "nothing starts `sessrotate run`" in finding["detail"]
    homes.unused_for(home.live, 25)
    assert "Claude Code deletes 1 session within a week\n" in called().out
    crontab(tmp_path / "bin", schedule.plan("daily").line)
    assert called("doctor").code == 0
    assert "within a week" not in called().out
    assert "crontab -e" not in called("setup", "--yes").out
    assert called("setup", "--remove").code == 0


@pytest.mark.parametrize(
    ("days", "margin", "after", "is_enough"),
    [
        (30, "3d", "27 days", True),
        (9, "3d", "6 days", True),
        (3, "1d", "2 days", True),
        (2, "16h", "1.3 days", False),
        (1, "8h", "1 day", False),
    ],
)
def test_saving_is_as_early_as_the_clients_period_allows_and_says_when(
    home: Home, days: int, margin: str, after: str, is_enough: bool
) -> None:
    write(settings(home), json.dumps({"cleanupPeriodDays": days}).encode())
    said = called("setup", "--yes")
    assert f'before_cleanup = "{margin}"' in user_folders.config_file().read_text()
    assert f"unused for {days} day{'' if days == 1 else 's'} ({settings(home)})" in said.out
    assert f"unused for {after}" in said.out
    assert ("cannot save all of them in time" in said.out) != is_enough
    assert f"unused for {after}" in called("run", "-n").out
    assert called("doctor").code == (0 if is_enough else 1)
    at = home.live.stat().st_mtime
    hours = {"27 days": 648, "6 days": 144, "2 days": 48, "1.3 days": 32, "1 day": 24}[after]
    for passed, is_there in [(0, True), (hours - 1, True), (hours + 1, False)]:
        os.utime(home.live, (at - passed * 3600, at - passed * 3600))
        assert called("run").code == 0
        assert home.live.exists() == is_there


def test_what_silences_the_hook_is_said_at_once(home: Home) -> None:
    write(settings(home), b'{"disableAllHooks": true}')
    for words in (("hook", "install"), ("setup", "--yes")):
        said = called(*words)
        assert said.code == 0
        assert f"disableAllHooks is set in {settings(home)}" in said.err
    (finding,) = called("doctor", "--json").document()["findings"]
    assert "disableAllHooks" in finding["detail"]


@pytest.mark.parametrize("way", ["i", "a", "link"])
@pytest.mark.parametrize("name", ["settings.json", "config.toml"])
def test_a_file_that_cannot_be_replaced_is_refused_before_anything_is_written(
    home: Home, tmp_path: Path, name: str, way: str
) -> None:
    path = settings(home) if name == "settings.json" else user_folders.config_file()
    write(path, b"{}" if name == "settings.json" else b"[prune]\n")
    if way == "link":
        os.link(path, tmp_path / "second")
    else:
        homes.flagged(path, f"+{way}")
    before = snapshot(path.parent)
    try:
        for words in (("--dry-run",), ("--yes",)):
            ended = called("setup", *words)
            assert ended.code == 77
            assert ("a hard link" if way == "link" else "chattr") in ended.err
            assert str(path) in ended.err
        assert snapshot(path.parent) == before
    finally:
        if way != "link":
            homes.flagged(path, f"-{way}")
    assert units()  # the others are done


def test_settings_in_somebody_elses_store_are_named_with_what_to_add(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = write(tmp_path / "store" / "settings.json", b"{}")
    settings(home).symlink_to(store)
    real = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode, **kw: Path(path) != store.parent and real(path, mode, **kw)
    )
    before = snapshot(home.config.parent)
    said = called("hook", "install")
    assert said.code == 77
    assert f"{settings(home)} is a link to {store}" in said.err
    added = said.err.partition("Add these lines where that file is generated:\n")[2]
    assert set(json.loads(added)["hooks"]) == {"SessionStart", "SessionEnd"}
    assert snapshot(home.config.parent) == before


# ── two profiles ─────────────────────────────────────────────────────────────────────────────


def test_two_folders_of_the_client_are_named_and_scheduled_each_by_itself(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = home.config.with_name(".claude-work")
    (work / "projects").mkdir(parents=True)
    assert called("setup", "--yes").code == 0
    for words in ((), ("list",), ("doctor",)):
        said = called(*words)
        assert str(work) in said.out + said.err, words
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{work}/")
    assert "Automatic  nothing yet" in called().out
    assert called("setup", "--yes").code == 0
    timers = sorted(path.name for path in schedule.units().glob("*.timer"))
    assert timers[1:] == ["sessrotate.timer"]
    assert timers[0].startswith("sessrotate-claude-work-")
    service = (schedule.units() / timers[0]).with_suffix(".service").read_text()
    assert f"Environment=CLAUDE_CONFIG_DIR={work}\n" in service
    assert called("doctor").code == 0
    assert called("setup", "--remove").code == 0
    assert [path.name for path in schedule.units().glob("*.timer")] == ["sessrotate.timer"]
    assert "before_cleanup" in user_folders.config_file().read_text()  # the other one's, too
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home.config))
    assert called("doctor").code == 0
    assert called("setup", "--remove").code == 0
    assert not schedule.units().exists()
    assert not user_folders.config_file().exists()


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("~/.claude", None),
        (".claude", None),
        ("{home}/.claude/", None),
        ("{home}/.claude/projects", "names the folder of projects: set it to {home}/.claude."),
        ("{home}/gone", "names {home}/gone, which does not exist"),
    ],
)
def test_however_the_folder_is_named_the_schedule_has_its_absolute_path(
    home: Home, monkeypatch: pytest.MonkeyPatch, named: str, told: str | None
) -> None:
    top = home.config.parent
    monkeypatch.chdir(top)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", named.format(home=top))
    found = [each["detail"] for each in called("doctor", "--json").document()["findings"]]
    assert [told.format(home=top) in each for each in found] == [True] if told else found == []
    if told is None:
        assert f"CLAUDE_CONFIG_DIR={home.config} " in schedule.plan("daily").line
        assert schedule.plan("daily").files[1][0].name == "sessrotate.timer"
    else:
        assert told.format(home=top) in called().out


def test_a_margin_of_ours_follows_the_clients_period_and_one_of_somebody_elses_is_named(
    home: Home,
) -> None:
    config = user_folders.config_file()
    write(settings(home), b'{"cleanupPeriodDays": 1}')
    assert called("setup", "--yes").code == 0
    assert 'before_cleanup = "8h"' in config.read_text()
    path = settings(home)
    path.write_bytes(
        path.read_bytes().replace(b'"cleanupPeriodDays": 1', b'"cleanupPeriodDays": 30')
    )
    assert called("setup", "--yes").code == 0
    assert 'before_cleanup = "3d"' in config.read_text()
    assert called("doctor").code == 0
    write(config, b'[archive]\nbefore_cleanup = "1h"\n')
    (finding,) = called("doctor", "--json").document()["findings"]
    assert "Raise `before_cleanup`" in finding["detail"]


def test_saving_that_its_owner_has_turned_off_is_said_to_be_off(home: Home) -> None:
    path = write(user_folders.config_file(), b"[archive]\nbefore_cleanup = false\n")
    line = f"`before_cleanup = false` in {path}"
    for words in (("setup", "--dry-run"), ("setup", "--yes")):
        said = called(*words)
        assert f"{line} turns that off. Remove that line" in said.out
        assert "puts a session away" not in said.out
    assert path.read_bytes() == b"[archive]\nbefore_cleanup = false\n"
    told = called("doctor", "--json").document()["settings"]["saved before that"]
    assert told == f"no, because of {line}"
    assert home.live.exists()


def test_what_setup_says_of_saving_is_what_its_settings_say(home: Home) -> None:
    write(settings(home), b'{"cleanupPeriodDays": 6}')
    assert called("setup", "--yes").code == 0
    settings(home).unlink()
    said = called("setup", "--yes").out
    assert "unused for 27 days: it leaves" in said
    assert "unused for 27 days" in called("run", "-n").out
    write(user_folders.config_file(), b"archive = {older_than = '9d'}\n")
    refused = called("setup", "--dry-run")  # nothing is set then, and nothing is promised
    assert (refused.code, "puts a session away" in refused.out) == (77, False)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("value", ['"7d"', '"12h"', "false"])
def test_a_margin_of_ours_that_somebody_has_edited_stays(value: str) -> None:
    assert called("setup", "--yes").code == 0
    path = user_folders.config_file()
    edited = path.read_text().replace('\nbefore_cleanup = "3d"', f"\nbefore_cleanup = {value}")
    path.write_text(edited)
    called("setup", "--yes")
    assert path.read_text() == edited


def test_a_weekly_run_is_said_to_be_too_late_to_save_and_stays_weekly(home: Home) -> None:
    assert called("setup", "--yes").code == 0
    said = called("schedule", "install", "--every", "weekly")
    assert "Start it every night" in said.err
    assert called("doctor").code == 1
    assert "Start it every night" in called("setup", "--yes").err
    planned = schedule.plan("weekly")
    assert planned.is_installed
    assert home.live.exists()


def test_a_session_that_was_restored_is_saved_again_before_its_client_deletes_it(
    home: Home,
) -> None:
    assert called("setup", "--yes").code == 0
    assert called("archive", command_line.ID).code == 0
    assert called("restore", command_line.ID).code == 0
    homes.unused_for(home.live, 26)
    assert called("run").code == 0
    assert home.live.exists()
    homes.unused_for(home.live, 28)
    assert called("run").code == 0
    assert not home.live.exists()


def test_a_run_that_failed_is_a_finding(home: Home) -> None:
    assert called("setup", "--yes").code == 0
    run_log.add({"at": "2026-03-01T03:17:00+00:00", "code": 74, "by_hand": False})
    found = [each["detail"] for each in called("doctor", "--json").document()["findings"]]
    assert any("ended with 74" in each for each in found)
    assert home.live.exists()


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("file", "left", "word"),
    [
        ("sessrotate.service", None, "gone"),
        ("sessrotate.timer", b"", "damaged"),
        ("timers.target.wants/sessrotate.timer", None, "does not start"),
    ],
)
def test_units_that_are_not_whole_or_that_nothing_starts_are_said_and_mended(
    file: str, left: bytes | None, word: str
) -> None:
    assert called("setup", "--yes").code == 0
    assert called("doctor").code == 0
    path = schedule.units() / file
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    (finding,) = called("doctor", "--json").document()["findings"]
    assert word in finding["detail"]
    assert "Nothing to change" not in called("setup", "-n").out
    moved = path.with_name("moved")
    if left is not None:
        path.rename(moved)  # what is not ours is left alone
    assert called("setup", "--yes").code == 0
    assert called("doctor").code == 0


@pytest.mark.usefixtures("home")
def test_a_dry_run_shows_what_would_go_of_a_unit_that_somebody_edited() -> None:
    assert called("setup", "--yes").code == 0
    service = schedule.units() / "sessrotate.service"
    written = service.read_text()
    service.write_text(written.replace("Nice=19", "Nice=5"))
    shown = called("setup", "--dry-run").out
    assert f"--- {service}\n" in shown
    assert "-Nice=5\n+Nice=19\n" in shown
    assert "sessrotate.timer" not in shown.partition("Would write")[0]
    assert "Nice=5" not in called("setup", "--remove", "--dry-run").out


def test_after_a_removal_a_line_of_cron_that_still_runs_is_named(
    home: Home, tmp_path: Path
) -> None:
    crontab(tmp_path / "bin", schedule.plan("daily").line)
    said = called("setup", "--remove")
    assert schedule.plan("daily").line in said.err
    assert home.live.exists()


@pytest.mark.parametrize(
    ("line", "is_well"),
    [
        ("17 3 * * * sessrotate run", True),
        ("17 3 * * * $HOME/tool/sessrotate run", True),
        ("17 3 * * * ~/tool/sessrotate run", True),
        ("17 3 * * * CLAUDE_CONFIG_DIR=$HOME/.claude /gone/sessrotate run", False),
    ],
)
def test_a_line_of_cron_is_read_as_cron_and_its_shell_read_it(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, is_well: bool
) -> None:
    without_a_scheduler(monkeypatch, tmp_path)
    write(home.config.parent / "tool" / "sessrotate", b"#!/bin/sh\n").chmod(0o755)
    crontab(tmp_path / "bin", line)
    write(user_folders.config_file(), b'[archive]\nbefore_cleanup = "3d"\n')
    found = called("doctor", "--json").document()["findings"]
    assert (found == []) == is_well
    assert is_well or "/gone/sessrotate, which can no longer be started" in found[0]["detail"]


def test_nothing_is_set_up_where_sessions_are_only_read(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(home.config)
    chats = home.config.parent / "gemini" / "gw1" / "chats"
    chats.mkdir(parents=True)
    monkeypatch.setenv("GEMINI_SESSIONS_DIR", str(chats.parents[1]))
    before = snapshot(home.config.parent)
    for way in ((), ("--yes",), ("--dry-run",)):
        ended = called("setup", *way)
        assert (ended.code, ended.out) == (0, "")
        assert "Nothing to set up" in ended.err
    assert snapshot(home.config.parent) == before
    (chats / "session-2026-11-21T23-37-12345678.jsonl").write_text(
        '{"sessionId":"12345678","projectHash":"x","kind":"main"}\n{"id":"a","type":"user",'
        '"timestamp":"2026-11-21T23:37:00Z","content":"asked"}\n'
    )
    assert "Automatic  nothing to do\n" in called().out
    (home.config.parent / "codex" / "sessions").mkdir(parents=True)
    monkeypatch.setenv("CODEX_HOME", str(home.config.parent / "codex"))
    assert "sessrotate.timer" in called("setup", "--dry-run").out
