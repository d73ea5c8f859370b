"""Where the values of a JSON text begin and end, however it comes and however deep it is."""

from __future__ import annotations

import json
import re
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.parsing import json_stream
from sessrotate.parsing.json_stream import Cursor, Value
from support.examples import examples
from support.lines import json_texts

if TYPE_CHECKING:
    from collections.abc import Iterator


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def elements(data: bytes, size: int = 64 * 1024) -> list[Value]:
    cursor = Cursor(pieces(data, size))
    assert cursor.next() == b"["
    cursor.skip()
    return [*cursor.elements()]


@pytest.fixture(params=[1, 3, 64 * 1024], ids=lambda size: f"buffer{size}")
def buffer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Have the text come in pieces of this size, and no more of it be read than one at a time."""
    monkeypatch.setattr(json_stream, "BUFFER", request.param)
    size: int = request.param
    return size


@given(st.lists(json_texts(), max_size=6), st.integers(1, 40), st.booleans())
@examples(200)
def test_the_elements_of_an_array_are_those_that_a_parser_finds(
    texts: list[str], size: int, small: bool
) -> None:
    data = ("[" + " ,\n".join(texts) + "\n ] rest").encode("utf-8", "replace")
    wanted = json.loads(data.removesuffix(b" rest"))
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(json_stream, "BUFFER", size)
        found = elements(data, size)
    assert [json.loads(value.text) for value in found] == wanted
    for value in found:
        assert value.is_ended
        assert data[value.offset : value.offset + value.size] == value.text


@given(
    st.binary(max_size=60)
    | st.text(st.sampled_from('[]{}",:\\ a1\n'), max_size=60).map(str.encode),
    st.integers(1, 9),
)
@examples(500)
def test_of_any_bytes_nothing_is_told_twice_and_the_ways_agree(data: bytes, size: int) -> None:
    found = elements(b"[" + data)
    end = 1
    for value in found:
        assert value.offset >= end
        end = value.offset + value.size
        assert value.size == len(value.text) > 0
        assert (b"[" + data)[value.offset : end] == value.text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "BUFFER", size)
        for pattern in ("_AT_ONCE", "_ELEMENT"):
            patch.setattr(json_stream, pattern, re.compile(rb"(?!)"))
        assert elements(b"[" + data, size) == found


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":"}]\\"","b":[{"c":"\\\\"}]}',
        b'"\\\\\\""',
        b"[" * 11 + b"]" * 11,
        b"[" * 50 + b'"]"' + b"]" * 50,
        b"[" * 5000 + b"]" * 5000,
        b'"' + b"\\n" * 3000 + b'"',
        b"-12.5e+3",
        b"null",
    ],
    ids=lambda data: f"{data[:12]!r}",
)
def test_a_value_ends_where_it_ends(data: bytes, buffer: int) -> None:
    before, after = Value(1, b"0", 1), Value(len(data) + 4, b'"z"', 3)
    found = elements(b"[0, " + data + b'\n,"z"]', buffer)
    assert found[0] == before
    assert found[1] == Value(4, data, len(data))
    assert found[2].text == after.text


@pytest.mark.parametrize("cut", range(1, 24))
def test_a_value_that_is_cut_off_is_told_as_such(cut: int, buffer: int) -> None:
    data = b'{"a":"x\\"y","b":[1,{}]}'
    found = elements(b"[" + data[:cut], buffer)
    assert found == [Value(1, data[:cut], cut, is_ended=cut == len(data))]


def test_the_members_of_an_object_come_with_their_names(buffer: int) -> None:
    data = b' {"a": 1, "\\u0062":[2], 5: 6, "a":{"x":"}"} , "c":"d"} '
    cursor = Cursor(pieces(data, buffer))
    found = []
    for name in cursor.members():
        cursor.next()
        found.append((name, cursor.value().text))
    assert found == [("a", b"1"), ("b", b"[2]"), (None, b"6"), ("a", b'{"x":"}"}'), ("c", b'"d"')]
    assert cursor.next() == b""


@pytest.mark.parametrize("data", [b"", b"[1]", b"5", b'"a"', b"{", b'{"a"', b'{"a" 1}', b"{,,,}"])
def test_what_is_no_object_has_no_members(data: bytes, buffer: int) -> None:
    cursor = Cursor(pieces(data, buffer))
    for _ in cursor.members():
        cursor.value()  # pragma: no cover - there is none
    cursor.rest()
    assert cursor.offset == len(data)


def test_of_a_long_value_only_the_beginning_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "LONGEST", 1000)
    long = b'"' + b"x" * 5000 + b'"'
    for size in (100, 100_000):
        found = elements(b"[1," + long + b",[" + long + b"],2]", size)
        assert [value.size for value in found] == [1, 5002, 5004, 1]
        assert [len(value.text) for value in found] == [1, 1000, 1000, 1]
        assert found[1].text == long[:1000]


@pytest.mark.parametrize(
    "repeated",
    [b"x", b"\\n", b'\\"', b"\\\\", b"{", b"[", b'"', b"]", b",", b" ", b'[{"', b"\\", b":", b"{]"],
    ids=repr,
)
@pytest.mark.parametrize("opening", [b"[", b'["', b'[{"a":"', b"[[[[[[[[[[[[[[["])
def test_hostile_text_is_passed_to_its_end(opening: bytes, repeated: bytes) -> None:
    block = repeated * (64 * 1024 // len(repeated))
    cursor = Cursor((opening, block, block))
    cursor.next()
    cursor.skip()
    for steps, _ in enumerate(cursor.elements()):
        if steps > 5_000:
            break
    cursor.rest()
    assert cursor.offset == len(opening) + 2 * len(block)


@pytest.mark.parametrize("repeated", [b"x", b'\\"', b"[", b" "], ids=repr)
def test_a_value_without_end_takes_no_memory(repeated: bytes) -> None:
    block = repeated * (64 * 1024 // len(repeated))
    text = (b'["' if repeated != b" " else b"[", *[block] * 512)
    tracemalloc.start()
    try:
        cursor = Cursor(text)
        cursor.next()
        cursor.skip()
        assert len([*cursor.elements()]) == (repeated != b" ")
        assert tracemalloc.get_traced_memory()[1] < 24 * 1024 * 1024
    finally:
        tracemalloc.stop()
