"""What a Gemini CLI session says of itself in its first and its last 64 KiB, in either format.

Rule: cheap enough for a list of ten thousand: nothing between the edges is read. As in the client's
list (0.61.0: `getAllSessionFiles`), a title is the summary that 0.20 and later let a model write,
or else the first thing that a user asked. The client drops all but ASCII from it; we do not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from sessrotate.clients.gemini.rows import NAMED, NONE, UPDATED, Row, row_of
from sessrotate.clients.gemini.view import is_something, prompt
from sessrotate.clients.preview import TITLE_LENGTH, Sight, Standing, Title
from sessrotate.parsing import records
from sessrotate.parsing.json_stream import arrays_at

_STRING: Final = rb'"((?:(?>[^"\\]|\\.))*+)'
_TIME: Final = re.compile(
    rb'"(?:timestamp|lastUpdated|startTime)"\s*:\s*"(\d{4}-\d\d-\d\dT[0-9:.]+Z)"'
)
_SUMMARY: Final = re.compile(rb'"summary"\s*:\s*%b"' % _STRING)
_IDENTITY: Final = re.compile(rb'"sessionId"\s*:\s*%b"' % _STRING)
_PROJECT: Final = re.compile(rb'"projectHash"\s*:\s*"([0-9a-f]{64})"')
_IS_AGENT: Final = re.compile(rb'"kind"\s*:\s*"subagent"')
_SAID: Final = re.compile(rb'"type"\s*:\s*"gemini"')
# A prompt whose end is out of sight: the fields stand in this order in all versions.
_ASKED: Final = re.compile(
    rb'"type"\s*:\s*"user"\s*,\s*"content"\s*:\s*(?:\[\s*\{\s*"text"\s*:\s*)?' + _STRING
)


def sight(head: bytes, tail: bytes, *, is_whole: bool) -> Sight:
    """Return what a file's first and last bytes say; `is_whole`: `head` is all of it.

    `first` is the hash of the session's project, which is what its sessions have in common.
    """
    asked, answered = _asked(head)
    known = _last(_SUMMARY, tail) or _last(_SUMMARY, head)
    standing: Standing = "session"
    if _IS_AGENT.search(head) or _IS_AGENT.search(tail):
        standing = "agent"
    elif is_whole and not (asked or answered):
        standing = "empty"
    return Sight(
        title=titled(known, asked),
        standing=standing,
        folder=None,
        branch=None,
        started=_first(_TIME, head),
        ended=_last(_TIME, tail or head),
        first=None,
        id=_first(_IDENTITY, head) or _last(_IDENTITY, tail),
    )


def project_hash(head: bytes) -> str | None:
    """Return the SHA-256 of its project's folder that a session names, None if not in sight."""
    return _first(_PROJECT, head)


def titled(summary: str | None, asked: str | None) -> Title:
    """Return a title by a session's summary and its first prompt, as far as there are any."""
    words = summary or asked
    if not words:
        return Title()
    shown = " ".join(words.split())[:TITLE_LENGTH].strip()
    return Title(shown, "summary" if summary else "first prompt")


def _asked(head: bytes) -> tuple[str | None, bool]:
    """Return the first prompt in sight, and whether anything was answered."""
    asked, answered = None, _SAID.search(head) is not None
    for message in _messages(head):
        answered = answered or is_something(message)
        asked = asked or prompt(message)
    if asked is None:
        for found in _ASKED.finditer(head):
            words = _decoded(found[1])
            if prompt(Row(type="user", content=words)):
                return words, answered
    return asked, answered


def _messages(head: bytes) -> Iterator[Row]:
    """Yield the messages on whole lines."""
    for record in records([head], 0):
        row = row_of(record) or NONE
        if row.kind == "message":
            yield row
        elif row.update.messages is not None or row.kind == "metadata":
            path = UPDATED if row.kind == "update" else NAMED
            for elements in arrays_at(path, record, (record.line,)):
                yield from (row_of(each) or NONE for each in elements)


def _first(pattern: re.Pattern[bytes], data: bytes) -> str | None:
    found = pattern.search(data)
    return _decoded(found[1]) if found is not None else None


def _last(pattern: re.Pattern[bytes], data: bytes) -> str | None:
    found = None
    for found in pattern.finditer(data):  # noqa: B007 - the last one is what is wanted
        pass
    return _decoded(found[1]) if found is not None else None


def _decoded(inside: bytes) -> str:
    """Return the text of a JSON string's inside; what was cut at its end is left out."""
    for cut in range(7):  # an escape has up to six characters
        try:
            words = json.loads(b'"%b"' % inside[: len(inside) - cut], strict=False)
        except ValueError:
            continue
        return str(words).encode("utf-8", "replace").decode()
    return inside.decode("utf-8", "replace")
