"""What a resume of a Gemini CLI session loads and sends, against the client's rules told anew."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.gemini import reader
from sessrotate.clients.gemini.rows import identity
from support.examples import examples
from support.gemini_sessions import (
    APPENDED,
    TIME,
    Held,
    context,
    file,
    line,
    message,
    metadata,
    update,
)


def loaded(data: bytes) -> list[dict[str, Any]]:
    """Return the messages that the client has after it read a file: its own steps (0.61.0)."""
    known: dict[str, dict[str, Any]] = {}
    for each in data.split(b"\n"):
        try:
            row = json.loads(each)
        except ValueError:
            continue
        if isinstance(row, dict):
            known = step(known, row)
    return list(known.values())


def step(known: dict[str, dict[str, Any]], row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the messages after one more row."""
    if "$rewindTo" in row:
        names = list(known)
        keep = names[: names.index(row["$rewindTo"])] if row["$rewindTo"] in known else []
        return {name: known[name] for name in keep}
    if "id" in row:
        return known | {row["id"]: row}
    if "messages" in row.get("$set", {}):
        return {inner["id"]: inner for inner in row["$set"]["messages"] if isinstance(inner, dict)}
    return known | {inner["id"]: inner for inner in row.get("messages", [])}


def messages_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages that a row has: itself, or those of an update or of metadata."""
    if "id" in row:
        return [row]
    inner = [*row.get("messages", []), *row.get("$set", {}).get("messages", [])]
    return [each for each in inner if isinstance(each, dict)]


def sent(data: bytes) -> list[dict[str, Any]]:
    """Return those of them that it sends."""

    def is_sent(row: dict[str, Any]) -> bool:
        if row["type"] == "gemini":
            return bool(row["content"] or row.get("toolCalls"))
        said = "".join(part.get("text", "a part") for part in row["content"])
        return row["type"] == "user" and not said.startswith(("/", "<session_context>"))

    return [row for row in loaded(data) if is_sent(row)]


def rows(found: Any) -> list[dict[str, Any]]:
    return [json.loads(record.line) for record in found]


_NAMES = st.sampled_from(["a", "b", "c", "d"])
_MESSAGES = st.builds(
    lambda name, kind, text, calls: message(
        name, kind, [{"text": text}], **({"toolCalls": [{"id": "c"}]} if calls else {})
    ),
    _NAMES,
    st.sampled_from(["user", "gemini", "info"]),
    st.sampled_from(["one", "two", "/help", "<session_context>"]),
    st.booleans(),
)
_ROWS = st.one_of(
    _MESSAGES,
    _MESSAGES,
    st.builds(lambda several: update(*several), st.lists(_MESSAGES | st.just(5), max_size=4)),
    st.builds(lambda name: {"$rewindTo": name}, _NAMES | st.just("x")),
    st.just({"$set": {"lastUpdated": TIME}}),
    st.just(metadata()),
    st.builds(lambda several: metadata(messages=several), st.lists(_MESSAGES, max_size=2)),
    st.just(b"torn"),
    st.builds(lambda row: line(row)[:-9], _MESSAGES),
)


@given(st.lists(_ROWS, max_size=12))
@examples(400)
def test_what_was_rewound_is_what_was_taken_back_and_did_not_come_again(several: list[Any]) -> None:
    data = file(metadata(), *several)
    known: dict[str, dict[str, Any]] = {}
    is_left: dict[str, bool] = {}
    for each in data.split(b"\n"):
        try:
            row = json.loads(each)
        except ValueError:
            continue
        now = step(known, row)
        if "$rewindTo" in row:
            is_left |= dict.fromkeys(known.keys() - now.keys(), True)
        else:
            came = {each["id"] for each in [*messages_of(row)]}
            is_left |= dict.fromkeys(came & now.keys(), False)
        known = now
    session = Held(data)
    asked = reader.rewound(session)
    for record in session.history():
        name = identity(record)
        assert asked(record) == (name is not None and is_left.get(name, False))
    assert not any(asked(record) for record in reader.conversation(session))


@given(st.lists(_ROWS, max_size=12))
@examples(400)
def test_a_resume_sends_what_the_client_would_rebuild(several: list[Any]) -> None:
    data = file(metadata(), *several)
    assert rows(reader.conversation(Held(data))) == sent(data)


@given(st.lists(_ROWS, max_size=12))
def test_the_live_lines_are_enough_for_that(several: list[Any]) -> None:
    data = file(metadata(), *several)
    needed = b"".join(record.line + b"\n" for record in reader.live(Held(data)))
    assert loaded(needed) == loaded(data)


@pytest.mark.parametrize("path", APPENDED, ids=lambda path: f"{path.parts[-5]}-{path.stem[-14:]}")
def test_of_a_real_file_the_live_lines_are_as_good_as_all(path: Any) -> None:
    data = path.read_bytes()
    session = Held(data)
    needed = [*reader.live(session)]
    assert loaded(b"\n".join(record.line for record in needed)) == loaded(data)
    assert rows(reader.conversation(session)) == sent(data)
    if session.newest:
        assert sum(record.size for record in needed) < len(data)


def test_a_torn_update_that_looks_whole_is_not_where_a_resume_begins() -> None:
    torn = line(update(message("a")))[:40] + line(update(message("b")))
    data = file(metadata(), update(message("x")), message("y"), torn, message("z"))
    session = Held(data)
    assert session.newest == 2
    assert [row["id"] for row in rows(reader.conversation(session))] == ["x", "y", "z"]


def test_of_an_update_that_is_there_twice_in_a_line_the_last_counts() -> None:
    twice = b'{"$set":{"messages":[%b],"messages":[%b]}}' % (
        line(message("a")),
        line(message("b")),
    )
    data = file(metadata(), twice)
    assert rows(reader.conversation(Held(data))) == [message("b")]


def test_a_messages_place_is_where_its_bytes_are() -> None:
    data = file(metadata(), update(context(), message("a"), message("b")), message("c"))
    session = Held(data)
    found = [*reader.conversation(session)]
    assert [record.segment for record in found] == [1, 1, 1]
    for record in found:
        assert b"".join(session.bytes_of(record)) == record.line


def test_a_message_that_is_too_long_to_be_held_is_sent_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sessrotate.parsing.LONGEST", 1000)
    monkeypatch.setattr("sessrotate.parsing.json_stream.LONGEST", 1000)
    long = message("long", content=[{"text": "x" * 5000}])
    data = file(metadata(), update(context(), message("a"), long), message("b"), long | {"n": 1})
    found = [*reader.conversation(Held(data, piece=100))]
    assert [identity(record) for record in found] == ["a", "long", "b"]
    assert [record.is_whole for record in found] == [True, False, True]
    assert found[1].size == len(line(long | {"n": 1}))


def test_without_its_first_segment_a_session_is_live_all_the_same() -> None:
    from sessrotate.errors import DamagedError  # noqa: PLC0415

    class Pruned(Held):
        def segment(self, index: int) -> Any:
            if not index:
                raise DamagedError("gone")
            return super().segment(index)

    session = Pruned(file(metadata(), message("x"), update(message("a"))))
    assert rows(reader.conversation(session)) == [message("a")]
