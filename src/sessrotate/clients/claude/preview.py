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
from sessrotate.clients.preview import TIME, Sight, Title, first_match, folder

_BRANCH: Final = re.compile(rb'"gitBranch":"([^"\\]*)"')
_UUID: Final = re.compile(rb'"uuid":"([^"\\]+)"')


def look(head: bytes, tail: bytes, *, is_whole: bool) -> Sight:
    """Return what a file's first and last bytes say; `is_whole`: `head` is all of it."""
    return Sight(
        title=title(head, b"" if is_whole else tail),
        standing=standing(head, is_whole=is_whole),
        folder=folder(head),
        branch=_last(_BRANCH, b'"gitBranch":', tail),
        started=first_match(TIME, head),
        ended=_last(TIME, b'"timestamp":', tail),
        first=first_match(_UUID, head),
    )


def uuids(head: bytes, tail: bytes) -> frozenset[str]:
    """Return the uuids of the rows in sight."""
    names = (*_UUID.findall(head), *_UUID.findall(tail))
    return frozenset(name.decode("utf-8", "replace") for name in names)


def index_titles(data: bytes) -> dict[str, Title]:
    """Return the titles of sessions that a `sessions-index.json` gives, by id.

    Some clients between 2.0.76 and 2.1.14 kept one for each project, as a cache. It may be out of
    date, or wrong: a hint for a session whose own file shows no title.
    """
    try:
        index = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    entries = index.get("entries") if isinstance(index, dict) else None
    titles = {}
    for entry in entries if isinstance(entries, list) else ():
        session = text(entry, "sessionId")
        if session is not None:
            summary, first = text(entry, "summary"), text(entry, "firstPrompt")
            if said := on_one_line(summary or first or ""):
                titles[session] = Title(said, "summary" if summary else "first prompt")
    return titles


def _last(pattern: re.Pattern[bytes], marker: bytes, data: bytes) -> str | None:
    end = len(data)
    while (at := data.rfind(marker, 0, end)) >= 0:
        if (match := pattern.match(data, at)) is not None:
            return match[1].decode("utf-8", "replace")
        end = at
    return None
