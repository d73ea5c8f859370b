"""How many lines bytes have. Pure.

Rule: a line is ended by its newline, and a last one without counts too. What is counted is never
held: pieces come and go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_USUAL: Final = 512
"""Bytes of a line from which on it is faster to look for each newline than to compare each byte."""


def count(pieces: Iterable[bytes | memoryview]) -> int:
    """Return how many lines the pieces have together."""
    found, last = 0, b"\n"
    for piece in pieces:
        data = bytes(piece)  # of bytes no copy is made
        if data:
            found += _in(data)
            last = data[-1:]
    return found + (last != b"\n")


def _in(data: bytes) -> int:
    """Return the newlines of a piece.

    `find` is memchr, at 11 GB/s, and costs a call each; `count` does 2.5 to 4 GB/s whatever there
    is. So lines are looked for one by one unless they turn out to be short.
    """
    at = -1
    for number in range(len(data) // _USUAL):
        at = data.find(b"\n", at + 1)
        if at < 0:
            return number
    return len(data) // _USUAL + data.count(b"\n", at + 1)
