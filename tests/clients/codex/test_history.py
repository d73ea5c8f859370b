"""The items of a compaction's history, each where it stands, out of lines of any length."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.codex import reader
from sessrotate.parsing import LONGEST, Record
from support.examples import examples
from support.lines import any_lines, values

KEYS = st.sampled_from(["payload", "replacement_history", "type", 'a"b', "\\", "é"])
TEXTS = st.sampled_from(["", "x", '"', "\\", "}]", "[{", "payload", "\n", "🙂"])
VALUES = values(st.none() | st.booleans() | st.integers(0, 9) | TEXTS, KEYS, leaves=10)


def found(data: bytes, size: int, offset: int = 0) -> list[Record]:
    record = Record(3, offset, data, len(data))
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    return list(reader.items(record, pieces))


@given(
    st.lists(VALUES, max_size=5),
    st.dictionaries(st.text("abc", max_size=2), VALUES, max_size=3),
    st.dictionaries(st.sampled_from(["m", "message", "history"]), VALUES, max_size=2),
    st.dictionaries(KEYS, VALUES, max_size=2),
    st.integers(1, 200),
    st.booleans(),
)
@examples(300)
def test_the_items_are_those_that_a_parser_finds(
    history: list[Any],
    around: dict[str, Any],
    before: dict[str, Any],
    after: dict[str, Any],
    size: int,
    is_spaced: bool,
) -> None:
    after.pop("replacement_history", None)
    payload = {**before, "replacement_history": history, **after}
    row = {**around, "type": "compacted", "payload": payload}
    separators = (", ", ": ") if is_spaced else (",", ":")
    data = json.dumps(row, separators=separators, ensure_ascii=False).encode()
    records = found(data, size, offset=1000)
    assert [json.loads(each.line) for each in records] == [
        each for each in history if isinstance(each, dict)
    ]
    for each in records:
        assert (each.segment, each.is_whole) == (3, True)
        start = each.offset - 1000
        assert data[start : start + each.size] == each.line


@pytest.mark.parametrize(
    "payload",
    [
        {"message": "m"},
        {"message": "m", "replacement_history": None, "other": [{"a": 1}]},
        {"replacement_history": {"a": {"b": 1}}},
        {"message": "replacement_history", "x": [{"a": 1}]},
        {"inner": {"replacement_history": [{"a": 1}]}},
        {"replacement_history": []},
    ],
)
def test_without_a_history_there_are_no_items(payload: dict[str, Any]) -> None:
    data = json.dumps({"type": "compacted", "payload": payload}).encode()
    assert found(data, 7) == []
    elsewhere = {"other": {"replacement_history": [{"a": 1}]}, "payload": payload}
    assert found(json.dumps(elsewhere).encode(), 7) == []


@given(any_lines() | st.binary(max_size=80), st.integers(1, 50))
def test_a_damaged_line_has_the_items_that_are_left(data: bytes, size: int) -> None:
    for each in found(data, size):
        assert data[each.offset : each.offset + each.size] == each.line
    torn = b'{"payload":{"replacement_history":[{"a":1},{"b":' + data
    assert found(torn, size)[0].line == b'{"a":1}'


def test_of_an_item_that_is_too_long_the_beginning_is_kept() -> None:
    long = b'{"image":"%b"}' % (b"i" * (LONGEST + 9))
    data = b'{"payload":{"replacement_history":[%b,{"b":1}]}}' % long
    first, second = found(data, 64 * 1024)
    assert (first.line, first.size, first.is_whole) == (long[:LONGEST], len(long), False)
    assert (second.line, second.offset) == (b'{"b":1}', data.index(b'{"b":1}'))
