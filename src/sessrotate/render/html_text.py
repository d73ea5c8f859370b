"""Untrusted text → HTML text, with the little formatting that answers have; a page's head. Pure.

Rule: escaped first. Tags go into text that is escaped already, so whatever it held, the tags in it
are this module's own; each is closed before the next one opens. Only the style and script whose
hashes are in the head's policy apply, and a page uses no network.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib import resources
from typing import Any, Final

from sessrotate.safe_text import PADDING, picture

_ODD: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
_ODD_PARTS: Final = re.compile(
    rf"{PADDING}|{_ODD.pattern}(?:(?<=\x1b)\[[0-?]*[ -/]*[@-~]|(?<=\r)\n)?"
)
"""What no page should hold: control and half characters, with the rest of a terminal's command."""

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,}) *([\w.+#-]*) *")
"""A line that opens or closes code. What else it may say is one word, so that no text is hidden."""

_MARKS: Final = re.compile(r"^#{1,6} +(.+)$\n{0,2}|`([^`\n]+)`|\*\*([^*\n]+)\*\*", re.MULTILINE)
_TAGS: Final = (("<h3>", "</h3>"), ("<code>", "</code>"), ("<strong>", "</strong>"))

_INDENTED: Final = 16 * 1024
"""Bytes of JSON that are laid out over several lines, which takes ten times as long."""


def escape(text: str) -> str:
    """Return a text as HTML for the inside of an element or of a quoted attribute.

    Colours for terminals are left out, other control characters become their pictures, and what
    no file can hold becomes U+FFFD.
    """
    if _ODD.search(text) is not None:
        text = _ODD_PARTS.sub(_harmless, text)
    return html.escape(text)


def short(text: str, limit: int) -> str:
    """Return the beginning of a text as HTML on one line, `limit` characters at most."""
    line = " ".join(text[: 4 * limit].split())
    return escape(line if len(line) <= limit else line[: limit - 1] + "…")


def prose(text: str) -> str:
    """Return a text as HTML: code in fences as blocks, headings, `code` and **strong** marked."""
    parts: list[str] = []
    lines: list[str] = []
    fence = ""
    for line in escape(text).split("\n"):
        mark = _FENCE.fullmatch(line)
        if mark is None or (fence and (mark[2] or not mark[1].startswith(fence))):
            lines.append(line)
            continue
        parts.append(_block(lines, is_code=bool(fence)))
        lines, fence = [], "" if fence else mark[1]
    parts.append(_block(lines, is_code=bool(fence)))
    return "".join(parts)


def pre(text: str) -> str:
    """Return escaped text as a block of code, of which a parser drops the first newline."""
    guard = "\n" if text.startswith("\n") else ""
    return f"<pre>{guard}{text}</pre>"


def structure(value: Any) -> str:
    """Return a JSON value as text, over several lines if it is not long."""
    try:
        line = json.dumps(value, ensure_ascii=False)
        return json.dumps(value, ensure_ascii=False, indent=2) if len(line) < _INDENTED else line
    except RecursionError:
        return "(nested too deeply to be shown)"


def _harmless(found: re.Match[str]) -> str:
    if len(found[0]) > 1 and found[0][0] != "\0":
        return "\n" if found[0] == "\r\n" else ""
    return picture(found[0])


def _block(lines: list[str], *, is_code: bool) -> str:
    text = "\n".join(lines)
    if is_code:
        return pre(text)
    marked = _MARKS.sub(_tagged, text.strip("\n"))
    return f"<div>{marked}</div>" if marked else ""


def _tagged(found: re.Match[str]) -> str:
    opening, closing = _TAGS[(found.lastindex or 1) - 1]
    return f"{opening}{found[found.lastindex or 1]}{closing}"


# ── the head of a page ──────────────────────────────────────────────────────────────────────────


def head(title: str, style: str, script: str, *, pictures: bool = False) -> str:
    """Return the beginning of a page, to the end of its `head`.

    `title` is HTML text, already escaped. With `pictures`, the page may show its own images.
    """
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {_hash(script)}",
            *(["img-src data:"] if pictures else []),
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
<script>{script}</script>
</head>
"""


def asset(package: str, name: str) -> str:
    """Return the text of a file in the `assets` of a package of ours."""
    found = resources.files(f"sessrotate.{package}").joinpath("assets", name)
    return found.read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
