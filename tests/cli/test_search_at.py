"""The command that stands with a hit shows the match at once, marked, and ends with the record.

The home has long records: what an agent's `| head -n 100` showed of them was often not the match.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import unicodedata
from typing import TYPE_CHECKING

import pytest

from sessrotate.render import setup
from support import codex_sessions, gemini_sessions, homes
from support.codex_sessions import Rows
from support.command_line import (
    ENVIRONMENT,
    ID,
    REAL,
    assert_one_sentence,
    boundary,
    called,
    has_colour,
    on_terminal,
    raw_controls,
    without_ansi,
    write,
)
from support.talks import answer, call, prompt, result, talk, thinking

if TYPE_CHECKING:
    from pathlib import Path

    from support.homes import Home

FIRST: int = 20
"""Lines within which the match stands."""

OUTPUT = "\n".join(
    f"line {n}" + (" needle in the output" if n in {3000, 4000} else "") for n in range(5000)
)
LONG = "word " * 40_000 + "needle in a long line " + "word " * 40_000
MANY = [
    f"block {n}\n" * 3 + ("needle in many blocks\nand more" if n == 40 else "") for n in range(60)
]
DATA = talk(
    result(20, "t5", [{"type": "text", "text": OUTPUT}]),
    prompt(21, LONG),
    answer(22, *MANY),
    answer(23, thinking("\n".join(f"thought {n}" for n in range(90)) + "\nneedle in a thought")),
    boundary(30),
    answer(31, call("Write", "t6", content="x\n" * 900 + "needle in a file", limit=3)),
    prompt(32, "\n" * 80 + "a needle of the client", isMeta=True),
    prompt(33, "\n".join(f"asked {n}" for n in range(50)) + "\nneedle for an agent",
           isSidechain=True, agentId="a1"),
    prompt(34, "x\n" * 70 + "a cafe\u0301 needle " + "e\u0301" * 9000 + " nee\u0301dle"),
    prompt(35, "needle at once"),
    b'{"torn ' + b"z" * 9000 + b" needle in no record\n",
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "gemini"))
    made = homes.home(tmp_path, monkeypatch, DATA)
    long = "\n".join(["before"] * 300 + ["needle of an agent"] + ["behind"] * 300)
    said = b"".join(
        json.dumps({**json.loads(line), "isSidechain": True, "agentId": "a1"}).encode() + b"\n"
        for line in (prompt(71, "look into it"), answer(72, long))
    )
    write(made.live.with_suffix("") / "subagents" / "agent-a1.jsonl", said)
    rows = Rows()
    rows.add("session_meta", id=codex_sessions.ID, cwd="/srv/demo")
    rows.turn("x\n" * 200 + "a needle for codex")
    rows.item(type="function_call_output", call_id="1", output=OUTPUT)
    rollout = f"rollout-2026-11-21T12-00-00-{codex_sessions.ID}.jsonl"
    write(tmp_path / "codex" / "sessions" / "2026" / "11" / "21" / rollout,
          b"\n".join([*rows.lines, b""]))  # fmt: skip
    first = gemini_sessions.message("m1", content=[{"text": "x\n" * 99 + "a needle for gemini"}])
    kept = gemini_sessions.message("m2", content=[{"text": "y\n" * 99 + "a needle that was kept"}])
    chat = f"session-2026-11-21T23-37-{gemini_sessions.UUID[:8]}.jsonl"
    write(tmp_path / "gemini" / ".gemini" / "tmp" / ("0" * 64) / "chats" / chat,
          gemini_sessions.file(gemini_sessions.metadata(), first,
                               gemini_sessions.update(first, kept)))  # fmt: skip
    return made


@pytest.fixture
def env(home: Home, tmp_path: Path) -> dict[str, str]:
    return {
        **home.env,
        "CODEX_HOME": str(tmp_path / "codex"),
        "GEMINI_CLI_HOME": str(tmp_path / "gemini"),
    }


def commands(*arguments: str) -> list[list[str]]:
    """Return the commands that `search` prints, without the program's name."""
    lines = called("search", *arguments).out.split("\n")
    return [
        shlex.split(line.split(" · sessrotate ")[1]) for line in lines if " · sessrotate " in line
    ]


def shows(lines: list[str], pattern: str) -> bool:
    """Tell whether a line is marked among the first, and holds a match."""
    marked = [line for line in lines[:FIRST] if line.startswith("> ")]
    return any(re.search(pattern, unicodedata.normalize("NFC", line)) for line in marked)


SEARCHES = [
    (["needle"], "needle", 16),
    (["-i", "-F", "NEEDLE"], "needle", 16),
    (["needle", "the output|codex"], "needle|the output|codex", 4),
    (["caf\u00e9", "n\u00e9edle|nee\u0301dle"], "caf\u00e9", 1),
    (["nee\u0301dle"], "ne\u00e9dle", 1),
    (["--who", "agent", "needle"], "needle", 5),
    (["^needle in"], "needle in", 3),
]


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(("words", "pattern", "count"), SEARCHES)
def test_every_hit_is_shown_within_twenty_lines(words: list[str], pattern: str, count: int) -> None:
    found = commands(*words)
    assert len(found) == count
    for command in found:
        shown = called(*command)
        assert (shown.code, shown.err) == (0, ""), command
        lines = shown.out.split("\n")
        assert shows(lines, pattern), (command, lines[:FIRST])
        assert sum(line.startswith(">") for line in lines) == 1


@pytest.mark.usefixtures("home")
def test_it_begins_some_lines_before_the_match_and_ends_with_the_record() -> None:
    (command,) = (each for each in commands("needle in the output") if ID[:8] in each)
    lines = OUTPUT.split("\n")
    expected = [f"  {line}" for line in lines[2997:3000]]
    expected += [f"> {lines[3000]}", *(f"  {line}" for line in lines[3001:])]
    shown = called(*command).out
    assert shown.split("\n") == ["Tool · 2026-03-01 10:00:20", *expected, ""]


@pytest.mark.usefixtures("home")
def test_a_long_line_is_cut_around_the_match() -> None:
    (command,) = commands("needle in a long line")
    heading, line, rest = called(*command).out.split("\n")
    assert (heading, rest) == ("You · 2026-03-01 10:00:21", "")
    assert line.startswith("> …")
    assert line.endswith("…")
    assert "needle in a long line" in line
    assert len(line) < 2100


@pytest.mark.parametrize("columns", [60, 120])
def test_a_terminal_shows_it_on_its_first_screen(env: dict[str, str], columns: int) -> None:
    for command in commands("needle"):
        shown = on_terminal(*command, env={**env, "PAGER": "cat"}, columns=columns)
        assert raw_controls(without_ansi(shown.out)) == set()
        screen = [row for row in without_ansi(shown.out).split("\n")[:FIRST] if row[:1] == ">"]
        assert "needle" in " ".join(screen), command
        plain = on_terminal(*command, env={**env, "PAGER": "cat", "NO_COLOR": "1"}, columns=columns)
        assert plain.out == without_ansi(shown.out)
        assert not has_colour(plain.out)


@pytest.mark.usefixtures("home")
def test_what_raw_finds_is_the_line_as_it_is() -> None:
    found = commands("--raw", "needle", "--client", "claude")
    assert len(found) == 11
    for command in found:
        shown = called(*command).out
        assert shown.encode() in {*DATA.splitlines(keepends=True)} or "agent-a1" in command[1]
        assert shown.count("\n") == 1


@pytest.mark.usefixtures("home")
def test_what_follows_the_record_is_shown_without_the_match() -> None:
    (command,) = commands("needle at once")
    shown = called(*command).out
    assert shown == "You · 2026-03-01 10:00:35\n> needle at once\n"
    place = command[3].rpartition(":")[0]
    assert "no record" not in shown
    assert "are not a record" in " ".join(called("read", ID, "--at", place).out.split())
    markdown = called("export", ID, "--at", command[3], "--format", "markdown").out
    assert "needle at once" in markdown
    assert "torn" not in markdown


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "option", [["--grep", "x"], ["--turns", "1"], ["--brief"], ["--include", "tools"]]
)
def test_of_one_record_nothing_is_chosen(option: list[str]) -> None:
    (command,) = commands("needle at once")
    assert_one_sentence(called(*command, *option), 2)


def test_the_line_for_the_agent_works_for_every_hit(home: Home, env: dict[str, str]) -> None:
    home.rotate()
    typed = re.findall("`([^`]+)`", setup.FOR_AGENTS)
    assert typed == ["sessrotate search WORDS --project .", "sessrotate read", "| head -n 100"]
    # The folder that the sessions of the home are from is not there: so it is named.
    search = (
        typed[0].replace("WORDS", "needle").replace("--project .", f"--project {homes.PROJECT}")
    )
    found = commands(*shlex.split(search)[2:])
    assert len(found) == 11
    program = f"{shlex.quote(REAL[0])} {{}} {typed[2]}"
    for command in found[:: len(found) // 2]:
        done = subprocess.run(["sh", "-c", program.format(shlex.join(command))], check=True,
                              env={**ENVIRONMENT, **env}, capture_output=True)  # fmt: skip
        assert shows(done.stdout.decode().split("\n"), "needle")
    for command in found:
        assert "needle" in "".join(called(*command).out.splitlines(keepends=True)[:100])
