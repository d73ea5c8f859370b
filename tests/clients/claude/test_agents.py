"""Agents belong to their session and to the call that started them; stubs are no sessions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sessrotate import open_session
from sessrotate.clients import common
from sessrotate.clients.claude import agents as claude_agents
from sessrotate.clients.claude.agents import with_calls
from sessrotate.clients.claude.preview import standing
from sessrotate.clients.preview import Agent
from sessrotate.parsing import Record, records
from support.command_line import ID
from support.lines import as_lines

SAMPLES = Path(__file__).parents[3] / "fixtures" / "claude"


def session_of(sample: str) -> Path:
    (path,) = (
        path for path in (SAMPLES / sample).glob("projects/*/*.jsonl") if path.name[:5] != "agent"
    )
    return path


def test_links_beside_a_session_are_counted_for_themselves(tmp_path: Path) -> None:
    held = tmp_path / "held"
    (held / "results" / "more").mkdir(parents=True)
    (held / "results" / "a.txt").write_bytes(b"x" * 5)
    (held / "results" / "more" / "b.txt").write_bytes(b"x" * 7)
    (tmp_path / "large").write_bytes(b"x" * 100_000)
    (held / "to-a-file").symlink_to(tmp_path / "large")
    (held / "to-nothing").symlink_to("nothing")
    (held / "to-a-folder").symlink_to(tmp_path)
    (held / "results" / "round").symlink_to(held)
    links = len(str(tmp_path / "large")) + len("nothing")
    assert common.room_in(held)[0] == 12 + links
    assert common.room_in(tmp_path / "none") == (0, 0)
    assert common.room_in(tmp_path / "large") == (0, 0)


def user(content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "user", "sessionId": ID, "message": {"content": content}, **fields}


ANSWER = {"type": "assistant", "message": {"content": [{"type": "text", "text": "yes"}]}}


@pytest.mark.parametrize(
    ("sample", "agent", "call"),
    [
        ("A-2.0.28", "04e685d5", "toolu_mock_1795303508999_115_0"),
        ("A-2.1.112", "a83f2adbda17e4482", "toolu_mock_1795303724442_275_0"),
        ("A-2.1.330", "ad3a86fb2568fa24f", "toolu_mock_1795303483384_43_0"),
    ],
)
def test_an_agent_of_a_sample_belongs_to_the_call_that_started_it(
    sample: str, agent: str, call: str
) -> None:
    with open_session(session_of(sample)) as session:
        (found,) = (each for each in session.agents() if not each.is_warm_up)
        assert (found.id, found.call, found.asked) == (agent, call, "do a thing")
        data = b"".join(record.line + b"\n" for record in session.records_of(found))
    assert data == found.path.read_bytes()
    assert found.bytes == len(data)


def test_the_warm_ups_of_a_session_are_known_as_such() -> None:
    with open_session(session_of("A-2.0.28")) as session:
        found = {agent.id: agent.call for agent in session.agents() if agent.is_warm_up}
    assert found == {"0523d4a6": None, "1f11f802": None}


def test_an_agent_beside_the_sessions_belongs_to_the_one_that_its_rows_name(
    tmp_path: Path,
) -> None:
    live = tmp_path / f"{ID}.jsonl"
    live.write_bytes(as_lines(user("A prompt")))
    # 2.0.28 begins some with the id of the file that it leaves empty.
    mine = as_lines(user("Go", sessionId="stub", isSidechain=True), user("on"))
    (tmp_path / "agent-1.jsonl").write_bytes(mine)
    (tmp_path / "agent-2.jsonl").write_bytes(as_lines(user(ID, sessionId="other")))
    (tmp_path / "agent-3.jsonl").mkdir()
    assert [agent.id for agent in claude_agents.of(live, ID)] == ["1"]


def asking(call: str, asked: str) -> dict[str, Any]:
    block = {"type": "tool_use", "id": call, "name": "Task", "input": {"prompt": asked}}
    return {"type": "assistant", "message": {"content": [block]}}


def matched(agents: Iterable[Agent], *rows: Any) -> list[str | None]:
    return [agent.call for agent in with_calls(agents, lambda: records([as_lines(*rows)], 0))]


def agent(name: str, asked: str | None = None, call: str | None = None) -> Agent:
    return Agent(name, Path(name), 0, call, asked)


def test_an_agent_is_known_by_what_only_it_was_asked() -> None:
    rows = [asking("c1", "one"), asking("c2", "two"), asking("c3", "twice"), asking("c4", "twice")]
    assert matched([agent("a", "two"), agent("b", "twice")], *rows) == ["c2", None]
    assert matched([agent("a", "one"), agent("b", "one")], *rows) == [None, None]


def test_what_a_result_says_counts_more_than_a_prompt() -> None:
    result = user([{"type": "tool_result", "tool_use_id": "c2"}], toolUseResult={"agentId": "a"})
    assert matched([agent("a", "one")], asking("c1", "one"), result) == ["c2"]


def test_the_history_is_not_read_where_every_call_is_known() -> None:
    def never() -> Iterable[Record]:
        raise AssertionError

    known = [agent("a", "one", "c1"), replace(agent("b", "Warmup"), is_warm_up=True)]
    assert with_calls(known, never) == known


# ── what is no session ───────────────────────────────────────────────────────────────────────

WARM_UP = user("Warmup")
SIDE = user("errand", isSidechain=True)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], "empty"),
        ([{"type": "summary", "summary": "of another"}], "empty"),
        ([user("said for the user", isMeta=True)], "empty"),
        ([user("<command-name>/clear</command-name>")], "empty"),
        ([WARM_UP, ANSWER], "warm-up"),
        ([WARM_UP, ANSWER, user("A prompt")], "session"),
        ([SIDE, {**ANSWER, "isSidechain": True}], "agent"),
        ([SIDE, user("A prompt")], "session"),
        ([user("<command-name>/init</command-name>"), ANSWER], "session"),
        ([user("It was about …", isCompactSummary=True)], "session"),
        ([user("A prompt")], "session"),
    ],
)
def test_a_session_is_what_somebody_asked_something(rows: list[Any], expected: str) -> None:
    assert standing(as_lines(*rows), b"", is_whole=True) == expected


def test_a_long_file_that_says_nothing_yet_is_a_session() -> None:
    assert standing(as_lines({"type": "mode"}), b"", is_whole=False) == "session"
    asked = as_lines({"type": "user", "message": {"content": "Go on"}})
    agents = as_lines({"type": "user", "isSidechain": True, "message": {"content": "Look"}})
    assert standing(agents, agents, is_whole=False) == "agent"
    assert standing(agents, agents + asked, is_whole=False) == "session"


@given(st.binary(max_size=200), st.booleans())
def test_no_beginning_is_an_error(head: bytes, is_whole: bool) -> None:
    assert standing(head, head, is_whole=is_whole) in {"session", "empty", "warm-up", "agent"}
