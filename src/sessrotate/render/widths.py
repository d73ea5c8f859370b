"""How many columns of a terminal a text takes, and how it is cut to fewer. Pure.

Rule: never too few. Where terminals differ (joined emoji, characters of a later Unicode), the
widest counts, so that a line cut to a width fits everywhere.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

ELLIPSIS: Final = "…"

_WIDE: Final = frozenset("WF")
_ABOVE: Final = frozenset({"Mn", "Me"})
_UNKNOWN: Final = frozenset({"Cn", "Co"})
_WIDER: Final = (
    (0x2630, 0x2637),
    (0x268A, 0x268F),
    (0x4DC0, 0x4DFF),
    (0x1D300, 0x1D376),
    (0x1F1E6, 0x1F1FF),
)
"""First and last of characters that are wide from Unicode 16 on, or in some terminals."""

_OTHERS: Final = re.compile(r"[^\x00-\x7f]")

_EMOJI: Final = "\N{VARIATION SELECTOR-16}"
"""Turns the character before it into a picture, twice as wide."""


def width(text: str) -> int:
    """Return how many columns a text without control characters takes, at most."""
    if text.isascii():
        return len(text)
    others = _OTHERS.findall(text)
    return len(text) - len(others) + sum(map(_columns, others))


def cut(text: str, columns: int) -> str:
    """Return the beginning of a text, in at most so many columns (1 or more), and a `…`."""
    if width(text) <= columns:
        return text
    return _beginning(text, columns - 1).rstrip() + ELLIPSIS


def cut_middle(text: str, columns: int) -> str:
    """Return a text without what is in its middle, in at most so many columns (1 or more).

    Of what is left, the end has two thirds: it tells folders apart.
    """
    if width(text) <= columns:
        return text
    start = _beginning(text, (columns - 1) // 3)
    return start + ELLIPSIS + _end(text, columns - 1 - width(start))


def _beginning(text: str, columns: int) -> str:
    used = 0
    for number, character in enumerate(text):
        used += _columns(character)
        if used > columns:
            return text[:number]
    return text


def _end(text: str, columns: int) -> str:
    used = 0
    for number in range(len(text), 0, -1):
        used += _columns(text[number - 1])
        if used > columns:
            # What stands above the character that is left out would go above the ellipsis.
            kept = text[number:]
            return kept.lstrip("".join(c for c in kept if unicodedata.category(c) in _ABOVE))
    return text


@lru_cache(maxsize=4096)
def _columns(character: str) -> int:
    if character.isascii() or character == _EMOJI:
        return 1
    category = unicodedata.category(character)
    if category in _ABOVE:
        return 0
    is_wide = (
        unicodedata.east_asian_width(character) in _WIDE
        or category in _UNKNOWN
        or any(first <= ord(character) <= last for first, last in _WIDER)
    )
    return 2 if is_wide else 1
