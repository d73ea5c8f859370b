"""What agents said is found wherever their clients put it, also where no session is there."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from typing import TYPE_CHECKING

import pytest

from sessrotate.system import user_folders
from support import command_line
from support.command_line import ID, called, write

if TYPE_CHECKING:
    from support.homes import Home

DATA = command_line.session()
OTHER = ID[:-1] + "2"


def transcript(words: str, session: str = ID) -> bytes:
    row = {
        "type": "user",
        "isSidechain": True,
        "uuid": words,
        "sessionId": session,
        "timestamp": "2026-03-01T10:00:00Z",
        "message": {"role": "user", "content": words},
    }
    return json.dumps(row).encode() + b"\n"


@pytest.fixture
def home(home: Home) -> Home:
    """A session with a transcript beside it, one in its folder, and one in `subagents`."""
    folder = home.live.parent
    write(folder / "agent-a1.jsonl", transcript("beside-it"))
    write(folder / ID / "agent-a2.jsonl", transcript("directly-in-it"))
    write(folder / ID / "subagents" / "agent-a3.jsonl", transcript("further-in-it"))
    return home


WORDS = "beside-it|directly-in-it|further-in-it"


@pytest.mark.parametrize("state", ["plain", "rotated", "put away"])
def test_every_transcript_is_searched_and_exported(home: Home, state: str) -> None:
    if state == "rotated":
        home.rotate()
    told = called("search", WORDS).out
    assert all(word in told for word in WORDS.split("|"))
    if state == "put away":
        assert called("archive", ID).code == 0
        assert called("restore", ID).code == 0
    shown = called("export", ID, "--format", "markdown").out
    assert all(word in shown for word in WORDS.split("|"))


@pytest.mark.parametrize("is_long", [False, True])
def test_transcripts_are_found_while_the_session_is_put_away(home: Home, *, is_long: bool) -> None:
    shown = called("export", ID, "--format", "markdown").out
    for path in home.live.parent.rglob("agent-*.jsonl") if is_long else ():
        write(path, path.read_bytes() + transcript("long " * 20_000))
    assert called("archive", ID).code == 0
    assert any(home.archive.rglob("agent-*.jsonl.sessrotate.zst")) == is_long
    hits = [json.loads(line) for line in called("search", WORDS, "--json").out.splitlines()]
    assert sorted(hit["text"] for hit in hits) == sorted(WORDS.split("|"))
    for line in called("search", WORDS).out.splitlines():
        if "sessrotate read" in line:
            command = shlex.split(line.partition("sessrotate ")[2])
            assert re.search(f"^> ({WORDS})$", called(*command).out, re.MULTILINE)
    assert called("search", WORDS, "--session", ID, "-c").code == 0
    again = called("export", ID, "--format", "markdown").out
    assert all(word in again for word in WORDS.split("|"))
    assert again == shown or is_long


def test_a_damaged_transcript_of_a_session_that_was_put_away_is_named(home: Home) -> None:
    path = home.live.parent / "agent-a1.jsonl"
    write(path, path.read_bytes() + transcript("long " * 20_000))
    assert called("archive", ID).code == 0
    (away,) = home.archive.rglob("agent-*.jsonl.sessrotate.zst")
    write(away, away.read_bytes()[:-8] + b"damaged!")
    ended = called("search", "beside-it")
    assert ended.code == 74
    assert f"{away} cannot be read: its compressed data is damaged" in ended.err
    assert "its compressed data is damaged" in called("export", ID, "--format", "markdown").out


def test_an_agent_that_outlasts_its_session_is_found_by_its_own_time(home: Home) -> None:
    home.live.write_bytes(command_line.session().replace(b"2026-", b"2020-"))
    os.utime(home.live, (1e9, 1e9))
    since = ("--since", "2026-03-01T09:59:59Z")
    ended = called("search", "further-in-it", *since)
    assert "further-in-it" in ended.out
    assert ended.out.endswith("\n1 hit in 1 of 1 session.\n")


def test_a_session_that_was_never_written_is_listed_found_and_named(home: Home) -> None:
    home.live.unlink()
    (row,) = called("list", "--hidden", "--json").document()
    assert (row["session"], row["standing"], row["bytes"], row["live"]) == (ID, "agent", 0, False)
    assert row["disk_bytes"] >= 3 * 4096
    assert called("list", "--json").document() == []
    told = called("search", WORDS).out
    assert all(word in told for word in WORDS.split("|"))
    ended = called("read", ID)
    assert ended.code == 2
    assert ended.err.count("agent-a") == 3
    named = called("doctor")
    assert named.code == 1
    assert "agent-a2.jsonl and 2 more: agents of" in named.out + named.err
    assert called("report", "--all").code == 0
    assert called("tidy", "-n").code == 0


def test_the_only_transcript_of_a_session_is_read_by_its_id(home: Home) -> None:
    write(home.live.parent / "agent-b1.jsonl", transcript("all-alone", OTHER))
    assert "all-alone" in called("read", OTHER).out
    assert "all-alone" in called("export", OTHER).out


def test_nothing_is_said_of_agents_whose_session_is_there(home: Home) -> None:
    assert called("doctor").code == 0
    home.rotate()
    assert called("doctor").code == 0
    assert len(called("list", "--hidden", "--json").document()) == 1


@pytest.mark.parametrize("was_begun", [False, True])
def test_what_agents_of_a_session_without_words_said_is_saved_before_the_clean_up(
    home: Home, *, was_begun: bool
) -> None:
    home.live.write_bytes(b"") if was_begun else home.live.unlink()
    there = {path: path.read_bytes() for path in home.live.parent.rglob("agent-*.jsonl")}
    write(user_folders.config_file(), b'[archive]\nbefore_cleanup = "3d"\n')
    assert called("run").code == 0
    assert all(path.exists() for path in there)  # it is early
    for path in there:
        os.utime(path, (time.time(), time.time() - 28 * 86_400))
    assert f"{ID[:8]}" in called("run", "-n").out
    assert called("run").code == 0
    assert not any(path.exists() for path in there)
    told = called("search", WORDS).out
    assert all(word in told for word in WORDS.split("|"))
    assert called("restore", ID).code == 0
    assert {path: path.read_bytes() for path in there} == there
    assert home.live.read_bytes() == b""


def test_doctor_names_the_command_that_saves_what_agents_said(home: Home) -> None:
    home.live.unlink()
    (command,) = re.findall("`sessrotate (archive .*?)`", called("doctor").out)
    assert called(*shlex.split(command)).code == 0
    assert not [*home.live.parent.rglob("agent-*.jsonl")]
    assert called("doctor").code == 0
