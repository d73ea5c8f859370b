"""The log of what runs changed: readable after any crash, and never believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.clients.claude import client as claude
from sessrotate.errors import InUseError
from sessrotate.in_place.outcome import Outcome, failure
from sessrotate.job import run_log
from sessrotate.system import user_folders
from support import command_line, homes
from support.command_line import ID, called, modes

if TYPE_CHECKING:
    from support.homes import Home

DATA: Final = command_line.session(boundaries=3)
OTHER: Final = "55555555-0000-4000-a000-000000000002"
PRUNE: Final = ("prune", "--all", "--keep-last", "1", "--yes")


@pytest.fixture
def home(home: Home) -> Home:
    home.rotate()
    return home


def done(home: Home, freed: int = 5, *segments: int) -> Outcome:
    return Outcome(home.where, "done", freed, segments=segments)


def written() -> list[dict[str, Any]]:
    """Return the lines of sessions, in another way than the code's, the oldest first."""
    path = user_folders.log_file()
    lines = path.read_text().splitlines() if path.is_file() else []
    return [each for each in map(json.loads, lines) if "session" in each]


def runs() -> list[run_log.Run]:
    return run_log.runs(run_log.changes())


def actions() -> list[str]:
    return [each.action for each in run_log.changes()]


def test_a_run_that_changed_nothing_leaves_nothing(home: Home) -> None:
    kept = run_log.Journal("run")
    for outcome in (
        Outcome(home.where, "nothing to do", 9),
        Outcome(home.where, "planned", 9),
        Outcome(home.where, "done"),
        Outcome(None, "done", 9),
        failure(home.where, InUseError("in use")),
    ):
        kept.note(outcome, "rotate")
    kept.note(done(home), "recover")
    assert written() == []
    assert runs() == []


def test_each_session_is_written_down_before_the_next_is_begun(home: Home) -> None:
    outcomes = run_log.Journal("run").noting(
        "rotate", iter([done(home, 5, 0, 1), done(home, 7, 2)])
    )
    for number in (1, 2):
        next(outcomes)
        assert len(written()) == number
    live = home.live.stat()
    then = {"segments": 3, "pruned": 0, "is_away": False}
    then |= {"inode": live.st_ino, "size": live.st_size}
    first = written()[0]
    at = first.pop("at")
    assert at.startswith("20")
    told = {"format": 1, "run": 1, "command": "run", "folder": str(home.config), "session": ID}
    assert first == told | {"action": "rotate", "segments": [0, 1], "then": then}


def test_only_its_owner_can_read_it_and_no_content_is_in_it(home: Home) -> None:
    assert called(*PRUNE).code == 0
    home.append(command_line.boundary(90) + command_line.row(91, message={"content": "a secret"}))
    other = home.beside(OTHER, DATA)
    other.with_suffix(".copy").hardlink_to(other)
    command_line.write(user_folders.config_file(), b"rotate.min_gain = 0\n")
    assert called("rotate", "--all", "--yes", "--min-size", "1").code == 77
    assert called("run").code == 77
    path = user_folders.log_file()
    end = json.loads(path.read_bytes().splitlines()[-1])
    assert end["failures"] == [{"step": "rotate", "session": OTHER, "code": 77}]
    assert dict(modes(path.parent)) | {"runs.jsonl": 0o600} == dict(modes(path.parent))
    assert path.parent.stat().st_mode & 0o777 == 0o700
    for word in (b"row", b"secret", homes.PROJECT.encode()):
        assert word not in path.read_bytes()


def test_the_newest_twenty_are_kept_whole_whatever_the_clock_says(home: Home) -> None:
    for number in range(23):
        kept = run_log.Journal(f"run {number}")
        kept.note(done(home), "rotate")
        kept.note(done(home), "archive")
    found = runs()
    assert [run.number for run in found] == [*range(4, 24)]
    assert [run.command for run in found] == [f"run {number}" for number in range(3, 23)]
    assert len(written()) == 2 * run_log.MOST_RUNS


@pytest.mark.parametrize(("days", "is_kept"), [(300, True), (400, False)])
def test_a_run_that_compressed_sessions_is_kept_for_a_year(
    home: Home, monkeypatch: pytest.MonkeyPatch, days: int, *, is_kept: bool
) -> None:
    """Or nobody would know of a session that a resume made plain that it has to rest."""
    now = time.time()
    with monkeypatch.context() as patch:
        patch.setattr("time.time", lambda: now - days * 86_400)
        run_log.Journal("tidy").note(done(home), "compress")
    for _ in range(run_log.MOST_RUNS):
        run_log.Journal("run").note(done(home), "rotate")
    assert (ID in run_log.plain_since()) is is_kept


def test_lines_of_other_kinds_drop_no_run_and_runs_drop_none_of_them(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log, "MOST_LINES", 3)
    run_log.Journal("prune --all").note(done(home), "prune")
    for number in range(9):
        run_log.add({"at": str(number), "code": 0})
    assert [run.number for run in runs()] == [1]
    assert run_log.last() == run_log.LastRun("8", 0)
    for _ in range(30):
        run_log.Journal("prune --all").note(done(home), "prune")
    assert len(user_folders.log_file().read_bytes().splitlines()) == 3 + run_log.MOST_RUNS


@pytest.mark.usefixtures("home")
def test_a_log_that_is_too_large_to_be_ours_is_named_and_stops_no_run() -> None:
    path = command_line.write(user_folders.log_file(), b"")
    os.truncate(path, (64 << 20) + 1)
    command_line.assert_one_sentence(called("restore", "--runs"), 74)
    ended = called(*PRUNE)
    assert ended.code == 0
    assert "runs.jsonl is too large to be a log of runs: move it away" in ended.err


def test_a_full_disk_lets_the_log_grow_and_loses_no_line(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for number in range(25):
        if number == 21:
            monkeypatch.setattr("sessrotate.fs.create_file_at_once", full)
        kept = run_log.Journal("run")
        kept.note(done(home), "rotate")
        assert kept.failure is None
    assert [run.number for run in runs()] == [*range(2, 26)]


def test_two_runs_at_once_have_a_number_each(home: Home) -> None:
    one, other = run_log.Journal("one"), run_log.Journal("other")
    one.note(done(home), "rotate")
    other.note(done(home), "rotate")
    one.note(done(home), "archive")
    assert [(line["run"], line["command"]) for line in written()] == [
        (1, "one"), (2, "other"), (1, "one"),
    ]  # fmt: skip


def test_two_processes_at_once_lose_no_line_and_take_no_number_twice(home: Home) -> None:
    script = (
        "from sessrotate.job import run_log\n"
        "for number in range(6):\n"  # no run is dropped, whoever waits for how long
        "    first = run_log.note(run_log.Change(0, 'x', 'x', 'x', 'x', 'heal'))\n"
        "    run_log.note(first)\n"
    )
    many = [subprocess.Popen([sys.executable, "-c", script], env=home.env) for _ in range(3)]
    assert [each.wait(60) for each in many] == [0, 0, 0]
    numbers = [line["run"] for line in written()]
    assert sorted(numbers) == sorted([*range(1, 19)] * 2)


def test_of_another_folder_of_the_client_nothing_is_undone(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert called(*PRUNE).code == 0
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home.config.with_name("other")))
    assert called("restore", "--last-run").out.startswith("Nothing to restore: there is no record")
    assert called("restore", "--run", "1").code == 2


def test_what_failed_after_its_swap_counts_as_done(home: Home) -> None:
    ended = failure(home.where, InUseError("busy"))
    run_log.Journal("run").note(Outcome(home.where, ended.result, 100, error=ended.error), "rotate")
    assert actions() == ["rotate"]


def test_rows_that_came_back_are_a_healing(home: Home) -> None:
    run_log.Journal("rotate --all").note(done(home, -5), "rotate")
    run_log.Journal("run").note(done(home, 5, 0), "heal")
    assert actions() == ["heal", "rotate"]


@pytest.mark.parametrize("cut", range(1, 40, 7))
def test_half_a_line_at_the_end_hides_no_other(home: Home, cut: int) -> None:
    kept = run_log.Journal("run")
    kept.note(done(home, 5, 0), "rotate")
    kept.note(done(home, 5, 0), "archive")
    path = user_folders.log_file()
    path.write_bytes(path.read_bytes()[:-cut])
    assert actions() == ["rotate"]
    kept.note(done(home, 5, 0), "prune")
    assert actions() == ["rotate", "archive", "prune"][:: 1 if cut == 1 else 2]


def test_a_line_after_one_that_failed_is_whole(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = run_log.Journal("run")
    kept.note(done(home, 5, 0), "rotate")
    real = os.write

    def half(fd: int, data: bytes) -> int:
        real(fd, bytes(data)[:20])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        kept.note(done(home, 5, 1), "archive")
    assert kept.failure is not None
    kept.note(done(home, 5, 2), "prune")
    assert actions() == ["rotate", "prune"]


def test_a_log_that_cannot_be_written_stops_no_run_and_is_said(home: Home) -> None:
    home.append(command_line.boundary(90) + command_line.row(91))
    folder = user_folders.log_file().parent
    folder.parent.mkdir(parents=True)
    folder.write_bytes(b"a file in its place")
    ended = called("rotate", "--all", "--yes", "--min-size", "1")
    assert ended.code == 0
    assert "Cannot write the log of runs" in ended.err
    assert "1 done" in ended.out
    assert called("prune", "--all", "--keep-last", "1", "--yes").code == 0
    ended = called("restore", "--last-run")
    assert (ended.code, ended.out) == (
        0,
        "Nothing to restore: there is no record of a run over many sessions.\n",
    )


HOSTILE: Final[tuple[object, ...]] = (
    None, [], "x", 7, {}, {"session": "x"},
    {"session": "/etc/passwd", "action": "rotate"},
    {"session": ID, "action": "destroy", "segments": []},
    {"session": ID, "action": "prune", "segments": [-1]},
    {"session": ID, "action": "prune", "segments": [True]},
    {"session": ID, "action": "prune", "segments": "0"},
    {"session": "s" * 300, "action": "prune", "segments": [0]},
    {"project": "p", "session": ID, "action": "prune", "segments": [0]},
    {"session": 1, "action": "prune", "segments": [0]},
)  # fmt: skip


def forged(*lines: object) -> None:
    path = user_folders.log_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    first = {"format": 1, "run": 900, "command": "run", "at": "2026-01-01T00:00:00Z"}
    first["folder"] = str(claude.config_folder())
    whole = [{**first, **line, "then": None} if isinstance(line, dict) else line for line in lines]
    with path.open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in whole)


@pytest.mark.parametrize("line", HOSTILE, ids=repr)
@pytest.mark.usefixtures("home")
def test_a_line_that_is_not_ours_is_passed_over(line: object) -> None:
    forged(line)
    found = runs()
    assert called("restore", "--runs").code == 0
    assert called("restore", "--last-run", "--yes").code == 0
    assert called("doctor").code in {0, 1}
    assert found == [] or found[0].sessions == ("/etc/passwd",)
    forged({"session": ID, "action": "heal", "segments": []})
    assert runs()[0].sessions[-1] == ID


@pytest.mark.usefixtures("home")
def test_an_earlier_run_is_not_undone_over_one_that_cannot_be_read(home: Home) -> None:
    assert called(*PRUNE).code == 0
    home.append(command_line.boundary(90) + command_line.row(91))
    assert called("rotate", "--all", "--yes", "--min-size", "1").code == 0
    path = user_folders.log_file()
    path.write_bytes(path.read_bytes().replace(b'"rotate"', b'"twist"'))
    before = homes.snapshot(home.config / "projects")
    ended = called("restore", "--last-run", "--yes")
    assert ended.code == 0
    assert "rotated since: left alone" in ended.out
    assert homes.snapshot(home.config / "projects") == before


@pytest.mark.parametrize(
    "session",
    ["../../outside", "/etc", "..", "", "\x1b[2J", "a\0b", "5e55107a-0000-4000-a000-00000000dead"],
)
def test_ids_that_name_no_session_lead_nowhere(home: Home, session: str) -> None:
    forged({"session": session, "action": "rotate", "segments": [0]})
    before = homes.snapshot(home.config)
    ended = called("restore", "--last-run", "--yes")
    assert ended.code == 0
    assert "no longer exists" in ended.out
    assert not command_line.raw_controls(ended.out)
    assert homes.snapshot(home.config) == before


def test_one_that_was_named_is_not_written_down(home: Home) -> None:
    home.append(command_line.boundary(90) + command_line.row(91))
    home.rotate()
    home.append(command_line.boundary(92) + command_line.row(93))
    for command in (("rotate", ID), ("prune", ID, "--keep-last", "1", "--yes"), ("archive", ID)):
        assert called(*command).code == 0
    assert called("restore", ID).code == 0
    assert not user_folders.log_file().exists()


def test_what_is_only_shown_is_not_written_down(home: Home) -> None:
    home.append(command_line.boundary(90) + command_line.row(91))
    home.rotate()
    home.append(command_line.boundary(92) + command_line.row(93))
    for command in (
        ("rotate", "--all", "--min-size", "1"),
        ("prune", "--all", "--keep-last", "1"),
        ("archive", "--older-than", "1m"),
        ("run",),
        ("tidy",),
        ("restore", "--last-run"),
    ):
        assert called(*command, "--dry-run").code == 0, command
    assert written() == []
