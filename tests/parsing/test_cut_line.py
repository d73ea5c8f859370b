"""Of a line that is cut, what is told are members of its own object, as a parse of all has them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.parsing import json_line
from support.examples import examples
from support.lines import values

NAMES = ("timestamp", "uuid", "cwd", 'a"b')

TEXTS = st.text(st.sampled_from('az"\\/{}[]:, é\n\x00\U0001f600'), max_size=6) | st.sampled_from(
    NAMES
)
SCALARS = st.none() | st.booleans() | st.integers(-9, 10**12) | TEXTS
VALUES = values(SCALARS, st.sampled_from(NAMES) | TEXTS, leaves=6)
ROWS = st.dictionaries(st.sampled_from(NAMES) | TEXTS, VALUES, max_size=6)
SPACES = st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "  : ")])


def encoded(row: dict[str, Any], separators: tuple[str, str], *, is_ascii: bool) -> bytes:
    return json.dumps(row, separators=separators, ensure_ascii=is_ascii).encode()


@given(ROWS, SPACES, st.booleans(), st.integers(0, 400))
@examples(150)
def test_what_a_line_begins_with_are_members_of_it(
    row: dict[str, Any], separators: tuple[str, str], is_ascii: bool, cut: int
) -> None:
    line = encoded(row, separators, is_ascii=is_ascii)
    found = json_line.scalars_in_beginning(line[:cut])
    assert found.items() <= row_items(row)
    scalars = [*_leading(row)]
    assert list(found) == scalars[: len(found)]


@given(ROWS, SPACES, st.booleans(), st.integers(0, 400))
@examples(150)
def test_what_a_line_ends_with_are_members_of_it(
    row: dict[str, Any], separators: tuple[str, str], is_ascii: bool, cut: int
) -> None:
    line = encoded(row, separators, is_ascii=is_ascii)
    found = json_line.scalars_in_end(line[max(0, len(line) - cut) :], NAMES)
    assert found.items() <= row_items(row)
    if cut >= len(line):
        trailing = {*_leading(dict(reversed(row.items())))}
        assert found.keys() == trailing & {"timestamp", "uuid", "cwd"}


def row_items(row: dict[str, Any]) -> Any:
    return {name: value for name, value in row.items() if is_scalar(value)}.items()


def is_scalar(value: object) -> bool:
    return not isinstance(value, dict | list)


def _leading(row: dict[str, Any]) -> list[str]:
    names = []
    for name, value in row.items():
        if not is_scalar(value):
            break
        names.append(name)
    return names


@pytest.mark.parametrize(
    ("line", "members"),
    [
        (b'{"a":1,"b":"x","message":{"timestamp":"no"', {"a": 1, "b": "x"}),
        (b'{"a":1,"b":"x', {"a": 1}),
        (b' { "a" : true , "b":1', {"a": True}),
        (b'["a",1,', {}),
        (b'"a":1,', {}),
        (b"", {}),
    ],
)
def test_the_beginning(line: bytes, members: dict[str, Any]) -> None:
    assert json_line.scalars_in_beginning(line) == members


@pytest.mark.parametrize(
    ("line", "time"),
    [
        (b'xt"}},"uuid":"u","timestamp":"t"}', "t"),
        (b'xt"}},"timestamp" : "t" , "uuid":"u" } ', "t"),
        (b'xt"}},"timestamp":"t","usage":{"x":1},"uuid":"u"}', None),  # it may be anybody's
        (b'"timestamp":"t"}}', None),
        (b'\\"timestamp\\":\\"t\\"}"}', None),
        (b'"timestamp":"t"', None),
    ],
)
def test_the_end(line: bytes, time: str | None) -> None:
    assert json_line.scalars_in_end(line, ("timestamp",)).get("timestamp") == time


def test_a_long_end_takes_no_time_at_all() -> None:
    line = b'"timestamp":"timestamp"' + b',"a":"timestamp"' * 8000 + b"]"
    assert json_line.scalars_in_end(line, ("timestamp",) * 100) == {}
