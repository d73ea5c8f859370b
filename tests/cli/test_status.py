"""`sessrotate` alone says where things stand, and its gain is what tidying then gives."""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from sessrotate import render, units
from sessrotate.archive import place
from sessrotate.clients.claude import cleanup
from sessrotate.clients.claude import client as claude
from sessrotate.in_place import operations, seal
from sessrotate.in_place.obstacles import NoRoomError
from sessrotate.job.run_log import LastRun
from sessrotate.render import status as render_status
from sessrotate.status import Status
from sessrotate.system import disk_use, locks, user_folders
from sessrotate.units import amount
from support import command_line, homes
from support.command_line import called, on_terminal
from support.homes import Home, snapshot

if TYPE_CHECKING:
    from sessrotate.archive.place import Place

DATA = command_line.session(boundaries=6, rows=20, padding=30_000)
OTHER = "b0000000-0000-4000-a000-00000000000a"


def test_alone_it_says_what_is_there_what_to_gain_and_how_and_changes_nothing(home: Home) -> None:
    def others() -> dict[str, tuple[object, ...]]:
        found, cache = snapshot(home.config.parent), str(user_folders.cache_file().parents[1])
        return {path: there for path, there in found.items() if not path.startswith(cache)}

    before = others()
    ended = called()
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert re.fullmatch(r"On disk    Claude Code 4\.\d MiB \(1 session\)", lines[0])
    assert re.fullmatch(r"Can free   without any loss: about 3\.\d MiB from 1 session", lines[1])
    assert lines[2].split() == ["Command", "sessrotate", "tidy"]
    assert "setup" in lines[3]
    assert "so far" in lines[4]
    assert others() == before


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
    assert "Can free   nothing; 1 session that you restored stays whole\n" in called().out


def test_what_else_would_free_something_is_named_with_its_command_and_what_that_then_gives(
    home: Home,
) -> None:
    whole = command_line.session(boundaries=0, rows=20, padding=200_000)
    homes.unused_for(home.beside(OTHER, whole), 40)
    first = called().out.splitlines()[1]
    assert re.search(r"; then about [34]\.\d MiB from 2 sessions unused for 30", first)
    done, planned = called("tidy", "--yes").out, called("tidy", "-n").out
    heading = "What else takes up space, and how to free it:\n"
    assert done.partition(heading)[2] == planned.partition(heading)[2] != ""
    lines = called().out.splitlines()
    assert lines[2] == "Command    sessrotate archive --older-than 30d"
    home.run_by_a_client(OTHER)
    assert "2 sessions" not in called().out.splitlines()[1]  # one stays while a client is in it
    home.run_by_a_client("nobody's")
    told = render_units(re.search(r"about (\S+ MiB)", lines[1]))
    before = disk_use.of(home.config)
    assert called(*lines[2].split()[2:], "--yes").code == 0
    gained = before - disk_use.of(home.config)
    assert told / 1.1 < gained < told * 1.6  # what is made up compresses better than what is real
    assert "all is tidy" in called().out


def test_what_the_next_step_frees_is_of_what_tidying_leaves(home: Home) -> None:
    """Of an old session of 4 MiB that tidying makes smaller, the rest is all that can be had."""
    homes.unused_for(home.live, 40)
    assert "then" not in called().out.splitlines()[1]
    assert called("tidy", "--yes").code == 0
    assert "archive --older-than" not in called().out


def render_units(found: re.Match[str] | None) -> int:
    assert found is not None
    return units.size(found[1].replace(" ", "")) or 0


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
def test_what_runs_by_itself_is_said_and_not_a_hook_that_the_client_does_not_call() -> None:
    assert called("hook", "install").code == 0
    assert "compactions and session ends; `sessrotate setup` adds the nightly run" in called().out
    path = claude.settings_file()
    path.write_bytes(path.read_bytes().replace(b"{", b'{"disableAllHooks": true,', 1))
    assert "compactions" not in called().out


def test_without_any_session_it_says_so(home: Home) -> None:
    home.live.unlink()
    assert called().out.startswith("On disk    no sessions found\n")


def test_on_a_terminal_it_is_the_same(home: Home) -> None:
    said = called().out  # a second one is quick, however busy the machine is
    assert command_line.without_ansi(on_terminal(env=home.env).out).replace("\r", "") == said


def test_a_session_that_tidying_would_fail_for_is_named_and_then_not_all_is_tidy(
    home: Home,
) -> None:
    os.link(home.live, home.live.with_name("a backup"))
    said = called().out
    told = f"Failing    1 session ({command_line.ID}): `sessrotate tidy --dry-run` says why\n"
    assert told in said
    assert "Can free   nothing now\nCommand    sessrotate tidy --dry-run   says why\n" in said
    assert "hard link" in called("tidy", "-n").err


def test_what_a_full_disk_has_no_room_for_is_no_gain(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.beside(OTHER, DATA)
    planned = called("rotate", "-n", "--json", command_line.ID).document()
    room = planned["live"]["bytes_after"] - 1
    monkeypatch.setattr("sessrotate.fs.free_bytes", lambda _folder: room)
    said = called().out
    assert "Can free   nothing now\n" in said
    assert "Failing    2 sessions (" in said
    dry = called("tidy", "-n")
    assert dry.code == 74
    assert re.search(r"Make room for [\d.]+ KiB more, then try again\.", dry.err)
    assert dry.out.startswith("Nothing can be tidied now: ")


def test_what_the_sessions_before_it_free_is_room_for_the_next(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.beside(OTHER, DATA[: len(DATA) // 2])
    need = called("rotate", "-n", "--json", command_line.ID).document()["live"]["bytes_after"]
    monkeypatch.setattr("sessrotate.fs.free_bytes", lambda _folder: need)
    assert "Failing" not in called().out
    assert called("tidy", "-n").code == 0


def test_a_session_that_needs_the_room_of_later_ones_is_rotated_after_them(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.beside(OTHER, command_line.session(boundaries=6, rows=10, padding=30_000))
    need = called("rotate", "-n", "--json", command_line.ID).document()["live"]["bytes_after"]
    with monkeypatch.context() as patch:
        patch.setattr("sessrotate.fs.free_bytes", lambda _folder: need - 1)
        assert "Failing" not in called().out
        assert called("tidy", "-n").code == 0
    real, tried = operations.rotate_session, list[str]()

    def full_at_first(where: Place, *given: Any, **how: Any) -> operations.Rotated:
        tried.append(where.session)
        if len(tried) == 1:
            raise NoRoomError("The disk has no room for it.")
        return real(where, *given, **how)

    monkeypatch.setattr(operations, "rotate_session", full_at_first)
    assert called("tidy", "-y").code == 0
    assert [tried[0], *sorted({*tried})] == [command_line.ID, *sorted({*tried})]
    assert tried.count(command_line.ID) == 2


def test_what_was_interrupted_and_has_no_room_to_be_finished_is_no_gain(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(seal, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            home.rotate()
    assert re.search(
        r"Can free   without any loss: about [34]\.\d MiB from 1 session", called().out
    )
    monkeypatch.setattr("sessrotate.fs.free_bytes", lambda _folder: 4096)
    said, dry = called().out, called("tidy", "-n")
    assert "Can free   nothing now\n" in said
    assert "\nFailing    1 session (" in said
    assert dry.code == 74
    assert "32.0 KiB for what is left to be done, and 4.0 KiB is free" in dry.err


def test_a_report_says_what_the_disk_has_no_room_for(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.beside(OTHER, DATA)
    assert "no room" not in called("report", command_line.ID).out + called("report", "--all").out
    monkeypatch.setattr("sessrotate.fs.free_bytes", lambda _folder: 1000)
    lacks = called("report", command_line.ID, "--json").document()["room_missing_bytes"]
    assert (
        f"Make room for {amount(lacks, up=True)} more" in called("tidy", "-n", command_line.ID).err
    )
    said = called("report", command_line.ID).out
    assert re.search(r"no room for that: free [\d.]+ KiB more first", said)
    said = called("report", "--all").out
    assert "The disk is too full for 2 of them now: `sessrotate tidy -n`" in said


@pytest.mark.usefixtures("home")
def test_a_run_that_was_killed_was_no_run_that_went_well() -> None:
    assert called("tidy", "--yes").code == 0
    assert called().out.splitlines()[4].endswith(", done")
    *before, _end = user_folders.log_file().read_bytes().splitlines(keepends=True)
    user_folders.log_file().write_bytes(b"".join(before))
    assert "interrupted: `sessrotate tidy` continues it" in called().out
    locking = locks.only_run(place.run_lock())
    with locking:
        assert "so far" in called().out


def test_a_file_with_two_names_among_the_sessions_is_on_the_disk_once(home: Home) -> None:
    def listed() -> list[int]:
        return [each["disk_bytes"] for each in json.loads(called("list", "--json").out)]

    before = listed()
    os.link(home.live, home.live.with_name("b0000000-0000-4000-a000-00000000000b.jsonl"))
    assert len(listed()) == len(before) + 1
    assert sum(listed()) == sum(before)


def test_a_live_file_that_its_client_may_trim_is_on_the_disk_once(home: Home) -> None:
    kept = cleanup.new_name(home.live, command_line.ID)
    kept.parent.mkdir(parents=True)
    kept.hardlink_to(home.live)
    (found,) = json.loads(called("list", "--json").out)
    taken = disk_use.of(home.live, home.live.with_suffix(""))
    assert found["disk_bytes"] == taken
    assert found["side_bytes"] == 0
    assert f"Claude Code {render.size(taken)} (" in called().out


@pytest.mark.parametrize("words", [("tidy", "-y"), ("run",)], ids=" ".join)
def test_the_last_run_says_for_which_sessions_it_failed(home: Home, words: tuple[str, ...]) -> None:
    home.beside(OTHER, DATA)
    os.link(home.live, home.live.with_name("a backup"))
    assert called(*words).code == 77
    (line,) = (line for line in called().out.splitlines() if line.startswith("Last run"))
    assert line.endswith(f", ended with 77, failed for 1 session ({command_line.ID})")


def test_a_run_that_was_interrupted_says_what_goes_on() -> None:
    last = LastRun("2026-01-02T03:04:05+00:00", 130)
    shown = [*render_status.lines(Status((), 0, 0, (), 0, False, False, last))]
    assert "Last run   2026-01-02 03:04:05, interrupted: `sessrotate tidy` continues it" in shown


def test_settings_that_are_wrong_are_named_and_the_rest_is_said(
    home: Home,
) -> None:
    command_line.write(user_folders.config_file(), b"[rotate]\nmin_gian = 3\n")
    ended = called()
    assert (ended.code, ended.err) == (0, "")
    assert f"Problem    {user_folders.config_file()}: Unknown setting" in ended.out
    assert re.search(r"^Can free   without any loss: about 3", ended.out, re.MULTILINE)
    assert home.live.exists()


def test_three_problems_are_shown_the_worst_first(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(home.config / "gone"))
    command_line.write(user_folders.config_file(), b"[rotate]\nmin_gian = 3\n")
    commands = [{"type": "command", "command": "/gone/sessrotate hook --min-gain 1M"}]
    hooks = {"SessionEnd": [{"hooks": commands}]}
    command_line.write(
        claude.settings_file(), json.dumps({"disableAllHooks": True, "hooks": hooks}).encode()
    )
    lines = called().out.partition("\n\n")[0].splitlines()
    assert len(lines) == 5 + 3 + 1
    assert "CODEX_HOME names" in lines[5]
    assert "min_gian (did you mean min_gain?)" in lines[6]
    assert "disableAllHooks" in lines[7]
    assert lines[8].split() == ["and", "2", "more:", "`sessrotate", "doctor`", "shows", "all"]


def test_a_session_of_which_only_the_archive_is_left_is_named_and_not_to_be_pruned(
    home: Home,
) -> None:
    assert called("tidy", "--yes").code == 0
    home.live.unlink()
    said = called().out
    assert f"\nGone       only the archive of 1 session ({command_line.ID}) is left: " in said
    assert "prune" not in said
