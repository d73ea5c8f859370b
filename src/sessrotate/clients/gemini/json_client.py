"""Gemini CLI from 0.11 to 0.38: what its session files (`tmp/<project>/chats/session-*.json`) mean.

Rule: a session is one JSON object, `{"sessionId", "projectHash", "startTime", "lastUpdated",
"messages"}` and since 0.38 `kind`. The client rewrites the whole file at each change, so there is
no boundary in it: a session is one segment, with the bytes of the file. Seen in files of 0.24.0
and 0.38.2. Later clients (0.61.0) read such a file and go on in a `.jsonl` of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Reversible
from functools import partial
from typing import Final

from sessrotate.clients.gemini import client, folders
from sessrotate.model import Boundary, Span
from sessrotate.parsing.json_stream import Cursor

NAME: Final = client.NAME

MARKER: Final = b""

NOT_IN_PLACE: Final = client.NOT_IN_PLACE

session_of: Final = folders.session_of
sessions_folder: Final = folders.sessions_folder
sessions: Final = partial(folders.sessions, suffix=".json")
copies: Final = partial(folders.copies, suffix=".json")

_LONGEST: Final = 64 * 1024
_TIME: Final = re.compile(
    rb'"(?:timestamp|lastUpdated|startTime)"\s*:\s*'
    rb'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))"'
)


def boundary(line: Reversible[bytes], span: Span) -> Boundary | bool:  # noqa: ARG001 - the protocol's
    """Return False: no line of this format is a boundary."""
    return False


def timestamp(line: Iterable[bytes], size: int) -> str | None:
    """Return the time that a line of the file has, None if it has none.

    The client indents the file, so a time is on a line of its own.
    A line over 64 KiB (a file without line breaks, say) is not searched.
    """
    if size > _LONGEST:
        return None
    found = _TIME.search(b"".join(line))
    return found[1].decode() if found is not None else None


def recognise(head: bytes, *, is_whole: bool) -> bool:  # noqa: ARG001 - the protocol's
    """Tell by the first bytes of a file whether it is a session of this format.

    That is an object with `sessionId` and `projectHash` and an array of `messages`, in any order,
    as far as the beginning of that array is in sight.
    """
    names: set[str | None] = set()
    cursor = Cursor((head,))
    for name in cursor.members():
        is_array = cursor.next() == b"["
        names.add(name)
        if name == "messages" and is_array and {"sessionId", "projectHash"} <= names:
            return True
        cursor.value()
    return False
