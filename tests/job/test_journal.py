"""The journal: what a run changed, readable after any crash, and never believed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.errors import DamagedError, InUseError
from sessrotate.in_place.outcome import Outcome, failure
from sessrotate.job import journal
from sessrotate.system import user_folders
from support import command_line, homes
from support.command_line import ID, called, modes, names_in, piped
from support.limits import limited

if TYPE_CHECKING:
    from support.homes import Home

DATA: Final = command_line.session(boundaries=3)
PRUNE: Final = ("prune", "--all", "--keep-last", "1", "--yes")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = homes.home(tmp_path, monkeypatch, DATA)
    made.rotate()
    return made


def done(home: Home, freed: int = 5, *segments: int) -> Outcome:
    return Outcome(home.where, "done", freed, segments=segments)


def written() -> list[list[dict[str, Any]]]:
    """Return every file's lines, in another way than the code's, the oldest file first."""
    folder = user_folders.journal_folder()
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]


def test_a_run_that_changed_nothing_leaves_nothing(home: Home) -> None:
    kept = journal.begin("run")
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
    assert journal.last() is None


def test_each_session_is_written_down_before_the_next_is_begun(home: Home) -> None:
    outcomes = journal.begin("run").noting("rotate", iter([done(home, 5, 0, 1), done(home, 7, 2)]))
    for number in (1, 2):
        next(outcomes)
        (lines,) = written()
        assert len(lines) == 1 + number
    live = home.live.stat()
    then = {"segments": 3, "pruned": 0, "is_away": False}
    then |= {"inode": live.st_ino, "size": live.st_size, "archive": home.archive.stat().st_ino}
    told = {"format": 1, "session": ID, "action": "rotate", "segments": [0, 1]}
    assert lines[1] == told | {"then": then}


def test_only_its_owner_can_read_it_and_no_content_is_in_it(home: Home) -> None:
    assert called(*PRUNE).code == 0
    home.append(command_line.boundary(90) + command_line.row(91))
    assert called("rotate", "--all", "--yes", "--min-size", "1").code == 0
    folder = user_folders.journal_folder()
    assert dict(modes(folder)) == {"journal": 0o700, "000001.jsonl": 0o600, "000002.jsonl": 0o600}
    assert "row" not in "".join(file.read_text() for file in folder.iterdir())


def test_the_newest_twenty_are_kept_whatever_the_clock_says(home: Home) -> None:
    for number in range(23):
        journal.begin(f"run {number}").note(done(home), "rotate")
    assert len(written()) == journal.MOST
    assert [lines[0]["command"] for lines in written()] == [f"run {n}" for n in range(3, 23)]
    run = journal.last()
    assert run is not None
    assert run.command == "run 22"


def test_two_runs_at_once_have_a_file_each(home: Home) -> None:
    one, other = journal.begin("one"), journal.begin("other")
    one.note(done(home), "rotate")
    other.note(done(home), "rotate")
    one.note(done(home), "archive")
    assert [len(lines) for lines in written()] == [3, 2]


def test_what_failed_after_its_swap_counts_as_done(home: Home) -> None:
    ended = failure(home.where, InUseError("busy"))
    journal.begin("run").note(Outcome(home.where, ended.result, 100, error=ended.error), "rotate")
    assert [lines[1]["action"] for lines in written()] == ["rotate"]


def test_rows_that_came_back_are_a_healing(home: Home) -> None:
    journal.begin("rotate --all").note(done(home, -5), "rotate")
    journal.begin("run").note(done(home, 5, 0), "heal")
    assert [lines[1]["action"] for lines in written()] == ["heal", "rotate"]


@pytest.mark.parametrize("cut", range(1, 40, 7))
def test_half_a_line_at_the_end_hides_no_other(home: Home, cut: int) -> None:
    kept = journal.begin("run")
    kept.note(done(home, 5, 0), "rotate")
    kept.note(done(home, 5, 0), "archive")
    (path,) = user_folders.journal_folder().iterdir()
    path.write_bytes(path.read_bytes()[:-cut])
    run = journal.last()
    assert run is not None
    assert [entry.action for entry in run.entries] == ["rotate", "archive"][: 1 + (cut == 1)]


def test_a_line_after_one_that_failed_is_whole(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = journal.begin("run")
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
    run = journal.last()
    assert run is not None
    assert [entry.action for entry in run.entries] == ["rotate", "prune"]


def test_a_journal_that_cannot_be_written_stops_no_run_and_is_said(home: Home) -> None:
    home.append(command_line.boundary(90) + command_line.row(91))
    folder = user_folders.journal_folder()
    folder.parent.mkdir(parents=True)
    folder.write_bytes(b"a file in its place")
    ended = called("rotate", "--all", "--yes", "--min-size", "1")
    assert ended.code == 0
    assert "Cannot write the journal" in ended.err
    assert "1 done" in ended.out
    assert called("prune", "--all", "--keep-last", "1", "--yes").code == 0
    ended = called("restore", "--last-run")
    assert (ended.code, ended.out) == (
        0,
        "Nothing to restore: no run over many sessions is on record.\n",
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


def forged(*lines: object, head: object = None) -> None:
    folder = user_folders.journal_folder()
    folder.mkdir(parents=True, exist_ok=True)
    first = {"format": 1, "command": "run", "at": "2026-01-01T00:00:00Z"} if head is None else head
    whole = [
        {"format": 1, **line, "then": None} if isinstance(line, dict) else line for line in lines
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in (first, *whole))
    (folder / "000900.jsonl").write_text(text)


@pytest.mark.parametrize("line", HOSTILE, ids=repr)
@pytest.mark.usefixtures("home")
def test_a_line_that_is_not_ours_is_passed_over(line: object) -> None:
    forged(line)
    with pytest.raises(DamagedError, match="name the sessions"):
        journal.last()
    forged(line, {"session": ID, "action": "heal", "segments": []})
    run = journal.last()
    assert run is not None
    assert [entry.action for entry in run.entries] == ["heal"]


@pytest.mark.parametrize("head", ["x", [], {"format": 2, "command": "run", "at": "x"}], ids=repr)
@pytest.mark.usefixtures("home")
def test_an_earlier_run_is_never_taken_for_one_that_cannot_be_read(head: object) -> None:
    assert called(*PRUNE).code == 0
    assert len(written()) == 1
    forged({"session": ID, "action": "rotate", "segments": []}, head=head)
    ended = called("restore", "--last-run", "--yes")
    command_line.assert_one_sentence(ended, 74)


@pytest.mark.parametrize(
    "session",
    ["../../outside", "/etc", "..", "", "\x1b[2J", "a\0b", "5e55107a-0000-4000-a000-00000000dead"],
)
def test_ids_that_name_no_session_lead_nowhere(home: Home, session: str) -> None:
    forged({"session": session, "action": "rotate", "segments": [0]})
    before = homes.snapshot(home.config.parent)
    ended = called("restore", "--last-run", "--yes")
    assert ended.code == 0
    assert "is not there any more" in ended.out
    assert not command_line.raw_controls(ended.out)
    assert homes.snapshot(home.config.parent) == before


def test_a_full_disk_costs_the_line_and_not_the_run(home: Home) -> None:
    home.append(command_line.boundary(90) + command_line.row(91))
    ended = piped(
        "rotate", "--all", "--yes", "--min-size", "1", env=home.env,
        program=limited("RLIMIT_FSIZE", 200),
    )  # fmt: skip
    assert ended.code == 74  # the session itself has no room either, and is as it was
    assert written() == []


def test_one_that_was_named_is_not_written_down(home: Home) -> None:
    home.append(command_line.boundary(90) + command_line.row(91))
    home.rotate()
    home.append(command_line.boundary(92) + command_line.row(93))
    for command in (("rotate", ID), ("prune", ID, "--keep-last", "1", "--yes"), ("archive", ID)):
        assert called(*command).code == 0
    assert called("restore", ID).code == 0
    assert not user_folders.journal_folder().exists()
    assert "journal" not in names_in(home.config)


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
