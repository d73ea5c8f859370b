"""Gemini CLI from 0.39 on: what its session files (`tmp/<project>/chats/session-*.jsonl`) mean.

Rule: the client decides, as seen in `loadConversationRecord` of 0.61.0 and files of 0.39.1 to
0.61.0. A line is the first of these that it can be: a rewind (`$rewindTo`), a message (`id`), an
update (`$set`), or metadata (`sessionId` and `projectHash`). An update that sets `messages`
replaces everything said before it, so each such update is a boundary. 0.44 and later write one at
every start, resume and compression, and nothing tells compressions from the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Final

from sessrotate.clients.common import has_row, iso_time, text
from sessrotate.clients.gemini import folders, rows
from sessrotate.parsing import json_line

NAME: Final = "gemini"

MARKER: Final = rows.MARKER

NOT_IN_PLACE: Final = (
    "Gemini CLI deletes session files by the eight characters that their names end with, so files "
    "beside a session are not safe from it, and sessrotate does not rotate its sessions in place "
    "yet. `split` without --in-place copies one into a folder."
)

boundary: Final = rows.boundary
session_of: Final = folders.session_of
sessions_folder: Final = folders.sessions_folder
sessions: Final = partial(folders.sessions, suffix=".jsonl")
copies: Final = partial(folders.copies, suffix=".jsonl")
tell_unread: Final = folders.tell_unread

_DATED: Final[json_line.Shape] = {
    "timestamp": None,
    "$set": {"lastUpdated": None},
    "startTime": None,
}

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


def timestamp(line: Iterable[bytes], size: int) -> str | None:
    """Return the time of one record, None if it has none.

    A message has its own time, most updates have one, and metadata has the time at which the
    session, or a run of the client on it, began.
    """
    found = json_line.values(line, size, _DATED) or {}
    update = text(found.get("$set"), "lastUpdated")
    return iso_time(found.get("timestamp")) or iso_time(update) or iso_time(found.get("startTime"))


def recognise(head: bytes, *, is_whole: bool) -> bool:
    """Tell by the first bytes of a file whether it is a session of this client."""
    return has_row(head, is_whole=is_whole, is_row=_is_row, may_begin_row=_CUT_ROW.match)


def _is_row(line: bytes) -> bool:
    found = json_line.values([line], len(line), _ROW) or {}
    return (
        isinstance(found.get("$rewindTo"), str)
        or isinstance(found.get("$set"), dict)
        or (isinstance(found.get("sessionId"), str) and isinstance(found.get("projectHash"), str))
        or (isinstance(found.get("id"), str) and found.get("type") in TYPES)
    )
