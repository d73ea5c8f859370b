"""What the first and the last 64 KiB of a Claude Code session say.

Rule: this must be cheap, because a list may have ten thousand sessions. Nothing between the two is
read, and only rows that may say something are decoded. Clients from 2.1.30 on list sessions in the
same way.
"""

from __future__ import annotations

import json
import re
from typing import Final

from sessrotate.clients.claude.agents import standing
from sessrotate.clients.claude.titles import on_one_line, title
from sessrotate.clients.common import text
from sessrotate.clients.preview import Sight, Title
from sessrotate.parsing import json_typed

_FOLDER: Final = re.compile(rb'"cwd":("(?:[^"\\]|\\.)*")')
_PLAIN_FOLDER: Final = re.compile(rb'"cwd":"([^"\\\x00-\x1f]*)"')
_BRANCH: Final = re.compile(rb'"gitBranch":"([^"\\]*)"')
_TIME: Final = re.compile(rb'"timestamp":"(\d{4}-\d\d-\d\dT[0-9:.]+Z)"')
_UUID: Final = re.compile(rb'"uuid":"([^"\\]+)"')


def look(head: bytes, tail: bytes, *, is_whole: bool) -> Sight:
    """Return what a file's first and last bytes say; `is_whole`: `head` is all of it."""
    return Sight(
        title=title(head, b"" if is_whole else tail),
        standing=standing(head, is_whole=is_whole),
        folder=_folder(head),
        branch=_last(_BRANCH, b'"gitBranch":', tail),
        started=_first(_TIME, head),
        ended=_last(_TIME, b'"timestamp":', tail),
        first=_first(_UUID, head),
    )


def uuids(head: bytes, tail: bytes) -> frozenset[str]:
    """Return the uuids of the rows in sight."""
    return frozenset(
        found.decode("utf-8", "replace") for edge in (head, tail) for found in _UUID.findall(edge)
    )


def index_titles(data: bytes) -> dict[str, Title]:
    """Return the titles of sessions that a `sessions-index.json` gives, by id.

    Some clients between 2.0.76 and 2.1.14 kept one for each project, as a cache. It may be out of
    date, or wrong: a hint for a session whose own file shows no title.
    """
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    entries = found.get("entries") if isinstance(found, dict) else None
    titles = {}
    for entry in entries if isinstance(entries, list) else ():
        session = text(entry, "sessionId") if isinstance(entry, dict) else None
        if session is not None:
            summary, first = text(entry, "summary"), text(entry, "firstPrompt")
            if said := on_one_line(summary or first or ""):
                titles[session] = Title(said, "summary" if summary else "first prompt")
    return titles


def _folder(head: bytes) -> str | None:
    at = head.find(b'"cwd":"')
    plain = _PLAIN_FOLDER.match(head, at) if at >= 0 else None
    if plain is not None:
        return plain[1].decode("utf-8", "replace")
    found = _FOLDER.search(head)
    if found is None:
        return None
    folder = json_typed.parsed(found[1])
    return folder if isinstance(folder, str) else None


def _first(pattern: re.Pattern[bytes], data: bytes) -> str | None:
    found = pattern.search(data)
    return found[1].decode("utf-8", "replace") if found is not None else None


def _last(pattern: re.Pattern[bytes], marker: bytes, data: bytes) -> str | None:
    end = len(data)
    while (at := data.rfind(marker, 0, end)) >= 0:
        if (found := pattern.match(data, at)) is not None:
            return found[1].decode("utf-8", "replace")
        end = at
    return None
