"""Text of a session → Markdown that shows it and obeys none of it. Pure.

Rule: nothing that a session says becomes markup. Code stands in fences longer than any in it,
and prose is escaped; both are read alike by CommonMark and GitHub.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final

from sessrotate import safe_text

_MARKUP: Final = re.compile(r"[\\`*_\[\]<>&~|$#]|(?<=[A-Za-z]):(?=//)|(?<=[wW]{3})\.|@")
"""Characters that mean something anywhere in a line: emphasis, code, links, HTML, addresses."""

_OPENING: Final = re.compile(r"[-+=]")
"""Characters that mean something at the beginning of a line; `>`, `*` and fences are escaped."""

_NUMBERED: Final = re.compile(r"(\d+)([.)])")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})\s*([^`]*)")
_LANGUAGE: Final = re.compile(r"[A-Za-z0-9+#_.-]{1,20}")
_TICKS: Final = re.compile(r"`{3,}")


def inline(text: str) -> str:
    """Return text for within a line, escaped."""
    return _MARKUP.sub(r"\\\g<0>", text)


def in_html(text: str) -> str:
    """Return text on one line for within an HTML element, escaped."""
    return html.escape(safe_text.line(text))


def fenced(text: str, language: str = "") -> str:
    """Return a block that shows text as it is."""
    lines = safe_text.lines(text)
    longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=2)
    fence = "`" * (longest + 1)
    return "\n".join([fence + language, *lines, fence]) + "\n"


def prose(text: str) -> str:
    """Return text as paragraphs in which lines stay lines; code that it fences stays code."""
    return "\n".join(_blocks(safe_text.lines(text)))


def _blocks(lines: list[str]) -> Iterator[str]:
    paragraph: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        fence = _FENCE.fullmatch(line)
        if fence is None and line.strip():
            paragraph.append(_escaped(line))
            continue
        if paragraph:
            yield _joined(paragraph)
            paragraph = []
        if fence is not None:
            end = _end_of_code(lines, at, fence[1])
            word = fence[2].strip()
            yield fenced("\n".join(lines[at:end]), word if _LANGUAGE.fullmatch(word) else "")
            at = end + 1
    if paragraph:
        yield _joined(paragraph)


def _end_of_code(lines: list[str], start: int, fence: str) -> int:
    """Return the number of the line that closes a fence, or of the first after the text."""
    for number in range(start, len(lines)):
        line = lines[number].strip()
        if len(line) >= len(fence) and not line.strip(fence[0]):
            return number
    return len(lines)


def _escaped(line: str) -> str:
    text = line.strip()
    indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
    shown = inline(text)
    if _OPENING.match(shown):
        shown = "\\" + shown
    shown = _NUMBERED.sub(r"\1\\\2", shown, count=1) if _NUMBERED.match(shown) else shown
    return "&nbsp;" * indent + shown


def _joined(paragraph: list[str]) -> str:
    return "\\\n".join(paragraph) + "\n"
