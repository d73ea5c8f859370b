"""The examples of docs/guide/library.md run as they stand, beside sessions of every client."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import generate_session
from support import codex_sessions, command_line, gemini_sessions, homes, library_sample
from support.homes import PROJECT, Home

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "library.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
SESSION = "5e55107a-0000-4000-a000-000000000007"
CLONE = "c104e000-0000-4000-a000-000000000007"


@pytest.fixture(scope="module")
def all_clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a home of each client: a session of Claude Code, and its clone."""
    folder = tmp_path_factory.mktemp("homes")
    project = folder / "claude" / "projects" / PROJECT
    (project / SESSION / "subagents").mkdir(parents=True)
    options = generate_session.Options(size=24 << 20, boundaries=5)
    with (project / f"{SESSION}.jsonl").open("wb") as file:
        generate_session.generate(file, options)
    (project / SESSION / "subagents" / "agent-a1.jsonl").write_bytes(b'{"type":"user"}\n')
    with (project / f"{SESSION}.jsonl").open("rb") as file:
        (project / f"{CLONE}.jsonl").write_bytes(b"".join(file.readline() for _ in range(50)))
    codex = folder / "codex" / "sessions" / "2026" / "11" / "21"
    codex.mkdir(parents=True)
    for path in codex_sessions.FILES:
        if path.name.startswith("rollout-"):
            shutil.copy(path, codex)
    for path in (*gemini_sessions.APPENDED, *gemini_sessions.WHOLE):
        target = folder / "gemini" / path.relative_to(gemini_sessions.FIXTURES).parts[0] / "chats"
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return folder


@pytest.fixture(autouse=True)
def _homes(all_clients: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(all_clients / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(all_clients / "codex"))
    monkeypatch.delenv("CODEX_SESSIONS_DIR", raising=False)
    monkeypatch.setenv("GEMINI_SESSIONS_DIR", str(all_clients / "gemini"))


def test_the_examples_of_the_library_run_and_say_what_they_should(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = []
    names: dict[str, object] = {}
    for example in EXAMPLES:
        exec(compile(example, str(PAGE), "exec"), names)
        said.append(capsys.readouterr().out)
    title, everything, links, records, conversation, agents, gaps = said
    assert title.startswith(f"{SESSION} is called ")
    assert title.endswith("6 segments, 5 compactions\n")
    assert {line.split()[0] for line in everything.splitlines()} == {"claude", "codex", "gemini"}
    assert f"claude {SESSION} " in everything
    assert "continues" in links
    assert records == "True True None\n"
    assert "user " in conversation
    assert "assistant " in conversation
    assert agents == "a1 None 1\n"
    assert gaps == "True []\n"


def test_every_listed_session_opens_by_its_path_and_by_its_id() -> None:
    listed = library_sample.listed()
    assert {client for client, *_ in listed} == {"claude", "codex", "gemini"}
    for _, session, path, _ in listed:
        assert library_sample.lines(path) == library_sample.lines(session) > 0


def test_a_session_of_which_only_the_archive_is_left_opens_as_it_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home: Home = homes.home(tmp_path / "config", monkeypatch, command_line.session(boundaries=3))
    home.rotate()
    home.live.unlink()
    ((_, session, path, _),) = [each for each in library_sample.listed() if each[0] == "claude"]
    assert library_sample.lines(path) == library_sample.lines(session) > 0


def test_what_cannot_be_read_is_an_error_of_its_family(tmp_path: Path) -> None:
    assert library_sample.failure("nobodys-session") == ("RequestError", 2)
    (tmp_path / "note.jsonl").write_bytes(b'{"a":1}\n')
    assert library_sample.failure(tmp_path / "note.jsonl") == ("InputError", 65)
    assert library_sample.failure(SESSION) is None
