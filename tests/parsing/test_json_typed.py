"""A line has one row, whichever way it is decoded, and no value in it makes it unreadable."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType, field

from sessrotate.parsing.json_typed import Decoder, parsed, tagged
from support.lines import any_lines, values


class Words(Struct, tag_field="type"):
    """Needs what it is for."""

    text: str


class Mark(Struct, tag_field="type"):
    """Needs nothing."""

    count: int = 0


Block = tagged({Words: ("said", "thought"), Mark: ("mark",)})


class Inner(Struct):
    """An object inside."""

    name: str | None = None
    blocks: list[Block] | None = None  # type: ignore[valid-type]  # made at run time


class Line(Struct, tag_field="type"):
    """A row of every sort of field."""

    id: str | None = None
    is_on: bool = False
    number: int | None = None
    other: Any = None
    inner: Inner = field(name="in", default_factory=Inner)
    names: list[str] = []
    inners: list[Inner] | UnsetType | None = UNSET


ROWS: Final[Decoder[Line | dict[str, Any]]] = Decoder(tagged({Line: ("a", "b")}))

_KEYS: Final = ["type", "id", "is_on", "number", "other", "in", "names", "inners", "name", "blocks"]
_TAGS: Final = ["a", "b", "said", "thought", "mark", "", "\ud800", "é", "\U0001f600"]
_VALUES = values(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**30), 1e300, 0.5, -0.0, 2**63, 2**64])
    | st.sampled_from(_TAGS)
    | st.text(max_size=4),
    st.sampled_from([*_KEYS, "text", "count"]),
    leaves=16,
    most=5,
)


@st.composite
def _spelled(draw: st.DrawFn, value: Any) -> str:
    """Draw a JSON text: keys there twice, escaped, spaced in any way."""
    if isinstance(value, dict):
        members = [(key, draw(_spelled(each))) for key, each in value.items()]
        if members and draw(st.integers(0, 4)) == 0:
            twice = draw(st.sampled_from(members))[0]
            members.insert(draw(st.integers(0, len(members))), (twice, draw(_spelled("a"))))
        return "{" + ",".join(f"{draw(_key(key))}:{text}" for key, text in members) + "}"
    if isinstance(value, list):
        return (
            "["
            + draw(st.sampled_from([",", " , "])).join(draw(_spelled(each)) for each in value)
            + "]"
        )
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@st.composite
def _key(draw: st.DrawFn, key: str) -> str:
    if key and draw(st.integers(0, 9)) == 0:
        return f'"\\u{ord(key[0]):04x}{key[1:]}"'
    return json.dumps(key)


@st.composite
def _lines(draw: st.DrawFn) -> bytes:
    members = draw(st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=7))
    line = draw(_spelled({"type": "a", **members})).encode("utf-8", "surrogatepass")
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, len(line)))
        line = line[:at] + draw(st.binary(max_size=3)) + line[at + draw(st.integers(0, 2)) :]
    return line


@given(_lines() | any_lines() | st.binary(max_size=40))
@example(b'{"type":"a","other":' + b"9" * 5000 + b"}")
@example(b'{"type":"a","skipped":' + b"9" * 5000 + b"}")
@example(b'{"type":"a","number":' + b"9" * 5000 + b"}")
@example(b'{"type":"a","other":1e999}')
@example(b'{"type":"a","number":1.0}')
@example(b'{"type":"a","id":"\\ud800"}')
@example(b'{"type":"a","skipped":"\\ud800","id":"x"}')
@example(b'{"type":"a","id":"\xff","skipped":"\xff"}')
@example(b'{"type":"a","id":"x","id":5}')
@example(b'{"type":"a","id":5,"id":"x"}')
@example(b'{"type":"b","type":"a"}')
@example(b'{"type":"a","type":"new"}')
@example(b'{"type":"a","skipped":NaN}')
@example(b'\xef\xbb\xbf{"type":"a"}')
@example(b'{"type":"a"}\x0b')
@example(b'{"type":"a","skipped":' + b"[" * 600 + b"]" * 600 + b"}")
@example(b'{"type":"a","other":' + b"[" * 200_000 + b"]" * 200_000 + b"}")
def test_both_ways_of_decoding_give_the_same_row(line: bytes) -> None:
    assert _told(ROWS(line)) == _told(ROWS.guarded(line))


def _told(row: object) -> str:
    return repr(row)  # which, unlike ==, tells 1 from True and 1.0, and NaN from nothing


@given(_lines())
def test_a_field_has_the_last_value_of_its_type_and_nothing_else(line: bytes) -> None:
    found: Any = ROWS(line)
    raw = parsed(line)
    if not isinstance(raw, dict) or raw.get("type") not in ["a", "b"]:
        assert repr(found) == repr(raw if isinstance(raw, dict) else None)
        return
    assert isinstance(found, Line)
    assert (found.id, found.is_on) == (_of(raw, "id", str), _of(raw, "is_on", bool) or False)
    assert repr(found.number) == repr(_of(raw, "number", int))
    assert repr(found.other) == repr(raw.get("other"))
    assert found.inner.name == _of(_of(raw, "in", dict) or {}, "name", str)
    assert found.names == [each for each in _of(raw, "names", list) or [] if type(each) is str]


def _of(raw: dict[str, Any], name: str, kind: type) -> Any:
    return raw[name] if name in raw and type(raw[name]) is kind else None


def test_of_a_union_what_fits_no_type_stays_as_it_is() -> None:
    blocks = [
        {"type": "said", "text": "x"},
        {"type": "said"},
        {"type": "new"},
        "y",
        {"type": "mark"},
    ]
    found: Any = ROWS(json.dumps({"type": "b", "in": {"blocks": blocks}}).encode())
    assert isinstance(found, Line)
    kept: Any = found.inner.blocks
    assert (kept[0].text, kept[1:4], kept[4].count) == ("x", blocks[1:4], 0)
    assert ROWS(b'{"type":"c"}') == {"type": "c"}


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"[]", b"7", b"{", b'{"type":"a"', b'{"type":"a"} x', b'\xef\xbb\xbf{"type":"a"}'),
        *(b'{"type":"a","x":%b}' % odd for odd in (b"NaN", b"-Infinity", b"01", b'"\t"', b'"\\x"')),
    ],
)
def test_what_is_no_json_object_is_no_row(line: bytes) -> None:
    assert ROWS(line) is None
