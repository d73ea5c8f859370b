"""The harness can tell: what is the same is equal, and what was taken away is missed."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from support.real_clients import client as client_module
from support.real_clients.client import VERSIONS, Client, ClientError
from support.real_clients.judge import Difference, compare, differences
from support.real_clients.making import MAKERS, Sessions, boundary_rows, results
from support.real_clients.mock_api import MESSAGES, MockApi, call
from support.real_clients.normal import normalise

FIXTURES = Path(__file__).parents[2] / "fixtures" / "claude"
SAMPLES = sorted(
    path for path in FIXTURES.glob("*/projects/*/*.jsonl") if not path.name.startswith("agent-")
)
NUMBERS = [version.number for version in VERSIONS]


def sample(name: str) -> Path:
    (found,) = (path for path in SAMPLES if path.is_relative_to(FIXTURES / name))
    return found


def cut_at_last_boundary(session_file: Path, target: Path) -> Path:
    lines = session_file.read_bytes().splitlines(keepends=True)
    boundaries = [
        number
        for number, line in enumerate(lines)
        if json.loads(line).get("subtype") == "compact_boundary"
    ]
    target.write_bytes(b"".join(lines[boundaries[-1] :]))
    return target


def without_last_question(session_file: Path, target: Path) -> Path:
    lines = session_file.read_bytes().splitlines(keepends=True)
    rows = [json.loads(line) for line in lines]
    questions = [
        number
        for number, row in enumerate(rows)
        if row.get("type") == "user" and "question" in json.dumps(row["message"]["content"])
    ]
    del lines[questions[-1]]
    target.write_bytes(b"".join(lines))
    return target


# ── the judge, with the real clients ─────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["plain", "long"])
def test_a_session_resumed_twice_gives_the_same_request(
    sessions: Sessions, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, session_file = sessions.get(name)
    monkeypatch.setattr(client.api, "known", None)  # or the second resume would be the first
    assert differences(client, session_file, session_file) == []


def test_a_lost_question_is_missed(sessions: Sessions, tmp_path: Path) -> None:
    client, session_file = sessions.get("compacted")
    shorter = without_last_question(session_file, tmp_path / "shorter.jsonl")
    assert differences(client, session_file, shorter)


def test_an_unreadable_session_is_a_difference(sessions: Sessions, tmp_path: Path) -> None:
    client, session_file = sessions.get("plain")
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"")
    assert differences(client, session_file, empty)


@pytest.mark.parametrize(
    ("version", "name", "equal"),
    [
        (client_module.version("2.0.28"), "A-2.0.28", True),
        (client_module.version("2.1.112"), "A-2.1.112", True),
        (client_module.version("2.1.330"), "A-2.1.330", False),
        (client_module.version("2.1.330"), "auto-2.1.330", False),
    ],
    indirect=["version"],
    ids=str,
)
def test_a_naive_cut_is_equal_where_nothing_is_preserved(
    client: Client, name: str, equal: bool, tmp_path: Path
) -> None:
    naive = cut_at_last_boundary(sample(name), tmp_path / "naive.jsonl")
    assert (differences(client, sample(name), naive) == []) is equal


# ── making sessions ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", MAKERS)
def test_every_maker_makes_what_it_says(sessions: Sessions, name: str, tmp_path: Path) -> None:
    client, session_file = sessions.get(name)
    boundaries = boundary_rows(session_file)
    assert len(boundaries) == MAKERS[name].boundaries
    if boundaries:
        needs_more = client.version.preserves and name != "forked"
        naive = cut_at_last_boundary(session_file, tmp_path / "naive.jsonl")
        assert (differences(client, session_file, naive) != []) is needs_more


def test_going_back_and_on_again_gives_the_same_requests(sessions: Sessions) -> None:
    sent = []
    for _ in range(2):
        client, session_file = sessions.get("plain")
        turn = client.prompt("And now?", resume=session_file.stem)
        sent.append(normalise(turn.conversation[-1].body, client.places()))
    assert compare(*sent) == []


# ── keeping the client in ────────────────────────────────────────────────────────────────────


def test_a_run_sees_no_variables_but_its_own(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THIS_MACHINE", "leaked")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "leaked")
    turn = client.prompt(f"Look. {call('Bash', command='env; pwd', description='Look')}")
    (seen,) = results(turn)
    assert "leaked" not in seen
    assert f"HOME={client.home}/user" in seen
    assert str(client.work) in seen


def test_a_run_that_takes_too_long_is_ended(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "LIMIT", 0.2)
    with pytest.raises(ClientError, match="took longer"):
        client.prompt("Too slow.")
    listed = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True)
    assert "Too slow." not in listed.stdout


def test_a_client_that_waits_for_a_prompt_runs_and_then_ends(client: Client) -> None:
    with client.conversation() as conversation:
        turn = conversation.say("Hello.")
        os.kill(conversation.pid, 0)
        assert turn.text.startswith("Reply")
    with pytest.raises(ProcessLookupError):
        os.kill(conversation.pid, 0)


def test_nothing_is_resumed_under_an_unknown_name(client: Client, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not named after a session"):
        client.resume_request(tmp_path / "notes.jsonl")


def test_an_unknown_version_is_taken_to_be_like_the_one_before_it() -> None:
    assert client_module.version("2.1.113").like == "2.1.112"
    assert not client_module.version("2.1.113").preserves
    assert client_module.version("9.0.0").preserves
    assert [client_module.version(number) for number in NUMBERS] == list(VERSIONS)


# ── the mock ─────────────────────────────────────────────────────────────────────────────────


def ask(api: MockApi, prompt: str, **more: Any) -> bytes:
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **more}
    request = urllib.request.Request(api.url + MESSAGES, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        content: bytes = response.read()
    return content


def test_equal_requests_get_equal_replies(api: MockApi) -> None:
    assert ask(api, "a") == ask(api, "a") != ask(api, "b")
    assert ask(api, "a", stream=True) == ask(api, "a", stream=True)


# ── normalising and comparing ────────────────────────────────────────────────────────────────


def request(*texts: str, **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    said = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"messages": said, "system": "Be kind.", **more}


def test_volatile_parts_do_not_count() -> None:
    one = request(
        "/one/work/x -one-work 2026-01-01T00:00:00.000Z toolu_1 toolu_2 toolu_1",
        "Today's date is 2026-01-01.",
        metadata={"user_id": "1"},
    )
    other = request(
        "/two/work/x -two-work 2026-02-02T00:00:00.000Z toolu_8 toolu_9 toolu_8",
        "Today's date is 2026-02-02.",
        metadata={"user_id": "2"},
    )
    left = normalise(one, {Path("/one/work"): "work"})
    assert compare(left, normalise(other, {Path("/two/work"): "work"})) == []


def test_which_ids_are_equal_counts() -> None:
    left, right = (
        normalise(request("toolu_1 toolu_2"), {}),
        normalise(request("toolu_1 toolu_1"), {}),
    )
    assert len(compare(left, right)) == 1


def test_differences_are_found_message_by_message() -> None:
    original = normalise(request("one", "two", "three", "four", model="m"), {})
    rotated = normalise(request("one", "three", "FOUR", model="n"), {})
    found = [str(difference) for difference in compare(original, rotated)]
    assert any("message 1" in text and "two" in text for text in found)
    assert any("model" in text for text in found)
    assert not any("message 0" in text for text in found)
    assert str(Difference("message 1", None, "x")) == "message 1: only in the rotated: x"
