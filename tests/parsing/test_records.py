"""Pieces of bytes become lines, wherever the pieces end: held against splitting all at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import parsing
from sessrotate.parsing import Record

LINES = st.lists(st.sampled_from([b"", b"a", b"bc", b"\r", b"\xff\x00", b"x" * 40]), max_size=12)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """Return the data in pieces of these sizes, the rest in one."""
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [*pieces, data[at:]]


def expected(data: bytes, longest: int) -> list[Record]:
    found, offset = [], 0
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        is_last = number == len(lines) - 1
        if not is_last or line:
            found.append(Record(3, offset, line[:longest], len(line), not is_last))
        offset += len(line) + 1
    return found


@given(LINES, st.booleans(), st.lists(st.integers(0, 30), max_size=8), st.sampled_from([1, 7, 99]))
def test_lines_are_the_same_however_the_bytes_come(
    lines: list[bytes], ends: bool, sizes: list[int], longest: int
) -> None:
    data = b"\n".join(lines) + b"\n" * ends
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "LONGEST", longest)
        found = list(parsing.records(map(memoryview, cut(data, sizes)), 3))
        whole = [
            Record(entry.segment, entry.offset, entry.line[:longest], entry.size, entry.is_ended)
            for entry in found
        ]
    assert whole == expected(data, longest)
