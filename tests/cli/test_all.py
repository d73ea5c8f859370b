"""`split --all` and `verify --all`: every session, and one's failure is no other's."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Final

import pytest

from support import command_line, homes
from support.command_line import called
from support.homes import Home

DATA: Final = command_line.session(boundaries=2)
NEVER: Final = command_line.session(boundaries=0)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A machine with four sessions: one to rotate, a hard link, a running one, one to leave."""
    made = homes.home(tmp_path, monkeypatch, DATA)
    folder = made.live.parent
    for name, data in (("linked", DATA), ("running", DATA), ("short", NEVER)):
        (folder / f"{name}.jsonl").write_bytes(data)
    (tmp_path / "other").hardlink_to(folder / "linked.jsonl")
    (made.config / "sessions").mkdir()
    running = {"pid": os.getpid(), "sessionId": "running"}
    (made.config / "sessions" / f"{os.getpid()}.json").write_text(json.dumps(running))
    return made


def results(document: object) -> dict[str, str]:
    assert isinstance(document, dict)
    return {entry["session"]: entry["result"] for entry in document["sessions"]}


def test_all_are_rotated_but_those_that_run_and_those_that_cannot(home: Home) -> None:
    ended = called("split", "--all", "--in-place", "--json")
    assert ended.code == 77
    assert results(ended.document()) == {
        command_line.ID: "done",
        "linked": "failed",
        "running": "in use",
        "short": "nothing to do",
    }
    freed = len(DATA) - home.live.stat().st_size
    assert ended.document()["bytes_freed"] == freed
    assert home.stitched() == DATA
    assert home.live.with_name("running.jsonl").read_bytes() == DATA


def test_a_dry_run_says_the_same_and_changes_nothing(home: Home) -> None:
    before = homes.snapshot(home.config)
    ended = called("split", "--all", "--in-place", "--dry-run", "--json")
    assert ended.code == 77
    assert results(ended.document())[command_line.ID] == "planned"
    assert homes.snapshot(home.config) == before


@pytest.mark.usefixtures("home")
def test_with_live_those_that_run_are_rotated_too() -> None:
    ended = called("split", "--all", "--in-place", "--live", "--json")
    assert results(ended.document())["running"] == "done"


def test_with_live_one_that_is_written_to_all_the_time_is_a_failure(home: Home) -> None:
    home.live.with_name("linked.jsonl").unlink()
    with home.live.with_name("running.jsonl").open("ab"):
        ended = called("split", "--all", "--in-place", "--live", "--wait", "0", "--json")
    assert ended.code == 75
    assert results(ended.document())["running"] == "in use"


def test_small_ones_are_left_alone(home: Home) -> None:
    ended = called("split", "--all", "--in-place", "--min-size", "1G")
    assert ended.code == 0
    assert ended.out == "0 sessions; 0 B freed.\n"
    assert home.live.read_bytes() == DATA


@pytest.mark.usefixtures("home")
def test_the_table_ends_with_what_was_freed() -> None:
    ended = called("split", "--all", "--in-place")
    assert ended.out.splitlines()[0].split() == ["session", "before", "after", "freed", "result"]
    assert "1 done" in ended.out.splitlines()[-1]
    assert ended.out.endswith(" freed.\n")
    assert "1 of 4" in ended.err


@pytest.mark.parametrize("size", ["1X", "-5", "", "1.5.2M"])
def test_a_size_that_is_none_is_wrong_usage(home: Home, size: str) -> None:
    assert called("split", "--all", "--in-place", "--min-size", size).code == 2
    assert home.live.read_bytes() == DATA


@pytest.mark.parametrize(
    "arguments",
    [("--all",), ("--all", "--in-place", "x"), ("--min-size", "1M", "x"), ("--in-place",), ()],
    ids=" ".join,
)
def test_options_that_do_not_go_together_are_wrong_usage(
    home: Home, arguments: tuple[str, ...]
) -> None:
    assert called("split", *arguments).code == 2
    assert home.live.read_bytes() == DATA


def test_all_archives_are_verified(home: Home) -> None:
    home.rotate()
    assert called("verify", "--all").code == 0
    segment = home.archive / f"{command_line.ID}.1.jsonl"
    segment.write_bytes(segment.read_bytes()[:-1])
    assert called("verify", "--all").code == 1
    assert called("verify", "--all", "x").code == 2
    assert called("verify").code == 2


def test_doctor_names_a_session_whose_archive_is_gone(home: Home) -> None:
    home.rotate()
    shutil.rmtree(home.archive)
    ended = called("doctor", "--json")
    assert ended.code == 1
    assert [finding["kind"] for finding in ended.document()["findings"]] == ["damaged"]
