"""Counting lines, whatever the pieces and however short the lines."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sessrotate.parsing import count

LINES = st.lists(st.integers(0, 3000).map(lambda size: b"x" * size), max_size=20)


@given(LINES, st.booleans(), st.lists(st.integers(0, 20_000), max_size=4))
def test_lines_are_counted_whatever_the_pieces(
    lines: list[bytes], is_ended: bool, cuts: list[int]
) -> None:
    data = b"\n".join(lines) + b"\n" * is_ended
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(edges)]
    right = len(data.splitlines())
    assert count(pieces) == (right, sum(map(len, pieces)))
    assert count(memoryview(piece) for piece in pieces) == count(pieces)


@given(st.binary(max_size=9), st.integers(0, 3000))
def test_short_lines_and_long_ones_are_counted_alike(line: bytes, times: int) -> None:
    data = (line.replace(b"\n", b"") + b"\n") * times + b"y" * times
    assert count([data]) == (data.count(b"\n") + (times > 0), len(data))
