"""What Gemini CLI's files are recognised by, and which of their lines are boundaries."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.gemini import client as gemini
from sessrotate.clients.gemini import json_client as gemini_json
from sessrotate.model import Boundary, Span
from support.conformance.specimens import gemini as gemini_specimen
from support.examples import examples
from support.gemini_sessions import (
    APPENDED,
    TIME,
    context,
    file,
    line,
    message,
    metadata,
    update,
)


def verdict(data: bytes, piece: int = 64 * 1024) -> Boundary | bool:
    """Return what `boundary` says of a line that comes in pieces of this size."""
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    return gemini.boundary(pieces, Span(7, 7 + len(data)))


def by_parsing(data: bytes) -> bool | None:
    """Say the same by the client's own rules (0.61.0); None for a line that it passes over."""

    def reject(name: str) -> None:
        raise ValueError(name)

    try:
        row = json.loads(data.decode("utf-8", "replace"), parse_constant=reject)
    except ValueError:
        return None
    if not isinstance(row, dict):
        return None
    if isinstance(row.get("$rewindTo"), str) or isinstance(row.get("id"), str):
        return False
    changed = row.get("$set")
    return isinstance(changed, dict) and isinstance(changed.get("messages"), list)


@pytest.mark.parametrize(
    ("head", "is_session"),
    [
        (file(metadata()), True),
        (file(b"torn\x00", message("a")), True),
        (file(update(context())), True),
        (file({"$rewindTo": "a"}), True),
        (line(update(message("a", content="b" * 300_000))), True),
        (line(message("a", content="b" * 300_000)), True),
        (b"", False),
        (b"\n\n", False),
        (b'{"id":"a","type":"message","role":"user"}\n', False),
        (b'{"id":"a","timestamp":"t","instructions":"x"}\n', False),
        (b'{"timestamp":"t","type":"session_meta","payload":{"id":"x"}}\n', False),
        (b'{"sessionId":"s","type":"user","uuid":"u"}\n', False),
        (b'[{"$set":{}}]\n', False),
        (b'{"$set":5}', False),
        (b"\xef\xbb\xbf" + file(metadata()), False),
    ],
)
def test_a_file_is_recognised_by_one_row_of_it(head: bytes, is_session: bool) -> None:
    cut = head[:60_000]
    assert gemini.recognise(cut, is_whole=len(cut) == len(head)) == is_session


# ── boundaries ───────────────────────────────────────────────────────────────────────────────


def test_every_update_of_messages_of_a_real_client_is_a_boundary() -> None:
    found = 0
    for path in APPENDED:
        for each in path.read_bytes().split(b"\n"):
            told = verdict(each)
            assert isinstance(told, Boundary) == (by_parsing(each) is True)
            if isinstance(told, Boundary):
                found += 1
                assert told.timestamp == json.loads(each)["$set"]["lastUpdated"]
                assert told.offset == 7
                assert gemini.MARKER in each
    assert found == 25


@pytest.mark.parametrize(
    "row",
    [
        message("a", args={"$set": {"messages": []}}),
        {"x": update(message("a"))},
        {"$set": {"lastUpdated": TIME}},
        {"$set": {"messages": {"a": [1]}, "lastUpdated": TIME}},
        {"$set": {"x": {"messages": [message("a")]}, "lastUpdated": TIME}},
        {"$set": {"messages": None}},
        {"$set": [{"messages": []}]},
        {"$set": {"x": {"messages": [1]}, "list": [{}], "lastUpdated": TIME}},
        {"$rewindTo": "a", "$set": {"messages": []}},
        {"id": "a", "$set": {"messages": []}},
        {"id": "a" * 300, "$set": {"messages": []}},
        metadata(messages=[message("a")]),
        message("a", content='{"$set":{"messages":[]}}'),
    ],
)
def test_a_line_that_only_has_the_words_is_none(row: Any) -> None:
    assert verdict(line(row)) is False


@pytest.mark.parametrize(
    "spaced",
    [
        json.dumps(update(message("a"))).encode(),
        b' {"$set" : { "lastUpdated":"x", "messages" : [ ] } } ',
        b'{"x":1,"$set":{"messages":[]}}',
        b'{"id":5,"$set":{"messages":[]}}',
        line(update()),
        line(update(message("a"), summary="s")),
        line({"$set": {"lastUpdated": TIME, "messages": [message("a")]}}),
    ],
)
def test_an_update_that_is_written_in_another_way_is_a_boundary_too(spaced: bytes) -> None:
    assert isinstance(verdict(spaced), Boundary)


_ROWS = st.one_of(
    st.builds(lambda text: message("a", content=text), st.text(max_size=8)),
    st.builds(lambda texts: update(*(message(t) for t in texts)), st.lists(st.text(max_size=4))),
    st.builds(
        update,
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
            max_leaves=8,
        ),
    ),
    st.just(metadata()),
    st.just({"$set": {"sessionId": "s"}}),
    st.just({"$set": {"lastUpdated": TIME}}),
)


@given(_ROWS, st.integers(1, 200))
def test_of_what_a_client_writes_the_two_ends_tell_what_all_of_it_does(
    row: Any, piece: int
) -> None:
    data = line(row)
    assert isinstance(verdict(data, piece), Boundary) == (by_parsing(data) is True)


def test_an_update_with_what_is_no_message_at_its_end_is_a_boundary_all_the_same() -> None:
    """It ends as no client writes it, so it is parsed."""
    data = json.dumps(update(message("user-0"), None), separators=(",", ":")).encode()
    assert by_parsing(data)
    assert isinstance(verdict(data), Boundary)
    # And what is right is told alike elsewhere.
    assert gemini_specimen.SPECIMEN.boundaries(b"{}\n" + data) == [3]


@given(_ROWS, st.integers(0, 300), _ROWS | st.none(), st.integers(1, 200))
@examples(300)
def test_a_torn_line_is_no_boundary_unless_another_update_follows_it_at_once(
    row: Any, kept: int, then: Any, piece: int
) -> None:
    torn = line(row)[: min(kept, len(line(row)) - 1)]
    data = torn + (line(then) if then is not None else b"")
    told = verdict(data, piece) if data else False
    if by_parsing(data) is True:
        assert isinstance(told, Boundary)
    elif then is None or by_parsing(line(then)) is not True:
        assert not isinstance(told, Boundary)


def test_a_line_that_is_torn_is_told_as_opaque() -> None:
    torn = line(update(message("a")))[:-10]
    assert verdict(torn) is True
    assert verdict(torn + line({"$set": {"sessionId": "s"}})) is True


def test_of_a_long_line_only_the_ends_are_read() -> None:
    class Watched(list[bytes]):
        read = 0

        def __iter__(self) -> Any:
            for each in super().__iter__():
                self.read += 1
                yield each

        def __reversed__(self) -> Any:
            for each in super().__reversed__():
                self.read += 1
                yield each

    data = line(update(message("a", content="x" * 1_000_000)))
    pieces = Watched(data[at : at + 1000] for at in range(0, len(data), 1000))
    assert isinstance(gemini.boundary(pieces, Span(0, len(data))), Boundary)
    assert pieces.read <= 3


# ── times ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("row", "time"),
    [
        (message("a"), TIME),
        (metadata(), TIME),
        ({"$set": {"lastUpdated": TIME}}, TIME),
        (update(context()), TIME),
        ({"$set": {"sessionId": "s"}}, None),
        ({"$rewindTo": "a"}, None),
        ({"timestamp": "yesterday"}, None),
        ({"x": {"timestamp": TIME}}, None),
    ],
)
def test_a_time_is_the_records_own(row: Any, time: str | None) -> None:
    data = line(row)
    assert gemini.timestamp([data], len(data)) == time


@pytest.mark.parametrize(
    ("data", "time"),
    [
        (f'      "timestamp": "{TIME}",'.encode(), TIME),
        (f'  "lastUpdated":"{TIME}"'.encode(), TIME),
        (b'      "timestamp": "yesterday",', None),
        (b'"timestamp":"' + TIME.encode() + b'"' + b" " * 100_000, None),
        (b"  ],", None),
    ],
)
def test_a_time_of_an_indented_file_stands_on_a_line_of_its_own(
    data: bytes, time: str | None
) -> None:
    assert gemini_json.timestamp([data], len(data)) == time
