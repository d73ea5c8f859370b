"""What the first and last 64 KiB of a Claude Code session say, and what the session is called.

Rule: cheap, since a list may have ten thousand sessions: nothing between the edges is read, and
rows are decoded from either end only until one says what is asked. A file may have rows of another
session (claude-code #30802): they count only where none in sight is the session's own.

The client decides on the title, and only rows that may say something are decoded, as clients from
2.1.30 on do it. The first of these that exists is the title: the one that the user gave, the one
that the model gave, the last prompt, the summary of a leaf of this session, the first real prompt
(2.1.80 to 2.1.330 in this order; 2.0.x knows only the last two). What a row asks, `clients.view`
says. Where the client shows nothing, because what a user typed begins with an element (`<div>`) or
stands in one text behind one, that is the title, after commands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import chain
from typing import Final

from msgspec import Struct, field

from sessrotate import names, units
from sessrotate.clients.claude import view
from sessrotate.clients.claude.rows import (
    Origin,
    Shown,
    Titled,
    is_foreign,
    origin_of,
    row_of,
    shown_of,
    titled_of,
)
from sessrotate.clients.claude.view import of_row
from sessrotate.clients.common import BOM, iso_time
from sessrotate.clients.preview import (
    TITLE_LENGTH,
    Sight,
    Standing,
    Title,
    TitleSource,
    rows,
    rows_from_the_end,
)
from sessrotate.clients.view import asked


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
    said = (b'"sessionId":"%b"' % name, b'"sessionId": "%b"' % name)
    rows = (edge.partition(b"\n")[2] if edge.startswith(names.ROTATED) else edge for edge in edges)
    is_there = any(each in edge for edge in rows for each in said)
    return session if session and is_there else None


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


# ── what the session is called ────────────────────────────────────────────────────────────────────

WARM_UP: Final = "Warmup"
"""What 2.0.x asks its agents, and nobody else, at the start of a session."""

_TITLES: Final[dict[str | None, tuple[TitleSource, Callable[[Titled], str | None]]]] = {
    "custom-title": ("custom", lambda row: row.custom_title),
    "ai-title": ("ai", lambda row: row.ai_title),
    "last-prompt": ("last prompt", lambda row: row.last_prompt),
}
"""Rows whose last one counts, the best title first: their type, and the field."""

_TITLED: Final = re.compile(rb'"type"\s*:\s*"(?:custom-title|ai-title|last-prompt|summary)"')
_CONVERSATION: Final = b'{"parentUuid":'
"""What most rows begin with, and none that has a title (2.0.28 to 2.1.330)."""

_USER: Final = re.compile(rb'"type"\s*:\s*"user"')

_NO_PROMPT: Final = re.compile(
    r"\s*(?:<[a-z][\w-]*[\s>]|\[Request interrupted|Caveat: The messages)"
)
_REMINDER: Final = re.compile(r"\s*<system-reminder>")
_REMINDER_ENDS: Final = "</system-reminder>"


def title(head: bytes, tail: bytes, session: str | None = None) -> Title:
    """Return a session's title by the first and the last 64 KiB of its file.

    They may overlap; of a short file `head` is all. A line that is cut counts for nothing. A
    summary counts if its leaf is in sight.
    """
    found = _Found(session)
    for edge in (head, tail):
        for line in _titled(edge):
            found.entitle(titled_of(line))
    for leaf in found.summaries:
        if any(_has_row(edge, leaf) for edge in (head, tail)):
            found.leaves.add(leaf)
    if (told := found.title()).text:
        return told  # whatever the prompts are, and they are dear to find
    for line in chain(_lines_with(_USER, head), _lines_with(_USER, tail)):
        found.ask(shown_of(line))
        if found.first:
            break
    return found.title()


def is_listed(row: Shown) -> bool:
    """Return whether the client's own list would call a session by what is asked in this row.

    It shows no text that begins with an element, whoever typed that. Both shapes of contents count:
    a text, and blocks (pictures beside a text change nothing).
    """
    return _asked(row) is not None and any(map(_may_be_listed, view.texts(row)))


def _may_be_listed(said: str) -> bool:
    at = 0
    while (reminder := _REMINDER.match(said, at)) is not None:
        end = said.find(_REMINDER_ENDS, reminder.end())
        if end < 0:
            return False
        at = end + len(_REMINDER_ENDS)
    return bool(said[at:].strip()) and not _NO_PROMPT.match(said, at)


def typed(row: Shown) -> str | None:
    """Return what the user typed in a row, unless that is a command."""
    return None if view.is_command(row) else _asked(row)


def _asked(row: Shown) -> str | None:
    if row.is_sidechain or row.is_visible_in_transcript_only:
        return None
    return asked(of_row(row)) or None


class _Found(Struct):
    """What was found so far; a later title of a kind replaces an earlier one."""

    session: str | None
    titles: dict[TitleSource, str] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)
    leaves: set[str] = field(default_factory=set)
    first: str = ""
    command: str = ""
    typed: str = ""

    def entitle(self, row: Titled | None) -> None:
        if row is None or is_foreign(row.session_id, self.session):
            return
        if row.type in _TITLES:
            source, said = _TITLES[row.type]
            self.titles[source] = on_one_line(said(row) or "")
        elif row.type == "summary":
            leaf = row.leaf_uuid if isinstance(row.leaf_uuid, str) else ""
            self.summaries[leaf] = on_one_line(row.summary or "")

    def ask(self, row: Shown | None) -> None:
        if row is None or is_foreign(row.session_id, self.session):
            return
        if row.type == "user":
            said = on_one_line(_asked(row) or "")
            if is_listed(row):
                self.first = said
            elif view.is_command(row):
                self.command = self.command or ("" if said.startswith("!") else said)
            else:
                self.typed = self.typed or said

    def title(self) -> Title:
        told = [said for leaf, said in self.summaries.items() if leaf in self.leaves]
        by_rank = (
            *(Title(self.titles.get(source, ""), source) for source, _ in _TITLES.values()),
            Title(told[-1] if told else "", "summary"),
            Title(self.first, "first prompt"),
            Title(self.command, "command"),
            Title(self.typed, "first prompt"),
        )
        return next((each for each in by_rank if each.text), Title())


def _has_row(edge: bytes, uuid: str) -> bool:
    """Tell whether a whole row in sight has this uuid."""
    name = b'"%s"' % uuid.encode("utf-8", "surrogatepass")  # as JSON has it; no expression is made
    at = edge.find(name)
    while at >= 0:
        end = edge.find(b"\n", at)
        end = end if end >= 0 else len(edge)
        row = row_of(edge[edge.rfind(b"\n", 0, at) + 1 : end].removeprefix(BOM))
        if row is not None and row.uuid == uuid:
            return True
        at = edge.find(name, end)
    return False


def _titled(edge: bytes) -> Iterator[bytes]:
    """Yield the lines that may be rows with titles.

    Newlines are found four times as fast as what is looked for between them.
    """
    begin, size = 0, len(edge)
    while begin < size:
        end = edge.find(b"\n", begin)
        end = end if end >= 0 else size
        if not edge.startswith(_CONVERSATION, begin) and _TITLED.search(edge, begin, end):
            yield edge[begin:end].removeprefix(BOM)
        begin = end + 1


def _lines_with(pattern: re.Pattern[bytes], edge: bytes) -> Iterator[bytes]:
    """Yield the lines that the pattern is found in.

    Looking through all of the edge at once is ten times as fast as looking into each line.
    """
    match = pattern.search(edge)
    while match is not None:
        end = edge.find(b"\n", match.end())
        end = end if end >= 0 else len(edge)
        yield edge[edge.rfind(b"\n", 0, match.start()) + 1 : end].removeprefix(BOM)
        match = pattern.search(edge, end)


def on_one_line(said: str) -> str:
    """Return a text as a title: one line of at most `TITLE_LENGTH` characters."""
    said = " ".join(said[: 20 * TITLE_LENGTH].split())
    return said if len(said) <= TITLE_LENGTH else said[: TITLE_LENGTH - 1] + "…"
