"""What the first and last 64 KiB of a Claude Code session say.

Rule: cheap, since a list may have ten thousand sessions: nothing between the edges is read, and
rows are decoded from either end only until one says what is asked. A file may have rows of another
session (claude-code #30802): they count only where none in sight is the session's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from itertools import chain
from typing import Final

from sessrotate import names, units
from sessrotate.clients.claude import loading, titles
from sessrotate.clients.claude.rows import Origin, is_foreign, origin_of, shown_of
from sessrotate.clients.claude.titles import WARM_UP, title, typed
from sessrotate.clients.common import BOM, iso_time
from sessrotate.clients.preview import Sight, Standing, Title, rows, rows_from_the_end

is_compacted: Final = loading.is_compacted

index_titles: Final = titles.index_titles


def look(
    head: bytes, tail: bytes, *, is_whole: bool, session: str | None = None, early: bytes = b""
) -> Sight:
    """Return what a file's first and last bytes say; `is_whole`: `head` is all of it.

    `session` is whose file it is, where that is known. `early` is the beginning of the live file of
    a rotated session, which `head` is not. Times are in UTC. An empty `tail` says nothing.
    """
    head = head.removeprefix(BOM)
    last, whose = head if is_whole else tail, _whose(session, head, early, tail)
    began = _said(rows(origin_of, head, is_whole=is_whole), whose, ("cwd", "timestamp", "uuid"))
    seen = rows_from_the_end(origin_of, last, is_whole=is_whole)
    ended = _said(seen, whose, ("git_branch", "timestamp"))
    return Sight(
        title=title(head, b"" if is_whole else b"\n".join(filter(None, (early, tail))), whose),
        standing=standing(head, tail, is_whole=is_whole),
        folder=began.get("cwd"),
        branch=ended.get("git_branch"),
        started=began.get("timestamp"),
        ended=ended.get("timestamp"),
        first=began.get("uuid"),
    )


def of_live(session: str, head: bytes, tail: bytes, older: bytes, *, is_whole: bool) -> Sight:
    """Return what is in sight of a session by its live file's edges; its archive begins `older`.

    That is empty where it was never rotated.
    """
    if not older:
        return look(head, tail, is_whole=is_whole, session=session)
    # What a rotation carried stands at the beginning of the live file, titles among it.
    return look(older, tail, is_whole=False, session=session, early=head)


def brief(session: str, head: bytes, tail: bytes, older: bytes, *, is_whole: bool) -> Sight:
    """Return of the same only whether somebody used the session, and when."""
    last, whose = head if is_whole else tail, _whose(session, older, head, tail)
    ended = _said(rows_from_the_end(origin_of, last, is_whole=is_whole), whose, ("timestamp",))
    used = standing(older or head, tail, is_whole=is_whole and not older)
    return Sight(Title(), used, None, None, None, ended.get("timestamp"), None)


def _whose(session: str | None, *edges: bytes) -> str | None:
    """Return the session, None if no row in sight can be its own: any row counts then.

    That is a file that was given another name. Else another session's rows never count, also where
    the own ones say nothing: they may be out of sight. Our header is no row, and has its file's
    name.
    """
    name = (session or "").encode("utf-8", "surrogateescape")
    rows = (edge.partition(b"\n")[2] if edge.startswith(names.ROTATED) else edge for edge in edges)
    return session if session and any(name in each for each in rows) else None


def uuids(head: bytes, tail: bytes) -> frozenset[str]:
    """Return the uuids of the rows in sight."""
    seen = chain(
        rows(origin_of, head, is_whole=False), rows_from_the_end(origin_of, tail, is_whole=False)
    )
    return frozenset(row.uuid for row in seen if isinstance(row.uuid, str))


def follows(head: bytes) -> str | None:
    """Return the uuid of the first row that a row in sight says it follows, None if none does."""
    return _said(rows(origin_of, head, is_whole=False), None, ("parent_uuid",)).get("parent_uuid")


def _said(seen: Iterable[Origin], whose: str | None, fields: tuple[str, ...]) -> dict[str, str]:
    """Return what is first said of each name by a row that is not another session's.

    The first uuid is anyone's: it tells what a file is a copy of.
    """
    found: dict[str, str] = {}
    for row in seen:
        is_other = is_foreign(row.session_id, whose)
        for name in fields:
            if name not in found and (not is_other or name == "uuid"):
                value = getattr(row, name)
                if name == "timestamp":
                    value = iso_time(value)
                if isinstance(value, str):
                    found[name] = value if name != "timestamp" else units.in_utc(value)
        if len(found) == len(fields):
            break
    return found


def standing(head: bytes, tail: bytes, *, is_whole: bool) -> Standing:
    """Tell by the edges of a file whether it is a session that somebody used.

    2.0.x leaves an empty file for each start, and warms up its agents before anybody asks
    anything; a file of agents' rows only is no session of its own either. In doubt it is one.
    """
    sidechains = warm_ups = False
    for line in chain(BytesIO(head), () if is_whole else BytesIO(tail)):  # mostly the first few
        row = shown_of(line.removeprefix(BOM))
        if row is None or row.type not in {"user", "assistant"}:
            continue
        if row.is_sidechain:
            sidechains = True
        elif row.type == "assistant":
            if not warm_ups:
                return "session"
        elif row.is_compact_summary or (typed(row) or WARM_UP) != WARM_UP:
            return "session"
        else:
            warm_ups = warm_ups or typed(row) == WARM_UP
    if not is_whole and not (sidechains or warm_ups):
        return "session"
    return "warm-up" if warm_ups else "agent" if sidechains else "empty"
