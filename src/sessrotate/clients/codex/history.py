"""The items of a compaction's `replacement_history`, one by one, out of a line of any length.

Rule: brackets and strings are followed, no more; memory is one item's, and of an item that is too
long only the beginning is kept. What is damaged ends the history, and is no error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sessrotate.parsing.records import LONGEST, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WANTED: Final = ((b"payload", ord("{")), (b"replacement_history", ord("[")))
"""The way there: each key, and what opens behind it."""

_LONGEST_KEY: Final = 64

_OUTSIDE: Final = re.compile(rb'["{}\[\]]')
_INSIDE: Final = re.compile(rb'["\\]')


def items(record: Record, pieces: Iterable[bytes]) -> Iterator[Record]:
    """Yield the objects of the history as records, each where it stands in its segment.

    `record` is the compaction, `pieces` its whole line.
    """
    walk = _Walk()
    for piece in pieces:
        for start, line, size in walk.feed(piece):
            yield Record(record.segment, record.offset + start, line, size, is_part=True)
        if walk.is_over:
            return


class _Walk:
    """Follows one JSON text and cuts the wanted array's objects out of it."""

    def __init__(self) -> None:
        self.is_over = False
        self._before = 0  # bytes of the line before the current piece
        self._depth = 0
        self._found = 0  # how many of the wanted keys lead to where we are
        self._is_inside = False  # of a string
        self._skip = 0  # bytes at the beginning of the next piece that an escape takes
        self._key = bytearray()  # the last string, its beginning, as far as it may be a key
        self._keeps_key = False
        self._item = bytearray()
        self._start: int | None = None  # where the current item begins, in the line
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[tuple[int, bytes, int]]:
        """Yield the items that end in this piece: where they begin, their bytes, their size."""
        kept = 0  # up to here the piece is in the item
        for at in self._brackets(piece):
            mark = piece[at]
            if mark in b"{[":
                if self._open(mark):
                    self._start, kept = self._before + at, at
            elif (start := self._close()) is not None:
                self._keep(piece[kept : at + 1])
                yield start, bytes(self._item), self._size
                self._item.clear()
                self._start, self._size = None, 0
            if self.is_over:
                return
        if self._start is not None:
            self._keep(piece[kept:])
        self._before += len(piece)

    def _brackets(self, piece: bytes) -> Iterator[int]:
        """Yield where there are brackets outside of strings; note the strings that may be keys."""
        at, self._skip = self._skip, 0
        while at < len(piece):
            match = (_INSIDE if self._is_inside else _OUTSIDE).search(piece, at)
            end = len(piece) if match is None else match.start()
            if self._keeps_key:
                self._key += piece[at : min(end, at + _LONGEST_KEY)]
            at = end + 1
            if match is None:
                continue
            if match[0] == b'"':
                self._is_inside = not self._is_inside
                self._begin_key()
            elif self._is_inside:
                at += 1
                self._skip = max(0, at - len(piece))
                self._keeps_key = False
                self._key.clear()
            else:
                yield end

    def _begin_key(self) -> None:
        at_keys = self._found < len(_WANTED) and self._depth == self._found + 1
        self._keeps_key = self._is_inside and at_keys
        if self._keeps_key:
            self._key.clear()

    def _open(self, mark: int) -> bool:
        """Go one level down; tell whether an item begins there."""
        self._depth += 1
        if self._found < len(_WANTED):
            key, opening = _WANTED[self._found]
            if self._depth == self._found + 2 and mark == opening and self._key == key:
                self._found += 1
        elif self._depth == len(_WANTED) + 2:
            return mark == ord("{")
        self._key.clear()
        return False

    def _close(self) -> int | None:
        """Go one level up; return where the item began that ends there."""
        self._depth -= 1
        self.is_over = self._depth <= self._found
        return self._start if self._depth == len(_WANTED) + 1 else None

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        self._item += data[: max(0, LONGEST - len(self._item))]
