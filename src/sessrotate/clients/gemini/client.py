"""Gemini CLI from 0.39 on: what its session files (`tmp/<project>/chats/session-*.jsonl`) mean.

Rule: the client decides, by `loadConversationRecord` of 0.61.0 and files of 0.39.1 to 0.61.0. A
line is the first of these that it can be: a rewind (`$rewindTo`), a message (`id`), an update
(`$set`), or metadata (`sessionId` and `projectHash`). An update that sets `messages` replaces all
that was said before it, so each of them is a boundary: 0.44 and later write one at every start,
resume and compression, and nothing tells the last sort from the others.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sessrotate.clients.gemini import home
from sessrotate.model import Boundary
from sessrotate.parsing import json_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Reversible
    from pathlib import Path

    from sessrotate.model import Span

NAME: Final = "gemini"

MARKER: Final = b'"messages"'
"""Bytes that every boundary line has, however it is spaced.

No other line of a client has them: inside a string the quotes are escaped. (`"$set"` would be
found in every second line: one follows each message.)
"""

NOT_IN_PLACE: Final = (
    "Gemini CLI deletes session files by the eight characters that their names end with, stubs of "
    "its own included, so that nothing beside a session is safe from it; sessrotate does not "
    "rotate its sessions in place yet. Leave --in-place out to split into a folder."
)

SUFFIX: Final = ".jsonl"

# As `JSON.stringify` writes an update of `messages` and `lastUpdated`, which is how 0.44.0 to
# 0.61.0 write every one.
_BEGIN: Final = re.compile(rb'\{"\$set":\{"messages":\[(?:\]|\{"id":")')
_END: Final = re.compile(rb'[\[}]\],"lastUpdated":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"\}\}\Z')
_EDGE: Final = 64

_BOUNDARY: Final[json_line.Shape] = {
    "$rewindTo": None,
    "id": None,
    "$set": {"messages": list, "lastUpdated": None},
}

_DATED: Final[json_line.Shape] = {
    "timestamp": None,
    "$set": {"lastUpdated": None},
    "startTime": None,
}

_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)")

TYPES: Final = frozenset({"user", "gemini", "info", "error", "warning"})
"""Types of messages."""

_ROW: Final[json_line.Shape] = dict.fromkeys(
    ("$rewindTo", "id", "timestamp", "type", "sessionId", "projectHash")
) | {"$set": {}}

_CUT_ROW: Final = re.compile(
    rb'\s*\{\s*"(?:\$set"\s*:\s*\{|\$rewindTo"\s*:\s*"'
    rb'|id"\s*:\s*"[^"\\]{1,200}"\s*,\s*"timestamp"\s*:\s*"[^"\\]{1,40}"\s*,'
    rb'\s*"type"\s*:\s*"(?:user|gemini|info|error|warning)")'
)


def boundary(line: Reversible[bytes], span: Span) -> Boundary | bool:
    """Say whether a line that holds `MARKER` is an update that replaces all messages.

    `line` yields the bytes of `span`, which leaves the newline out. Returns the boundary; False
    for JSON that is none; True for a line that is opaque.

    Such a line has all that was said so far, often hundreds of megabytes of it, so one that begins
    and ends as all clients write it is taken at its two ends, and what is between them not read.
    A line that was torn has no such end, whatever the client put behind it next: `$set` of a
    session's id, a message, metadata. Only a torn one that another of its kind follows without a
    newline, which no client does, is taken for a boundary and is none: a cut there loses nothing,
    and who needs to know what a resume loads parses the line (`gemini_live`). Whatever begins or
    ends in another way is parsed here.
    """
    begin = next(iter(line), b"")
    if _BEGIN.match(begin):
        end = b""
        for piece in reversed(line):
            end = piece[-_EDGE:] + end
            if len(end) >= _EDGE:
                break
        if found := _END.search(end):
            return Boundary(offset=span.start, timestamp=found[1].decode())
    return parsed_boundary(line, span)


def parsed_boundary(line: Iterable[bytes], span: Span) -> Boundary | bool:
    """Return what `boundary` does by all of the line, however it begins and ends."""
    values = json_line.values(line, span.size, _BOUNDARY)
    if values is None:
        return True
    changed = values.get("$set")
    if (
        isinstance(values.get("$rewindTo", 0), str | None)
        or isinstance(values.get("id", 0), str | None)
        or not isinstance(changed, dict)
        or changed.get("messages") is not True
    ):
        return False
    return Boundary(offset=span.start, timestamp=_time(changed.get("lastUpdated")))


def timestamp(line: Iterable[bytes], size: int) -> str | None:
    """Return the time of one record (ISO 8601, as the client wrote it), None if it has none.

    `line` yields its `size` bytes. A message has one, an update most often, metadata when the
    session, or a run of the client on it, began.
    """
    found = json_line.values(line, size, _DATED) or {}
    changed = found.get("$set")
    update = changed.get("lastUpdated") if isinstance(changed, dict) else None
    times = (_time(text) for text in (found.get("timestamp"), update, found.get("startTime")))
    return next((time for time in times if time is not None), None)


def recognise(head: bytes, *, is_whole: bool) -> bool:
    """Tell by the first bytes of a file whether it is a session of this client.

    One line of it is enough: the lines around it may be torn or foreign. A first line too long
    for `head` (which then is not the whole file) is taken at its beginning.
    """
    *lines, rest = head.split(b"\n")
    if any(_is_row(line) for line in lines):
        return True
    if is_whole or lines:
        return _is_row(rest)
    return _CUT_ROW.match(rest) is not None


def _is_row(line: bytes) -> bool:
    found = json_line.values([line], len(line), _ROW) or {}
    return (
        isinstance(found.get("$rewindTo"), str)
        or isinstance(found.get("$set"), dict)
        or (isinstance(found.get("sessionId"), str) and isinstance(found.get("projectHash"), str))
        or (isinstance(found.get("id"), str) and found.get("type") in TYPES)
    )


def _time(text: object) -> str | None:
    return text if isinstance(text, str) and _TIMESTAMP.fullmatch(text) else None


def session_of(file_name: str) -> str:
    """Return the id of the session whose file has this name: the name without its suffix."""
    return home.session_of(file_name)


def sessions_folder() -> Path:
    """Return the folder in which its sessions are looked for, whether it is there or not."""
    return home.sessions_folder()


def sessions(prefix: str = "") -> Iterator[Path]:
    """Yield the session files of all projects whose id begins with `prefix`, in sorted order.

    See `gemini_home.sessions`, also for what else finds one.
    """
    return home.sessions(prefix, SUFFIX)
