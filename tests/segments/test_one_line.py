"""A small file says one value, in the one form in which it is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from sessrotate.model import Count, Digest
from sessrotate.parsing import json_typed
from sessrotate.system.digest import ZERO

if TYPE_CHECKING:
    from collections.abc import Callable


class Inner(Struct, frozen=True):
    digest: Digest | None


class Value(Struct, frozen=True):
    name: str
    sizes: tuple[Count, ...]
    at: float
    inner: Inner | None = None


TEXT = st.text(st.characters())  # surrogates too: a file's name need not be UTF-8
COUNTS = st.integers(0, 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
DIGESTS = st.none() | st.from_regex(r"\Axxh3_128:[0-9a-f]{32}\Z")
VALUES = st.builds(
    Value,
    TEXT,
    st.lists(COUNTS, max_size=4).map(tuple),
    FINITE,
    st.none() | st.builds(Inner, DIGESTS),
)
WHOLE = Value("s", (1, 2), 1.5, Inner(ZERO))


@given(VALUES)
def test_what_is_written_is_read_and_is_one_line_of_ascii(value: Value) -> None:
    line = json_typed.dump_line(value)
    assert json_typed.parse_line(line, Value) == value
    assert line.isascii()
    assert line.index(b"\n") == len(line) - 1


@given(VALUES, st.data())
def test_any_other_bytes_are_no_value(value: Value, draw: st.DataObject) -> None:
    line = json_typed.dump_line(value)
    at = draw.draw(st.integers(0, len(line)))
    other = (
        line[:at] + draw.draw(st.binary(max_size=3)) + line[draw.draw(st.integers(at, at + 2)) :]
    )
    found = json_typed.parse_line(other, Value)
    assert found is None or json_typed.dump_line(found) == other


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told | {"format": 2},
        lambda told: told | {"more": 1},
        lambda told: {"name": "s"} | told,
        lambda told: told | {"sizes": [-1]},
        lambda told: told | {"sizes": [True]},
        lambda told: told | {"sizes": [1 << 63]},
        lambda told: told | {"sizes": [1.0]},
        lambda told: told | {"at": 1},
        lambda told: told | {"name": None},
        lambda told: told | {"inner": {"digest": ZERO + "\n"}},
        lambda told: told | {"inner": {}},
    ],
)
def test_what_we_would_not_write_is_no_value(
    change: Callable[[dict[str, object]], dict[str, object]],
) -> None:
    told = json.loads(json_typed.dump_line(WHOLE))
    assert json_typed.parse_line(json.dumps(told).encode() + b"\n", Value) == WHOLE
    assert json_typed.parse_line(json.dumps(change(told)).encode() + b"\n", Value) is None
    assert json_typed.parse_line(json.dumps(told).encode(), Value) is None
