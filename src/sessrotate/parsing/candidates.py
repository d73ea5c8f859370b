"""A regular expression → the lines that may match, without a look at the others. Pure.

Promise: what comes out is what a sieve lets through of `parsing.split`, with the same offsets, as
fast as the C library finds a few bytes. A line that matches is never missed.

Rule: from the expression follow bytes that a raw line must hold for its text to match. Parts that
are not certain (groups, classes, escapes, other scripts) are ignored; if nothing certain is left,
every line may match. Lines are looked for from what was found in a window, never the other way
round. Memory is bounded: of a line that is longer than the window, its beginning is kept, as
`split` keeps it.

`Finder.find` gives the result of `bytes.find`, only faster. Where the C library has `memmem`
(glibc, musl, macOS) that is called: it is twice as fast and runs without the interpreter's lock, so
that two threads search twice as much; elsewhere `bytearray.find` does the same.
docs/internals/performance.md has the figures.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate.parsing import LONGEST, split

if TYPE_CHECKING:
    from sessrotate.parsing import Line

    Memmem = Callable[[int, int, bytes, int], int | None]


class Finder:
    """A buffer of fixed size and a search in it; one thread at a time.

    `view` is for filling the buffer, which cannot be resized while the finder lives, so that the
    address handed to the C library stays valid.
    """

    def __init__(self, size: int, *, memmem: Memmem | None) -> None:
        self.buffer: Final = bytearray(size)
        self._memmem: Final = memmem
        self.view: Final = memoryview(self.buffer)
        self._address = 0
        if memmem is not None:
            from ctypes import addressof, c_char  # noqa: PLC0415 - 4 ms at start-up

            self._address = addressof(c_char.from_buffer(self.buffer))

    def find(self, needle: bytes, start: int, end: int) -> int:
        """Return where `needle` first lies within [start, end) of the buffer, or -1."""
        end = min(end, len(self.buffer))
        if self._memmem is None:
            return self.buffer.find(needle, start, end)
        if start >= end:
            return -1
        found = self._memmem(self._address + start, end - start, needle, len(needle))
        return -1 if found is None else found - self._address


@lru_cache(maxsize=1)
def memmem() -> Memmem | None:
    """Return the C library's `memmem`, or None where it has none (Windows)."""
    import ctypes  # noqa: PLC0415 - 4 ms at start-up, wanted only for large files

    try:
        function = ctypes.CDLL(None).memmem
    except (AttributeError, OSError, TypeError):  # no such symbol; no such library (Windows)
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    result: Memmem = function
    return result


# ── a place to begin ──────────────────────────────────────────────────────────────────────────────

# ── what a line must hold ────────────────────────────────────────────────────────────────────────

_PLAIN: Final = frozenset(string.printable[:95]) - set('"\\/')
"""Characters that stand in JSON as themselves; a slash may be escaped, and some writers do."""

_CASELESS: Final = _PLAIN - set("iIkKsS")
"""Those of them that match only themselves and their other case: to Python's `re` the Kelvin sign
is a `k`, and i and s have such relatives too."""

_COMPOSED: Final = frozenset("K;`")
"""Those that a text may have only once it is composed: of the Kelvin sign, of Greek marks."""

_MEANING: Final = frozenset(".^$|{*+?")
"""Plain characters that mean something else outside of classes, but for those that open pieces."""

_ESCAPE: Final = b"\\u00"
"""How an escape begins that an ASCII character may be written as."""

_QUANTIFIER: Final = re.compile(r"[*+?]|\{\d*,?\d*\}")
_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)


class Sieve(Struct, frozen=True):
    """Says which lines may match; `wanted` are literals of which one must be there.

    A line may match as well if any character of these is escaped in it, or if it has any bytes of
    `also`, in this case.
    """

    wanted: tuple[bytes, ...]
    is_caseless: bool = False
    also: tuple[bytes, ...] = ()

    def __call__(self, line: bytes) -> bool:
        """Return whether the text of a raw line may match."""
        wanted = self.wanted
        if not wanted:
            return True
        searched = line.lower() if self.is_caseless else line
        for literal in wanted:
            if literal in searched:
                return True
        if _ESCAPE in line and escapes(wanted, is_caseless=self.is_caseless).search(line):
            return True
        return any(each in line for each in self.also)


@lru_cache(maxsize=64)
def escapes(literals: tuple[bytes, ...], *, is_caseless: bool) -> re.Pattern[bytes]:
    """Return what finds the escapes of these literals' characters, and some others.

    JSON.stringify and Python's json escape no printable ASCII character; other writers may.
    """
    every = b"".join(literals)
    written = every.lower() + every.upper() if is_caseless else every
    third = "".join(sorted({f"{character:02x}"[0] for character in written}))
    return re.compile(rb"\\u00[%b]" % third.encode())


def is_across(literal: bytes, words: str) -> bool:
    """Tell whether a text may hold a literal only because `words` were put before it.

    So it is where the literal stands in the words, or begins in them and goes on behind. Case does
    not count.
    """
    searched, small = words.lower(), literal.decode("ascii").lower()
    ends = (searched[at:] for at in range(len(searched)))
    return small in searched or any(small.startswith(end) for end in ends)


@lru_cache(maxsize=8)  # the same for each of thousands of sessions
def sieve(pattern: re.Pattern[str]) -> Sieve:
    """Return what lines that match this expression have in common."""
    if pattern.flags & re.VERBOSE or "(?#" in pattern.pattern:
        return Sieve(())
    is_caseless = bool(pattern.flags & re.IGNORECASE)
    plain = _CASELESS if is_caseless else _PLAIN
    # With an accent in it, it is compared with texts that were composed.
    plain = plain if pattern.pattern.isascii() else plain - _COMPOSED
    branches = _branches(pattern.pattern, plain)
    if branches is None:
        return Sieve(())
    longest = [max(runs, key=len, default="") for runs in branches]
    if not all(longest):
        return Sieve(())
    wanted = {(each.lower() if is_caseless else each).encode("ascii") for each in longest}
    return Sieve(tuple(sorted(wanted)), is_caseless)


def _branches(pattern: str, plain: frozenset[str]) -> list[list[str]] | None:
    """Return the literal runs outside of groups, for each alternative; None if nobody can tell."""
    branches: list[list[str]] = [[]]
    run = ""
    at = 0
    while at < len(pattern):
        piece = _piece(pattern, at)
        if piece is None:
            return None
        at += len(piece)
        if piece in plain and piece not in _MEANING:
            run += piece
        elif piece[0] == "\\" and piece[1] in plain and not piece[1].isalnum():
            run += piece[1]
        else:
            # What a quantifier follows need not be there.
            branches[-1].append(run[:-1] if _QUANTIFIER.fullmatch(piece) else run)
            run = ""
            if piece == "|":
                branches.append([])
    branches[-1].append(run)
    return branches


def _piece(pattern: str, at: int) -> str | None:
    """Return what stands at an offset: a character, an escape, a quantifier, a class, a group.

    None if nobody can tell where it ends.
    """
    character = pattern[at]
    if character == "\\":
        is_longer = pattern[at + 1] in "xuUN" or pattern[at + 1].isdigit()
        return None if is_longer else pattern[at : at + 2]
    if character == "(":
        return _group(pattern, at)
    for shape in (_QUANTIFIER, _CLASS):
        found = shape.match(pattern, at)
        if found is not None:
            return found[0]
    return None if character == "[" else character


def _group(pattern: str, start: int) -> str | None:
    """Return the group that opens at an offset."""
    at = start + 1
    while at < len(pattern) and pattern[at] != ")":
        inner = pattern[at : at + 2] if pattern[at] == "\\" else _piece(pattern, at)
        if inner is None:
            return None
        at += len(inner)
    return pattern[start : at + 1] if at < len(pattern) else None


# ── the lines that may match ─────────────────────────────────────────────────────────────────────

WINDOW: Final = 1024 * 1024
"""Bytes that are searched at once: more of them fall out of the processor's cache."""

_SMALL: Final = 256 * 1024

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
