"""`sessrotate verify` as people and scripts meet it: a real process, piped and on a terminal."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sessrotate.retention import put_away
from support import homes
from support.command_line import (
    ID,
    Ended,
    called,
    contents,
    on_terminal,
    patched,
    piped,
    raw_controls,
    session,
    write,
)
from support.crash.changes import Faults, Killed
from support.homes import Home
from support.limits import UNPRIVILEGED

DATA = session()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = write(tmp_path / f"{ID}.jsonl", DATA)
    assert piped("split", source, "--out", tmp_path / "set").code == 0
    return tmp_path / "set"


@pytest.fixture
def damaged(folder: Path) -> Path:
    with (folder / f"{ID}.2.jsonl").open("r+b") as segment:
        segment.seek(-5, os.SEEK_END)
        segment.write(b"#")
    return folder


@pytest.mark.parametrize("run", [piped, on_terminal])
def test_a_sound_set_is_whole(run: Any, folder: Path) -> None:
    before = contents(folder)
    ended: Ended = run("verify", folder)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.endswith("whole\n")
    assert ended.out.count("\n") == 1
    assert contents(folder) == before
    (folder / "manifest.json").unlink()
    assert run("verify", folder).code == 0


@pytest.mark.usefixtures("home")
def test_where_nothing_is_archived_that_is_said() -> None:
    ended = called("verify", "--all")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "Nothing to verify: no session is rotated, put away or compressed.\n"
    assert called("verify", "--all", "--json").document() == {"ok": True, "problems": []}


def test_what_was_pruned_is_not_whole(home: Home) -> None:
    home.rotate()
    assert called("prune", "--keep-last", "1", "--yes", ID).code == 0
    ended = called("verify", ID)
    assert ended.code == 0
    assert ended.out.endswith(": whole except for 2 pruned segments\n")
    assert "1 archived segment and the live file" in ended.out


def test_an_archiving_that_was_killed_is_no_problem_of_what_is_archived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(1, 30):
        home = homes.home(tmp_path / str(at), monkeypatch, session(2))
        with pytest.MonkeyPatch.context() as patch:
            Faults(at).install(patch)
            with suppress(Killed):
                put_away.put_away(home.where, 1)
        ended = called("verify", "--all")
        assert (ended.code, ended.err) == (0, ""), ended.out
        assert "problem" not in ended.out


@pytest.mark.parametrize("run", [piped, on_terminal])
def test_damage_is_said_on_stdout_and_by_the_exit_code(run: Any, damaged: Path) -> None:
    ended: Ended = run("verify", damaged)
    assert (ended.code, ended.err) == (1, "")
    assert "Segment 2" in ended.out
    assert raw_controls(ended.out) == set()


@pytest.mark.parametrize("run", [piped, on_terminal])
def test_json_is_one_document_with_the_keys_of_the_contract(run: Any, damaged: Path) -> None:
    ended: Ended = run("verify", damaged, "--json")
    assert (ended.code, ended.err) == (1, "")
    document = ended.document()
    assert set(document) >= {"ok", "problems"}
    assert document["ok"] is False
    (problem,) = document["problems"]
    assert set(problem) >= {"source", "kind", "detail"}
    assert problem["source"] == str(damaged)
    assert "Segment 2" in problem["detail"]


def test_all_that_is_wrong_is_listed_not_only_the_first(damaged: Path) -> None:
    (damaged / f"{ID}.1.jsonl").unlink()
    with (damaged / f"{ID}.3.jsonl").open("ab") as segment:
        segment.write(b"more\n")
    problems = piped("verify", damaged, "--json").document()["problems"]
    for index in (1, 2, 3):
        assert any(f"Segment {index} " in problem["detail"] for problem in problems), index
    assert len(problems) == 3


def test_several_sources_are_one_document(damaged: Path) -> None:
    source = damaged.parent / f"{ID}.jsonl"
    other = damaged.parent / "other"
    assert piped("split", source, "--out", other).code == 0
    ended = piped("verify", other, damaged, source, "--json")
    assert ended.code == 1
    assert {problem["source"] for problem in ended.document()["problems"]} == {str(damaged)}
    said = piped("verify", other, damaged, source)
    assert (said.code, said.out.count("\n")) == (1, 3)
    assert piped("verify", other, source).code == 0


def test_any_file_of_a_set_stands_for_the_set(damaged: Path) -> None:
    for name in (f"{ID}.jsonl", f"{ID}.1.jsonl", f"{ID}.2.jsonl"):
        ended = piped("verify", damaged / name)
        assert (ended.code, "Segment 2" in ended.out) == (1, True), name


def test_an_unreadable_segment_is_a_problem_and_no_failure(folder: Path) -> None:
    (folder / f"{ID}.1.jsonl").chmod(0)
    ended = piped("verify", folder, "--json", program=UNPRIVILEGED)
    assert ended.code == 1
    assert "Segment 1" in ended.document()["problems"][0]["detail"]


def test_leftovers_are_problems(folder: Path) -> None:
    write(folder / "intent.json", b"{}")
    ended = piped("verify", folder, "--json")
    assert ended.code == 1
    assert [problem["kind"] for problem in ended.document()["problems"]] == ["unfinished"]


def test_an_interrupt_is_one_sentence(folder: Path) -> None:
    program = patched(
        "import os, signal, sessrotate.system.digest as d; update = d.Fingerprint.update\n"
        "def interrupted(*arguments):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return update(*arguments)\n"
        "d.Fingerprint.update = interrupted"
    )
    ended = piped("verify", folder, "--json", program=program)
    assert ended == Ended(130, "", "sessrotate: Interrupted.\n")


def test_of_a_restored_session_the_archive_that_is_kept_is_verified(home: Home) -> None:
    home.rotate()
    home.restore()
    for named in (ID, "--all"):
        ended = called("verify", named)
        assert (ended.code, ended.err) == (0, "")
        assert "its old archive, kept until its grace period is over: 3 segm" in ended.out
    whole = home.live.read_bytes()
    home.live.write_bytes(whole[: len(whole) // 2])
    for named in (ID, "--all"):
        ended = called("verify", named)
        assert ended.code == 1
        assert "does not match the history that was restored" in ended.out
        assert "the whole session is in this file" not in ended.out
    home.live.write_bytes(whole)
    with home.segments()[1].open("r+b") as segment:
        segment.seek(-20, os.SEEK_END)
        segment.write(b"#")
    for named in (ID, "--all"):
        ended = called("verify", named)
        assert ended.code == 1
        assert home.segments()[1].name in ended.out
