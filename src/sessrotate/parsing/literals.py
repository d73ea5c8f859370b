"""A regular expression → bytes that a raw line must hold for its text to match. Pure.

Rule: a line that matches is never missed. Parts of the expression that are not certain (groups,
classes, escapes, other scripts) are ignored; if nothing certain is left, every line may match. This
pays because a line without the bytes is neither decoded nor parsed.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache
from typing import Final

from msgspec import Struct

_PLAIN: Final = frozenset(string.printable[:95]) - set('"\\/')
"""Characters that stand in JSON as themselves; a slash may be escaped, and some writers do."""

_CASELESS: Final = _PLAIN - set("iIkKsS")
"""Those of them that match only themselves and their other case: to Python's `re` the Kelvin sign
is a `k`, and i and s have such relatives too."""

_COMPOSED: Final = frozenset("K;`")
"""Those that a text may have only once it is composed: of the Kelvin sign, of Greek marks."""

_MEANING: Final = frozenset(".^$|{*+?")
"""Plain characters that mean something else outside of classes, but for those that open pieces."""

_QUANTIFIER: Final = re.compile(r"[*+?]|\{\d*,?\d*\}")
_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_ESCAPE: Final = b"\\u00"


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
