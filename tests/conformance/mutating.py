"""Real lines, a little or a lot changed: what no client wrote and any file may hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    try:
        row = json.loads(line)
    except ValueError:
        return line
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
