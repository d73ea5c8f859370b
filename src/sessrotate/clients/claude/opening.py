"""The line by which clients know how a session began, without reading all of it.

Lists take a session's title, its first prompt and its day from the first rows of its file, and the
clean-up of 2.1.330 spares what was begun in the desktop app, by the first `entrypoint` there. So
the first prompt stays first in the live file, behind the header.

Rule: it costs next to nothing. Only the first `EDGE` bytes are looked at, as clients do, and what
stays is one small line, unchanged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate.clients.claude.ancestry import NoPlanError, name
from sessrotate.clients.claude.preview import is_listed
from sessrotate.clients.claude.rows import shown_of
from sessrotate.clients.in_place import Carried
from sessrotate.clients.preview import EDGE
from sessrotate.model import Span

if TYPE_CHECKING:
    from sessrotate.system.source import Source

SMALL: Final = 16 * 1024
"""Bytes that a prompt may have: not one with a picture or a long text pasted in."""

_IN_REACH: Final = EDGE - SMALL
"""Bytes that a line may have which has to stay: clients find what is in it in any case then."""

_KEY: Final = b'"entrypoint":"'
_ENTRYPOINT: Final = re.compile(_KEY + rb'([^"\\]*)"')
_SPARED: Final = frozenset(
    {b"claude-desktop", b"claude-desktop-3p", b"local-agent", b"local_agent"}
)
"""Where a session was begun that the clean-up of 2.1.330 leaves alone."""


BEGINS: Final = (
    "a line from the beginning, which clients use to list the session and to decide whether to "
    "delete it"
)


class Opening(Struct, frozen=True):
    """The line that stays, and the uuid and the time of its row, if that has them.

    `is_spared`: the clean-up spares the session by it.
    """

    uuid: str | None
    line: Carried
    time: str | None = None
    is_spared: bool = False


def opening(source: Source, before: int) -> Opening | None:
    """Return the line that stays of those before byte `before`, if any.

    That is the first prompt, if it is small; of a session that clients spare, it is the smallest
    line that says so, where the prompt does not. Raises NoPlanError if there is none.
    """
    head = source.read_at(0, min(before, EDGE))
    lines = _lines(head)
    chosen = _small_prompt(head, lines)
    is_spared = _is_spared(head, Span(0, len(head)))
    if is_spared and not (chosen and _is_spared(head, chosen)):
        told = (span for span in lines if _is_spared(head, span) and span.size <= _IN_REACH)
        chosen = min(told, key=lambda span: span.size, default=None)
        if chosen is None:
            raise NoPlanError(
                "Claude Code spares this session when it cleans up, because of its first rows; if "
                "these were archived, it would delete the session. `archive` puts the whole "
                "session away instead."
            )
    if chosen is None:
        return None
    row = shown_of(head[chosen.start : chosen.end])
    uuid, time = (None, None) if row is None else (name(row.uuid), name(row.timestamp))
    return Opening(uuid, Carried(chosen, BEGINS), time, is_spared=is_spared)


def is_of_desktop(head: bytes, tail: bytes) -> bool:
    """Tell by a session's first and last 64 KiB whether the clean-up of 2.1.330 spares it.

    Either is enough: the first entry point of the one, or the last of the other. Of a longer file,
    lines that are not whole in them do not count.
    """
    if len(head) == EDGE:
        head = head[: head.rfind(b"\n") + 1]
    if len(tail) == EDGE:
        tail = tail[tail.find(b"\n") + 1 :]
    found = [*_ENTRYPOINT.findall(head)[:1], *_ENTRYPOINT.findall(tail)[-1:]]
    return not _SPARED.isdisjoint(found)


def _lines(head: bytes) -> list[Span]:
    """Return the lines that are whole."""
    found, start = [], 0
    while (end := head.find(b"\n", start)) >= 0:
        found.append(Span(start, end))
        start = end + 1
    return found


def _small_prompt(head: bytes, lines: list[Span]) -> Span | None:
    """Return the line of the first prompt, None if it is not small."""
    for span in lines:
        line = head[span.start : span.end]
        row = shown_of(line) if b'"user"' in line else None
        if row is not None and is_listed(row):
            return span if span.size <= SMALL else None
    return None


def _is_spared(head: bytes, span: Span) -> bool:
    """Tell by the first entry point in a part of the head, as clients do."""
    at = head.find(_KEY, span.start, span.end)  # several times as fast as the pattern
    found = _ENTRYPOINT.search(head, at, span.end) if at >= 0 else None
    return found is not None and found[1] in _SPARED
