"""Text of a session → text that no terminal obeys. Pure.

Rule: what is printable stays as it is. Colours are left out, and every other control character is
replaced by a picture of it; directions of writing, which can hide what a text says, by `�`.
A page of HTML isolates each text instead, so that `export.html_text` keeps directions; what it
leaves out is other than colours, too.
"""

from __future__ import annotations

import re
from typing import Final

_COLOUR: Final = re.compile(r"\x1b\[[0-9;:]*m")
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb]"
)
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_PICTURES: Final = 0x2400
_DELETE: Final = "\x7f"


def lines(text: str) -> list[str]:
    """Return the lines of a text, harmless; it may end in a newline, which begins no other."""
    parts = text.replace("\r\n", "\n").split("\n")
    if len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [line if line.isprintable() else cleaned(line) for line in parts]


def line(text: str) -> str:
    """Return a text on one line, harmless; runs of white space are one space."""
    joined = " ".join(_COLOUR.sub("", text).split())
    return joined if joined.isprintable() else cleaned(joined)


def clipped(text: str, width: int) -> str:
    """Return the beginning of a text on one line, harmless, in at most `width` characters."""
    # A line of 8 MiB has no place here: spaces in front of it are all that could be missed.
    short = line(text[: 4 * width + 64])
    if len(short) <= width and len(text) <= 4 * width + 64:
        return short
    return short[: width - 1].rstrip() + "…"


def cleaned(text: str) -> str:
    """Return a text, harmless; its newlines and tabs stay."""
    return _UNSAFE.sub(lambda found: picture(found[0]), _COLOUR.sub("", text))


def picture(character: str) -> str:
    """Return what stands for a character that cannot: its picture, or `�`."""
    if character == _DELETE:
        return chr(_PICTURES + 0x21)
    return chr(_PICTURES + ord(character)) if character < " " else _REPLACEMENT
