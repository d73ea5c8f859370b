"""Bytes in pieces → the lines that may match, without a look at the others. Pure.

Promise: what comes out is what a sieve lets through of `records.split`, with the same offsets, as
fast as the C library finds a few bytes.

Rule: lines are looked for from what was found in a window, never the other way round. Memory is
bounded: of a line that is longer than the window, its beginning is kept, as `split` keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Final

from sessrotate.parsing.literals import Sieve, escapes
from sessrotate.parsing.needle import Finder, memmem
from sessrotate.parsing.records import LONGEST, split

if TYPE_CHECKING:
    from sessrotate.parsing.records import Line

WINDOW: Final = 1024 * 1024
"""Bytes that are searched at once: more of them fall out of the processor's cache."""

_SMALL: Final = 256 * 1024

_ESCAPE: Final = b"\\u00"
_OVERLAP: Final = 8
"""Bytes of an escape, and some: what may lie in two windows of a long line."""


def candidates(
    pieces: Iterable[bytes | memoryview], sieve: Sieve, start: int = 0, window: int = WINDOW
) -> Iterator[Line]:
    """Yield the lines that `sieve` lets through; each is valid until the next is asked for.

    The first line begins at offset `start`. `window` is in bytes.
    """
    if not sieve.wanted:
        return split(pieces, start)
    every, first = iter(pieces), bytearray()
    for piece in every:
        first += piece
        if len(first) > _SMALL:
            break
    else:  # to clear a large buffer takes longer than to search through most sessions
        window = min(window, len(first) + 1)
    return _Windows(sieve, window).lines(chain((first,), every), start)


class _Windows:
    """A buffer that is filled again and again, and what is looked for in it."""

    def __init__(self, sieve: Sieve, size: int) -> None:
        self._sieve: Final = sieve
        self._plain: Final = Finder(size, memmem=memmem())
        # In small letters, where case does not matter.
        self._small: Final = Finder(size, memmem=memmem()) if sieve.is_caseless else self._plain
        self._escapes: Final = escapes(sieve.wanted, is_caseless=sieve.is_caseless)
        # No functions that hold this: what is in a circle is freed late, and its buffers with it.
        self._needles: Final = (
            *((self._small, literal) for literal in sieve.wanted),
            *((self._plain, literal) for literal in sieve.also),
        )
        self._overlap: Final = max(_OVERLAP, *map(len, (*sieve.wanted, *sieve.also)))
        self._base = 0  # the offset of the buffer's first byte, or of the long line
        self._long: BytesIO | None = None
        self._long_size = 0
        self._long_may_match = False
        self._long_end = b""

    def lines(self, pieces: Iterable[bytes | bytearray | memoryview], start: int) -> Iterator[Line]:
        """Yield the lines of these pieces that may match."""
        buffer, view, used = self._plain.buffer, self._plain.view, 0
        self._base = start
        for piece in pieces:
            data = memoryview(piece)
            while data:
                taken = data[: len(buffer) - used]
                view[used : used + len(taken)] = taken
                used += len(taken)
                data = data[len(taken) :]
                if used == len(buffer):
                    done = buffer.rfind(b"\n", 0, used) + 1
                    yield from self._window(done or used, is_whole=bool(done))
                    rest = used - (done or used)
                    view[:rest] = view[used - rest : used]
                    used = rest
        if used:
            yield from self._window(used, is_whole=True)
        if self._long is not None:
            yield from self._ended(is_ended=False)

    def _window(self, end: int, *, is_whole: bool) -> Iterator[Line]:
        """Yield the lines up to `end`; unless it `is_whole`, the last one goes on behind it."""
        at = 0
        if self._long is not None:
            newline = self._plain.buffer.find(b"\n", 0, end)
            at = newline if newline >= 0 else end
            self._prolong(at)
            if newline < 0:
                return
            yield from self._ended(is_ended=True)
            at += 1
        elif not is_whole:
            self._long, self._long_size, self._long_may_match = BytesIO(), 0, False
            self._prolong(end)
            return
        yield from self._spotted(at, end, self._base - at)
        self._base += end - at

    def _spotted(self, at: int, end: int, base: int) -> Iterator[Line]:
        buffer, view = self._plain.buffer, self._plain.view
        places = self._places(at, end)
        while (spot := min((place for place in places if place >= 0), default=-1)) >= 0:
            begin = buffer.rfind(b"\n", at, spot) + 1 or at
            newline = buffer.find(b"\n", spot, end)
            to = newline if newline >= 0 else end
            yield view[begin:to], base + begin, to - begin, newline >= 0
            at = to + 1
            for number, place in enumerate(places):
                if 0 <= place < at:
                    places[number] = self._next(number, at, end)

    def _places(self, at: int, end: int) -> list[int]:
        """Return where each thing that is looked for first lies, or -1."""
        if self._small is not self._plain:
            self._small.view[at:end] = self._plain.buffer[at:end].lower()
        found = [finder.find(needle, at, end) for finder, needle in self._needles]
        return [*found, self._escaped(at, end)]

    # ── lines that are longer than the window ────────────────────────────────────────────────

    def _prolong(self, size: int) -> None:
        """Add the first bytes of the buffer to the line that does not end in it."""
        held, view = self._long, self._plain.view
        if held is None:
            return
        held.write(view[: min(size, LONGEST - held.tell())])
        self._long_size += size
        if not self._long_may_match:
            edge = self._long_end + view[: min(size, self._overlap)]
            self._long_may_match = max(self._places(0, size)) >= 0 or self._sieve(edge)
            self._long_end = (self._long_end + view[max(0, size - self._overlap) : size])[
                -self._overlap :
            ]

    def _ended(self, *, is_ended: bool) -> Iterator[Line]:
        held, self._long, self._long_end = self._long, None, b""
        if held is not None and self._long_may_match:
            yield held.getvalue(), self._base, self._long_size, is_ended
        self._base += self._long_size + is_ended

    # ── what is looked for ───────────────────────────────────────────────────────────────────

    def _next(self, number: int, start: int, end: int) -> int:
        if number == len(self._needles):
            return self._escaped(start, end)
        finder, needle = self._needles[number]
        return finder.find(needle, start, end)

    def _escaped(self, start: int, end: int) -> int:
        first = self._plain.find(_ESCAPE, start, end)
        found = self._escapes.search(self._plain.buffer, first, end) if first >= 0 else None
        return -1 if found is None else found.start()
