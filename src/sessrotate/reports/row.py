"""A session as a row of the list: which rows are wanted, in which order, called what. Pure.

Rule: a figure is exact, or None where it was not cheap to know; nothing is estimated.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessrotate.clients.preview import Standing, Title

SHORTEST: Final = 8
"""Characters of an id that are shown, or more, if it takes them to tell sessions apart."""


@dataclass(frozen=True, slots=True)
class Continues:
    """The session that one continues, and how that is known.

    `at` is the row of the other one (a number) before which its part of the history ends, where
    the session itself says so.
    """

    session: str
    reason: str
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A session in the list. Sizes are bytes, times seconds since 1970.

    `name` is its id, or what it is called where that is longer than the id of its file; `project`
    the folder that its client ran in, or else what the client calls that; `path` the live file,
    also where it `is_live` no more. `archived_bytes` are those of the history that the archive
    holds, None if it does not say; `archived_disk_bytes` what its files take.
    `compactions` and `live_tail_bytes` are None where only a scan tells; then there are at least
    `segments` compactions. `last_used` is the time of the last record, or else of the last change.
    """

    session: str
    name: str
    client: str
    project: str
    path: str
    is_live: bool
    bytes: int
    archived_bytes: int | None
    archived_disk_bytes: int
    side_bytes: int
    segments: int
    compactions: int | None
    live_tail_bytes: int | None
    modified: float
    last_used: float
    running: bool
    standing: Standing
    title: Title
    branch: str | None
    started: str | None
    ended: str | None
    continues: Continues | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be listed. None leaves a question open.

    `paths` are the absolute paths that `project` may mean; `least` is in bytes; a session was
    last used before `before` and not before `since`, in seconds since 1970.
    """

    client: str | None = None
    project: str | None = None
    paths: frozenset[str] = frozenset()
    least: int = 0
    before: float | None = None
    since: float | None = None
    hidden: bool = False

    def takes(self, entry: Entry) -> bool:
        """Tell whether a session is to be listed."""
        return (
            (self.hidden or entry.standing == "session")
            and (self.client is None or entry.client == self.client)
            and (self.project is None or self._is_project(entry.project))
            and entry.bytes >= self.least
            and (self.before is None or entry.last_used < self.before)
            and (self.since is None or entry.last_used >= self.since)
        )

    def _is_project(self, folder: str) -> bool:
        return folder in self.paths or self.project in {folder, last_part(folder)}


def last_part(folder: str) -> str:
    """Return the name of a folder, of any system."""
    return re.split(r"[/\\]", folder.rstrip("/\\"))[-1]


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Return sessions largest first, by their live files and then by their archives."""
    return sorted(
        entries,
        key=lambda each: (-each.bytes, -(each.archived_bytes or 0), each.session, each.path),
    )


def told_apart(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries, those by their files' ids whose names others have as well.

    Gemini CLI names a session by a uuid that several files have: one that was resumed from the
    older format, and the stubs that 0.61.0 leaves. Of stubs, in which nobody has said anything,
    the name is not taken.
    """
    every = [*entries]
    used = Counter(each.name for each in every if each.standing == "session")
    return [
        each
        if each.name == each.session or used[each.name] + (each.standing != "session") <= 1
        else replace(each, name=each.session)
        for each in every
    ]


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return for each name its beginning, `SHORTEST` or longer, that no other name begins with."""
    ordered = sorted(set(names))
    shared = [0, *(_shared(*pair) for pair in pairwise(ordered)), 0][: len(ordered) + 1]
    return {
        name: name[: max(SHORTEST, before + 1, behind + 1)]
        for name, (before, behind) in zip(ordered, pairwise(shared), strict=True)
    }


def _shared(one: str, other: str) -> int:
    """Return how many characters two names begin with together."""
    for number, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return number
    return min(len(one), len(other))
