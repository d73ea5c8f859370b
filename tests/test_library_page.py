"""The examples of docs/guide/library.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import generate_session

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "library.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
SESSION = "5e55107a-0000-4000-a000-000000000007"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = tmp_path_factory.mktemp("claude")
    project = config / "projects" / "-demo"
    (project / SESSION / "subagents").mkdir(parents=True)
    options = generate_session.Options(size=generate_session.parse_size("24M"), boundaries=5)
    with (project / f"{SESSION}.jsonl").open("wb") as file:
        generate_session.generate(file, options)
    (project / SESSION / "subagents" / "agent-a1.jsonl").write_bytes(b'{"type":"user"}\n')
    return config


def test_the_examples_of_the_library_run_and_say_what_they_should(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(config))
    said = []
    names: dict[str, object] = {}
    for example in EXAMPLES:
        exec(compile(example, str(PAGE), "exec"), names)
        said.append(capsys.readouterr().out)
    title, records, conversation, agents, everything, gaps = said
    assert title.startswith(f"{SESSION} is called ")
    assert title.endswith("6 segments, 5 compactions\n")
    assert records == "True True None\n"
    assert "user " in conversation
    assert "assistant " in conversation
    assert agents == "a1 None 1\n"
    assert everything.startswith(SESSION)
    assert "[('5e55107a', 'first')]" in everything
    assert gaps == "True []\n"
