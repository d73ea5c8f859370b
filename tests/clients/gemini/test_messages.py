"""What people read of a Gemini CLI session: each message once, where it was said first."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import open_session
from sessrotate.clients.gemini import reader
from sessrotate.clients.view import Text, ToolCall, ToolResult
from sessrotate.export import jsonl
from support.gemini_sessions import APPENDED, TIME, Held, context, file, message, metadata, update

SMALL = {"$set": {"lastUpdated": TIME}}


def call(name: str, result: str | None = "given") -> dict[str, Any]:
    response = {"id": name, "name": "run", "response": {"output": result}}
    done = {} if result is None else {"result": [{"functionResponse": response}]}
    return {"id": name, "name": "run", "args": {}, "status": "success", **done}


def result(name: str, of: str) -> dict[str, Any]:
    response = {"functionResponse": {"id": of, "name": "run", "response": {"output": "given"}}}
    return message(name, content=[response])


def told(*rows: Any) -> list[Any]:
    """Return what is told of a session: of messages the row, of updates the number in them."""
    session = Held(file(metadata(), *rows))
    found: list[Any] = []
    for record in reader.said(session.history(), session.bytes_of):
        row = json.loads(record.line)
        assert b"".join(session.bytes_of(record)) == record.line
        if record.is_carried:
            found.append(len(row["$set"]["messages"]))
        elif "id" in row:
            found.append(row)
    return found


def test_of_a_message_that_is_appended_again_the_last_is_told_where_it_was_first() -> None:
    first = message("b", "gemini", "")
    last = first | {"toolCalls": [call("c")]}
    more = first | {"toolCalls": [call("c"), call("d")]}
    assert told(message("a"), first, SMALL, last, SMALL, more, message("e")) == [
        message("a"),
        more,
        message("e"),
    ]


def test_a_message_that_is_changed_later_is_told_again() -> None:
    assert told(message("a"), message("b"), message("a", content="other")) == [
        message("a"),
        message("b"),
        message("a", content="other"),
    ]


def test_of_an_update_only_what_is_new_is_told() -> None:
    rows = [
        update(context()),
        message("a"),
        message("b", "gemini"),
        update(context(), message("a"), message("b", "gemini", "cut")),
        message("c"),
    ]
    assert told(*rows) == [1, context(), message("a"), message("b", "gemini"), 3, message("c")]


def test_a_copy_under_another_id_is_none_and_a_summary_is_new() -> None:
    asked = message("a", content=[{"text": "the same words"}])
    summary = message("s", content=[{"text": "<state_snapshot>what was"}])
    called = message("m", "gemini", "", toolCalls=[call("c")])
    copy = message("n", "gemini", [{"functionCall": {"id": "c", "name": "run"}}])
    assert told(asked, called, update(summary, asked | {"id": "b"}, copy)) == [
        asked,
        called,
        3,
        summary,
    ]


def test_the_same_words_said_again_are_told_again() -> None:
    assert told(message("a", content="go on"), message("b", content="go on")) == [
        message("a", content="go on"),
        message("b", content="go on"),
    ]


def test_a_result_is_told_once_wherever_it_stands() -> None:
    called = message("m", "gemini", "", toolCalls=[call("c")])
    bare = message("n", "gemini", "", toolCalls=[call("d", None)])
    rows = [called, result("r", "c"), bare, result("s", "d"), result("t", "d")]
    assert told(*rows) == [called, bare, result("s", "d")]


def test_of_updates_with_nothing_between_them_the_last_is_told() -> None:
    rows = [message("a"), update(context()), update(), update(message("a")), message("b")]
    assert told(*rows) == [message("a"), 1, context(), 1, message("b")]
    assert told(message("a"), update(message("a"))) == [message("a"), 1]


def test_what_was_taken_back_was_said() -> None:
    assert told(message("a"), message("b"), {"$rewindTo": "a"}, message("c")) == [
        message("a"),
        message("b"),
        message("c"),
    ]


def test_a_torn_update_gives_what_it_has() -> None:
    torn = file(update(message("a"), message("b"), message("c")))[:-80]
    assert b'"c"' in torn
    session = Held(file(metadata(), torn, message("d")))
    names = [
        json.loads(record.line)["id"]
        for record in reader.said(session.history(), session.bytes_of)
        if record.line.startswith(b'{"id"')
    ]
    assert names == ["a", "b", "d"]


_MESSAGES = st.builds(
    lambda name, text: message(name, "gemini", text),
    st.sampled_from("abcdef"),
    st.text("xyz", min_size=1, max_size=2),
)


_UPDATES = st.lists(_MESSAGES, max_size=3, unique_by=lambda row: str(row["id"]))


@given(st.lists(_MESSAGES | st.just(SMALL) | _UPDATES, max_size=12))
def test_every_id_is_told_and_every_line_that_differs_from_its_neighbours(
    several: list[Any],
) -> None:
    rows = [update(*each) if isinstance(each, list) else each for each in several]
    found = [row for row in told(*rows) if isinstance(row, dict)]
    words = {row["content"] for row in found}
    lines = [row for row in rows if "id" in row]
    last_of_run = [
        row
        for row, then in zip(lines, [*lines[1:], None], strict=False)
        if then is None or then["id"] != row["id"]
    ]
    together = [row for row in rows if "id" in row or "messages" in row["$set"]]
    if together == lines:
        assert found == last_of_run
    for row in rows:
        for inner in row.get("$set", {}).get("messages", [row] if "id" in row else []):
            told_as = [each for each in found if each["id"] == inner["id"]]
            assert told_as or inner["content"] in words


@pytest.mark.parametrize("path", APPENDED, ids=lambda path: f"{path.parts[-5]}-{path.stem[-14:]}")
def test_of_a_real_session_every_prompt_and_every_result_is_told_once(path: Any) -> None:
    session = Held(path.read_bytes())
    views = [reader.view(record) for record in reader.said(session.history(), session.bytes_of)]
    blocks = [block for view in views if view is not None for block in view.blocks]
    calls = [block.id for block in blocks if isinstance(block, ToolCall)]
    results = [block.id for block in blocks if isinstance(block, ToolResult)]
    prompts = [
        block.text
        for view in views
        if view is not None and view.kind == "user" and not view.is_meta
        for block in view.blocks
        if isinstance(block, Text)
    ]
    assert len(set(calls)) == len(calls)
    assert sorted(results) == sorted(calls)
    assert len(set(prompts)) == len(prompts)
    assert None not in views
    greek = [prompt.split()[0] for prompt in prompts if "USAGE=" in prompt]
    assert greek == ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"][: len(greek)]
    assert len(greek) in {0, 4, 7}


@pytest.mark.parametrize("path", APPENDED, ids=lambda path: f"{path.parts[-5]}-{path.stem[-14:]}")
def test_an_export_has_each_message_once_and_no_update_that_repeats_them(path: Any) -> None:
    with open_session(path) as session:
        lines = b"".join(jsonl.pieces(session)).split(b"\n")
    assert lines.pop() == b""
    rows = [json.loads(line) for line in lines]
    assert not any("messages" in row.get("$set", {}) for row in rows)
    names = [row["id"] for row in rows if "id" in row]
    assert len(set(names)) == len(names) > 0
    written = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
    ended = {row["id"]: row for row in written if "id" in row and row["type"] == "gemini"}
    assert [row for row in rows if row.get("id") in ended] == list(ended.values())
