"""Text of a session → text that cannot command a terminal. Pure.

Rule: printable text stays as it is. Colours are dropped; any other control character becomes a
picture of itself (`␛`), and a character that changes the direction of writing, which could hide
what a text says, becomes `�`. NULs that pad a file are counted. HTML isolates each text instead, so
`render.html_text` has rules of its own.
"""

from __future__ import annotations

import re
from typing import Final

_COLOUR: Final = re.compile(r"\x1b\[[0-9;:]*m")
PADDING: Final = "\x00{16,}"
"""What a crash leaves where data had not reached the disk, and file systems fill holes with."""

_UNSAFE: Final = re.compile(
    f"{PADDING}|"
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb]"
)
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_PICTURES: Final = 0x2400
_DELETE: Final = "\x7f"


def lines(text: str) -> list[str]:
    """Return the lines of a text, harmless. A newline at the end does not begin another line."""
    parts = text.replace("\r\n", "\n").split("\n")
    if len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [line if line.isprintable() else cleaned(line) for line in parts]


def line(text: str) -> str:
    """Return a text on one line, harmless; each run of white space becomes one space."""
    if text.isprintable() and "  " not in text:  # as most are: of white space, only single blanks
        return text.strip()
    joined = " ".join(_COLOUR.sub("", text).split())
    return joined if joined.isprintable() else cleaned(joined)


def clipped(text: str, width: int) -> str:
    """Return the beginning of a text on one line, harmless, in at most `width` characters."""
    # Not all of 8 MiB is looked at: only a text that begins with many spaces could lose words.
    short = line(text[: 4 * width + 64])
    if len(short) <= width and len(text) <= 4 * width + 64:
        return short
    return short[: width - 1].rstrip() + "…"


def cleaned(text: str) -> str:
    """Return a text, harmless, with its newlines and tabs."""
    return _UNSAFE.sub(lambda found: picture(found[0]), _COLOUR.sub("", text))


def picture(character: str) -> str:
    """Return what is shown for a character that must not be printed: its picture, or `�`.

    Of NULs that are padding, one is shown, and how many there are.
    """
    if len(character) > 1:
        return f"{chr(_PICTURES)}… ({len(character):,} bytes)"
    if character == _DELETE:
        return chr(_PICTURES + 0x21)
    return chr(_PICTURES + ord(character)) if character < " " else _REPLACEMENT
