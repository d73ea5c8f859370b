"""Gemini CLI's monolithic sessions: their messages as records, whatever the file is like."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import open_session
from sessrotate.clients.gemini import json_client as gemini_json
from sessrotate.clients.gemini import json_reader, reader
from sessrotate.clients.view import ToolCall, ToolResult
from sessrotate.export import jsonl, markdown
from support.examples import examples
from support.gemini_sessions import UUID, WHOLE, Held, message, metadata

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.parsing import Record


def records(data: bytes, piece: int = 64 * 1024) -> list[Record]:
    pieces = (data[at : at + piece] for at in range(0, len(data), piece))
    return [*json_reader.records(pieces, 0)]


def session(data: bytes) -> Held:
    return Held(data, reader=json_reader)


def messages(found: list[Record]) -> list[Any]:
    rows = [json.loads(record.line) for record in found]
    return [row for row in rows if "id" in row]


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.parts[-5])
def test_a_real_file_has_its_messages_and_its_other_members(path: Path) -> None:
    data = path.read_bytes()
    whole = json.loads(data)
    found = records(data, 100)
    assert messages(found) == whole["messages"]
    others = {k: v for record in found for k, v in json.loads(record.line).items()}
    assert {name: others[name] for name in whole if name != "messages"} == {
        name: value for name, value in whole.items() if name != "messages"
    }
    for record in found:
        if b'"id"' in record.line[:20]:
            assert data[record.offset : record.offset + record.size] == record.line


_MESSAGES = st.builds(
    message,
    st.text(max_size=5),
    st.sampled_from(["user", "gemini", "info"]),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=6),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=12,
    ),
)


@given(
    st.lists(_MESSAGES, max_size=6),
    st.sampled_from([None, 0, 2, "\t"]),
    st.integers(1, 200),
    st.booleans(),
)
@examples(200)
def test_any_file_has_its_messages(
    several: list[Any], indent: Any, piece: int, is_ascii: bool
) -> None:
    whole = metadata(messages=several, summary="s")
    data = json.dumps(whole, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "replace")
    assert messages(records(data, piece)) == json.loads(data)["messages"]
    assert gemini_json.recognise(data, is_whole=True)


@given(st.lists(_MESSAGES, min_size=1, max_size=4), st.data())
def test_a_file_that_is_cut_short_has_the_messages_before_the_cut(
    several: list[Any], data: st.DataObject
) -> None:
    whole = json.dumps(metadata(messages=several), indent=2).encode()
    cut = data.draw(st.integers(whole.index(b"["), len(whole)))
    found = [record for record in records(whole[:cut]) if record.is_ended]
    assert messages(found) == several[: len(messages(found))]
    assert sum(record.is_ended is False for record in records(whole[:cut])) <= 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"messages":{"a":1}}',
        b'{"messages":"[]"}',
        b"}{",
        b"{}{}",
    ],
)
def test_what_is_no_session_is_no_error(data: bytes) -> None:
    held = session(data)
    assert [record.line for record in records(data)] == [r.line for r in held.history()]
    assert [*json_reader.conversation(held)] == []
    assert json_reader.sight(data, data, is_whole=True).title.source == "none"
    assert not gemini_json.recognise(data, is_whole=True)


def test_of_messages_that_are_there_twice_the_last_are_sent() -> None:
    first, last = (json.dumps([message(name)]) for name in "ab")
    data = f'{{"sessionId":"{UUID}","messages":{first},"messages":{last}}}'.encode()
    held = session(data)
    assert messages([*json_reader.conversation(held)]) == [message("b")]
    assert len(messages([r for r in held.history() if r.line != json_reader.AGAIN])) == 2


def test_a_resume_sends_what_was_asked_and_answered() -> None:
    several = [
        message("note", "info", "Update successful"),
        message("a", content="hello"),
        message("help", content="/help"),
        message("none", content="  "),
        message("b", "gemini", "an answer"),
        message("empty", "gemini", ""),
        message("call", "gemini", "", toolCalls=[{"id": "c", "name": "run", "args": {}}]),
        message("thought", "gemini", "", thoughts=[{"subject": "x"}]),
        message("other", "quit", "bye"),
    ]
    held = session(json.dumps(metadata(messages=several), indent=2).encode())
    sent = messages([*json_reader.conversation(held)])
    assert [row["id"] for row in sent] == ["a", "b", "call", "thought"]


@pytest.mark.parametrize(
    ("more", "title", "source"),
    [
        ({}, "first words", "first prompt"),
        ({"summary": "What it\nwas about"}, "What it was about", "summary"),
        ({"summary": 5}, "first words", "first prompt"),
    ],
)
def test_it_is_called_what_its_client_lists(more: Any, title: str, source: str) -> None:
    several = [message("c", content="/chat"), message("a", content=" first\n words "), message("b")]
    data = json.dumps(metadata(messages=several) | more, indent=2).encode()
    seen = json_reader.sight(data, data, is_whole=True)
    assert (seen.title.text, seen.title.source) == (title, source)
    assert (seen.id, seen.standing) == (UUID, "session")


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.parts[-5])
def test_its_export_has_a_line_for_each_record(path: Path) -> None:
    with open_session(path) as opened:
        lines = b"".join(jsonl.pieces(opened)).split(b"\n")
        document = b"".join(markdown.pieces(opened)).decode()
    assert lines.pop() == b""
    rows = [json.loads(line) for line in lines]
    assert [row for row in rows if "id" in row] == json.loads(path.read_bytes())["messages"]
    for word in ("alpha", "beta", "gamma", "delta"):
        assert f". {word} " in document


def test_a_message_is_the_same_in_both_formats() -> None:
    row = message("a", "gemini", "x", toolCalls=[{"id": "c", "name": "run", "result": "given"}])
    (indented,) = (
        record
        for record in records(json.dumps(metadata(messages=[row]), indent=2).encode())
        if b'"id"' in record.line
    )
    (line,) = reader.records([json.dumps(row).encode()], 0)
    assert json_reader.view(indented) == reader.view(line)
    view = reader.view(line)
    assert view is not None
    assert [type(block) for block in view.blocks][1:] == [ToolCall, ToolResult]
