"""A session is found by its path, its id, or the beginning of one that is its alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessrotate import find
from sessrotate.errors import WrongUsageError


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("-a/1111aaaa.jsonl", "-a/1111bbbb.jsonl", "-b/2222cccc.jsonl", "-b/agent-2.jsonl"):
        path = tmp_path / "config" / "projects" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "config" / "projects" / "a-file").touch()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("CLAUDE_PROJECTS_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "config" / "projects"


def test_a_path_is_itself(projects: Path) -> None:
    assert find.path_of(str(projects / "nothing")) == projects / "nothing"
    Path("2222cccc").touch()
    assert find.path_of("2222cccc") == Path("2222cccc")


def test_an_id_or_its_beginning_is_looked_up(projects: Path) -> None:
    for name in ("2222cccc", "2222", "2222ccc"):
        assert find.path_of(name) == projects / "-b" / "2222cccc.jsonl"


def test_an_id_that_another_begins_with_is_still_found(projects: Path) -> None:
    (projects / "-a" / "1111.jsonl").touch()
    assert find.path_of("1111") == projects / "-a" / "1111.jsonl"


def test_several_matches_are_listed(projects: Path) -> None:
    with pytest.raises(WrongUsageError) as caught:
        find.path_of("1111")
    assert str(projects / "-a" / "1111aaaa.jsonl") in str(caught.value)
    assert "2 sessions. Give more of the id, or a path:" in str(caught.value)


def test_where_the_whole_id_is_there_twice_a_path_is_asked_for(projects: Path) -> None:
    (projects / "-b" / "1111aaaa.jsonl").touch()
    with pytest.raises(WrongUsageError, match="Give the path of one:"):
        find.path_of("1111aaaa")


@pytest.mark.usefixtures("projects")
@pytest.mark.parametrize("name", ["222", "3333", "agent-2", "a-file"])
def test_what_is_no_session_is_not_found(name: str) -> None:
    with pytest.raises(WrongUsageError):
        find.path_of(name)


def test_the_projects_folder_may_be_named_outright(
    projects: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("CLAUDE_PROJECTS_DIR", str(projects))
    assert find.path_of("2222").name == "2222cccc.jsonl"
