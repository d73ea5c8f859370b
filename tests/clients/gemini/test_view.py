"""What the rows of Gemini CLI's sessions say."""

from __future__ import annotations

from typing import Any

import pytest

from sessrotate.clients.gemini import json_reader
from sessrotate.clients.gemini import reader as gemini_reader
from sessrotate.clients.view import (
    Image,
    Text,
    Thinking,
    Tokens,
    ToolCall,
    ToolResult,
    Unknown,
    View,
)
from sessrotate.parsing import Record
from support.gemini_sessions import (
    APPENDED,
    TIME,
    WHOLE,
    Held,
    context,
    line,
    message,
    metadata,
    update,
)


def view(row: Any) -> View:
    data = row if isinstance(row, bytes) else line(row)
    found = gemini_reader.view(Record(0, 0, data, len(data)))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("user", "user"),
        ("gemini", "assistant"),
        ("info", "system"),
        ("error", "system"),
        ("warning", "system"),
        ("quit", "other"),
    ],
)
def test_a_message_is_of_the_one_who_speaks(kind: str, told: str) -> None:
    found = view(message("a", kind, "words", model="gemini-2.5-pro"))
    assert (found.kind, found.type, found.uuid, found.time) == (told, kind, "a", TIME)
    assert found.blocks == (Text("words"),)
    assert found.model == "gemini-2.5-pro"


def test_thoughts_come_before_words_and_results_behind_their_calls() -> None:
    response = {"functionResponse": {"id": "c", "name": "run", "response": {"output": "given"}}}
    found = view(
        message(
            "a",
            "gemini",
            "words",
            thoughts=[{"subject": "Plan", "description": "what to do", "timestamp": TIME}],
            toolCalls=[
                {"id": "c", "name": "run", "args": {"x": 1}, "result": [response], "status": "ok"},
                {"id": "d", "name": "stop", "args": {}, "result": "no", "status": "error"},
                {"id": "e", "name": "wait", "args": {}, "status": "cancelled"},
                {"id": "f", "name": "go", "args": {}, "status": "executing"},
            ],
        )
    )
    assert found.blocks == (
        Thinking("**Plan**\nwhat to do"),
        Text("words"),
        ToolCall("c", "run", {"x": 1}),
        ToolResult("c", (Text("given"),), is_error=False),
        ToolCall("d", "stop", {}),
        ToolResult("d", (Text("no"),), is_error=True),
        ToolCall("e", "wait", {}),
        ToolResult("e", (), is_error=True),
        ToolCall("f", "go", {}),
    )


def test_what_stands_in_parts_and_in_fields_is_told_once() -> None:
    parts = [
        {"text": "a thought", "thought": True},
        {"text": "words"},
        {"functionCall": {"id": "c", "name": "run", "args": {}}},
    ]
    calls = [{"id": "c", "name": "run", "args": {}, "result": "given"}]
    thoughts = [{"subject": "a", "description": "thought"}]
    found = view(message("a", "gemini", parts, toolCalls=calls, thoughts=thoughts))
    assert found.blocks == (
        Thinking("a thought"),
        Text("words"),
        ToolCall("c", "run", {}),
        ToolResult("c", (Text("given"),), is_error=False),
    )


@pytest.mark.parametrize(
    ("part", "block"),
    [
        ("words", Text("words")),
        ({"text": "words"}, Text("words")),
        ({"inlineData": {"mimeType": "image/png", "data": "QUJD"}}, Image("image/png", "QUJD", "")),
        ({"fileData": {"mimeType": "a/b", "fileUri": "gs://x"}}, Image("a/b", "", "gs://x")),
        (
            {"functionResponse": {"id": "c", "response": {"error": "failed"}}},
            ToolResult("c", (Text("failed"),), is_error=True),
        ),
        (
            {"functionResponse": {"id": "c", "response": {"a": 1, "b": 2}}},
            ToolResult("c", (Unknown("response", {"a": 1, "b": 2}),), is_error=False),
        ),
        (
            {"executableCode": {"code": "1"}},
            Unknown("executableCode", {"executableCode": {"code": "1"}}),
        ),
        ({"functionCall": "odd"}, Unknown("functionCall", {"functionCall": "odd"})),
        ({}, Unknown("", {})),
        (5, Unknown("", 5)),
    ],
)
def test_a_part_is_told_as_what_it_is(part: Any, block: Any) -> None:
    assert view(message("a", content=[part])).blocks == (block,)


def test_pictures_that_a_tool_gave_are_in_its_result() -> None:
    response = {
        "id": "c",
        "response": {"output": "seen"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "QUJD"}}],
    }
    found = view(message("a", content=[{"functionResponse": response}]))
    blocks = (Text("seen"), Image("image/png", "QUJD", ""))
    assert found.blocks == (ToolResult("c", blocks, is_error=False),)


def test_tokens_are_counted_apart_from_what_was_cached() -> None:
    tokens = {"input": 1400, "output": 100, "cached": 1000, "thoughts": 7, "tool": 0, "total": 1507}
    assert view(message("a", "gemini", "x", tokens=tokens)).tokens == Tokens(400, 1000, 0, 107)
    assert view(message("a", "gemini", "x", tokens={"input": -1})).tokens == Tokens(0, 0, 0, 0)
    assert view(message("a", "gemini", "x", tokens=None)).tokens is None


def test_what_the_client_says_in_the_users_name_is_told_as_such() -> None:
    assert view(context()).is_meta
    assert not view(message("a")).is_meta
    summary = view(message("a", content=[{"text": "<state_snapshot>what was</state_snapshot>"}]))
    assert summary.is_summary
    assert not summary.is_meta
    assert not view(message("a", "gemini", "<state_snapshot>")).is_summary


def test_only_an_update_of_all_messages_is_a_boundary() -> None:
    found = view(update(message("a")))
    assert (found.is_boundary, found.type, found.time) == (True, "checkpoint", TIME)
    for row in (metadata(), {"$set": {"lastUpdated": TIME}}, {"$rewindTo": "a"}, {"x": 1}):
        assert not view(row).is_boundary
        assert view(row).kind == "other"
    assert view(metadata()).time == TIME


def test_a_line_that_is_too_long_is_a_boundary_by_its_beginning() -> None:
    data = line(update(message("a")))
    found = gemini_reader.view(Record(0, 0, data[:40], 10**9))
    assert found is not None
    assert found.is_boundary
    long = line(message("a"))
    assert gemini_reader.view(Record(0, 0, long[:40], 10**9)) is None


@pytest.mark.parametrize("path", [*APPENDED, *WHOLE], ids=lambda path: path.stem[-14:])
def test_nothing_of_a_real_session_is_unknown(path: Any) -> None:
    reader = gemini_reader if path.suffix == ".jsonl" else json_reader
    session = Held(path.read_bytes(), path, None if path.suffix == ".jsonl" else reader)
    views = [reader.view(record) for record in session.history()]
    assert None not in views
    for found in views:
        assert found is not None
        assert not any(isinstance(block, Unknown) for block in found.blocks)
        if found.kind == "assistant" and found.tokens is not None:
            assert found.model
            assert found.tokens.received == 100
