"""Real lines, a little or a lot changed: what no client wrote and any file may hold."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_DEEPEST = 6

_ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1e308,
    10**25,
    "",
    "x",
    "\ud800",
    "2026-13-45T99:99:99.000Z",
    [],
    {},
    [None],
    [[]],
    [{}],
    {"type": None},
    {"type": "text"},
    [{"type": "text", "text": 7}],
    {"": ""},
]


@st.composite
def lines(draw: st.DrawFn, real: Sequence[bytes]) -> bytes:
    """Draw a real line with one to three of its values, or of its bytes, replaced."""
    line = draw(st.sampled_from(real))
    for _ in range(draw(st.integers(0, 3))):
        how = draw(st.sampled_from(["value", "value", "value", "value", "bytes", "cut"]))
        if how == "value":
            line = _with_odd_value(draw, line)
        elif line:
            at = draw(st.integers(0, len(line) - 1))
            other = draw(st.binary(max_size=4)) if how == "bytes" else b""
            line = line[:at] + other + (line[at + len(other) :] if how == "bytes" else b"")
    return line.replace(b"\n", b" ")


def _with_odd_value(draw: st.DrawFn, line: bytes) -> bytes:
    row = _parsed(line)
    here, places = row, []
    while isinstance(here, (dict, list)) and here:
        key = draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
        places.append((here, key))
        here = here[key]
        if draw(st.integers(0, 3)) == 0:
            break
    if not places:
        return line
    holder, key = places[-1]
    holder[key] = draw(st.sampled_from(_ODD))
    if draw(st.booleans()) and isinstance(holder, dict):
        del holder[key]
    return json.dumps(row, separators=(",", ":"), ensure_ascii=draw(st.booleans())).encode(
        "utf-8", "surrogatepass"
    )


def variants(lines: Iterable[bytes], longest: int = 20_000) -> Iterator[bytes]:
    """Yield lines with each of their values in turn left out, or replaced by each odd one.

    A value is tried once for each place that it has in records of its kind.
    """
    known: set[object] = set()
    for line in lines:
        row = _parsed(line) if len(line) <= longest else None
        for path in list(_paths(row)):
            place = _kinds(row, path)
            if place not in known:
                known.add(place)
                yield from _each(row, path)


def _each(row: Any, path: tuple[Any, ...]) -> Iterator[bytes]:
    holder = row
    for key in path[:-1]:
        holder = holder[key]
    last, real = path[-1], holder[path[-1]]
    for odd in _ODD:
        holder[last] = odd
        yield json.dumps(row, separators=(",", ":")).encode()
    if isinstance(holder, dict):
        del holder[last]
        yield json.dumps(row, separators=(",", ":")).encode()
    holder[last] = real


def _kinds(row: Any, path: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a path, with what each object on it says of its kind."""
    found: list[Any] = []
    for key in path:
        kind = row.get("type") if isinstance(row, dict) else None
        found += [key if isinstance(key, str) else 0, str(kind)]
        row = row[key]
    return tuple(found)


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where every value stands; of a list only what its first three hold."""
    if len(path) > _DEEPEST:
        return
    inner: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inner = islice(enumerate(value), 3)
    for key, each in inner:
        yield (*path, key)
        yield from _paths(each, (*path, key))
