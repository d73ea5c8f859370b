"""`rotate --all` and `verify --all`: every session, and one's failure is no other's."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from sessrotate.cli import streams
from support import command_line, homes
from support.command_line import called, on_terminal, without_ansi
from support.homes import Home

DATA: Final = command_line.session(boundaries=2)
WHATEVER: Final = ("--min-size", "1")
"""However little is freed."""

OTHER: Final = "0ddba11a-0000-4000-a000-00000000000a"

NEVER: Final = command_line.session(boundaries=0)


@pytest.fixture
def home(home: Home, tmp_path: Path) -> Home:
    """A machine with four sessions: one to rotate, a hard link, a running one, one to leave."""
    folder = home.live.parent
    for name, data in (("linked", DATA), ("running", DATA), ("short", NEVER)):
        (folder / f"{name}.jsonl").write_bytes(data)
    (tmp_path / "other").hardlink_to(folder / "linked.jsonl")
    home.run_by_a_client("running")
    return home


def results(document: object) -> dict[str, str]:
    assert isinstance(document, dict)
    return {entry["session"]: entry["result"] for entry in document["sessions"]}


def test_all_are_rotated_but_those_that_run_and_those_that_cannot(home: Home) -> None:
    ended = called("rotate", "--all", "--yes", *WHATEVER, "--json")
    assert ended.code == 77
    assert results(ended.document()) == {
        command_line.ID: "done",
        "linked": "failed",
        "running": "in use",
        "short": "nothing to do",
    }
    freed = len(DATA) - home.live.stat().st_size
    assert ended.document()["bytes_moved"] == freed
    assert home.stitched() == DATA
    assert home.live.with_name("running.jsonl").read_bytes() == DATA


def test_what_frees_little_is_left_alone_unless_it_is_named(home: Home) -> None:
    ended = called("rotate", "--all", "--yes", "--json")
    assert results(ended.document())[command_line.ID] == "nothing to do"
    assert home.live.read_bytes() == DATA
    assert called("rotate", command_line.ID).code == 0
    assert home.live.stat().st_size < len(DATA)


def test_in_bulk_nothing_is_done_where_nobody_can_be_asked(home: Home) -> None:
    before = homes.snapshot(home.config)
    ended = called("rotate", "--all", *WHATEVER)
    assert ended.code == 2
    assert "pass --yes" in ended.err
    ended = called("rotate", command_line.ID, "short")
    assert ended.code == 2
    assert homes.snapshot(home.config) == before


def test_one_that_is_gone_is_named_and_the_others_are_rotated(home: Home) -> None:
    other = home.live.with_name("5e55107a-0000-4000-a000-0000000000ff.jsonl")
    homes.another(home, other.stem, DATA)
    other.unlink()
    ended = called("rotate", "--yes", "--json", command_line.ID, other.stem)
    assert ended.code == 77
    assert results(ended.document()) == {command_line.ID: "done", other.stem: "failed"}


def test_a_dry_run_says_the_same_and_changes_nothing(home: Home) -> None:
    before = homes.snapshot(home.config)
    ended = called("rotate", "--all", "--dry-run", *WHATEVER, "--json")
    assert ended.code == 77
    assert results(ended.document())[command_line.ID] == "planned"
    assert homes.snapshot(home.config) == before


@pytest.mark.usefixtures("home")
def test_with_live_those_that_run_are_rotated_too() -> None:
    ended = called("rotate", "--all", "--yes", *WHATEVER, "--live", "--json")
    assert results(ended.document())["running"] == "done"


def test_with_live_one_that_is_written_to_all_the_time_is_a_failure(home: Home) -> None:
    home.live.with_name("linked.jsonl").unlink()
    with home.live.with_name("running.jsonl").open("ab"):
        ended = called("rotate", "--all", "-y", *WHATEVER, "--live", "--wait", "0", "--json")
    assert ended.code == 75
    assert results(ended.document())["running"] == "in use"


def test_small_ones_are_left_alone(home: Home) -> None:
    ended = called("rotate", "--all", "--min-size", "1G")  # asks nothing: there is nothing to do
    assert ended.code == 0
    assert ended.out == (
        "Nothing to rotate. Only sessions of Claude Code are rotated; `sessrotate tidy` compresses "
        "those of Codex.\n"
    )
    assert home.live.read_bytes() == DATA


@pytest.mark.usefixtures("home")
def test_the_table_ends_with_what_was_freed() -> None:
    ended = called("split", "--all", "--in-place", "--yes", *WHATEVER)
    heading = "session title project last used live file freed after"
    assert ended.out.splitlines()[0].split() == heading.split()
    assert "1 done" in ended.out.splitlines()[-1]
    assert ended.out.endswith(" more taken on disk.\n")
    assert "1 of 1" in ended.err


def test_all_archives_are_verified(home: Home) -> None:
    home.rotate()
    assert called("verify", "--all").code == 0
    segment = home.segment(1)
    segment.write_bytes(segment.read_bytes()[:-1])
    assert called("verify", "--all").code == 1


def test_with_all_a_session_whose_archive_is_gone_is_a_problem(home: Home) -> None:
    home.rotate()
    homes.another(home, OTHER, DATA)
    shutil.rmtree(home.archive)
    ended = called("verify", "--all")
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert len(lines) == 2
    assert lines[0].endswith(": whole")
    assert OTHER in lines[0]
    assert command_line.ID in lines[1]
    assert "Put that folder back" in lines[1]
    assert lines[1].count(str(home.live)) == 1
    shutil.rmtree(home.config / "sessrotate")  # what somebody does who needs space
    ended = called("verify", "--all", "--json")
    assert ended.code == 1
    problems = ended.document()["problems"]
    assert {problem["source"] for problem in problems} == {
        str(home.live),
        str(home.live.with_name(f"{OTHER}.jsonl")),
    }
    ended = called("verify", command_line.ID)
    assert ended.code == 1
    assert "whole" not in ended.out


def test_one_that_cannot_be_opened_keeps_no_other_from_being_verified(home: Home) -> None:
    home.rotate()
    homes.another(home, OTHER, DATA)
    folder = home.archive.with_name("00-no-archive")
    command_line.write(folder / "notes.txt", b"mine")
    command_line.write(home.archive.with_name("11-broken") / "manifest.json", b"{")
    ended = called("verify", "--all")
    assert ended.code == 1
    assert ended.out.count(": whole\n") == 2
    assert ended.out.count(str(folder)) == 1
    kinds = {
        Path(problem["source"]).name: problem["kind"]
        for problem in called("verify", "--all", "--json").document()["problems"]
    }
    assert kinds == {folder.name: "unread", "11-broken": "manifest"}


def test_a_fork_of_a_rotated_session_is_whole_wherever_the_archive_is(home: Home) -> None:
    home.rotate()
    header, rest = home.live.read_bytes().split(b"\n", 1)
    fork = home.live.with_name(f"{OTHER}.jsonl")
    fork.write_bytes(header + b"\n" + rest.replace(command_line.ID.encode(), OTHER.encode()))
    assert called("verify", "--all", "--json").document()["problems"] == []
    shutil.rmtree(home.archive)
    (problem,) = called("verify", "--all", "--json").document()["problems"]
    assert problem["source"] == str(home.live)
    assert str(fork) not in called("verify", "--all").out
    ended = called("doctor", "--json")
    assert ended.code == 1
    (finding,) = ended.document()["findings"]
    assert (finding["kind"], finding["session"]) == ("damaged", command_line.ID)
    said = called("doctor").out.splitlines()[-1]
    assert said.count(str(home.live)) == said.count(str(home.archive)) == 1


def test_a_terminal_shows_every_phase_and_where_in_the_batch_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = command_line.session(boundaries=3, rows=20, padding=30_000)
    made = homes.home(tmp_path, monkeypatch, long)
    command_line.write(made.live.with_name(f"{OTHER}.jsonl"), long)
    monkeypatch.setattr(streams, "PATIENCE", -1.0)  # shown at once
    mib = len(long) >> 20
    ended = on_terminal("rotate", "--all", "--yes", env=made.env)
    said = without_ansi(ended.out + ended.err)
    for phase in ("Reading", "Archiving"):
        assert f"1 of 2 · 0/{2 * len(long) >> 20} MiB · {phase}" in said
        assert f"2 of 2 · {mib}/{2 * len(long) >> 20} MiB · {phase}" in said
    command_line.write(made.live.with_name("0ddba11a-0000-4000-a000-00000000000b.jsonl"), long)
    said = without_ansi(on_terminal("tidy", "--yes", env=made.env).err)
    assert re.search(r"1 of \d · 0/\d+ MiB · Archiving", said)
