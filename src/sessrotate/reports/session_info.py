"""What the list says of a session; which sessions to list, in which order, by which name. Pure.

Rule: a figure is exact, or None if it was not cheap to know. Nothing is estimated but what a
rotation would gain, by the plan of one.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import names

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.clients.preview import Continues, Standing, Title

SHORTEST: Final = 8
"""Characters of an id to show, if they are enough to tell the session from others."""


class SessionInfo(Struct, frozen=True):
    """What is known of a session without reading all of it.

    Sizes are in bytes. `started` and `ended` are the times of the first and last records, ISO 8601
    as the client wrote them; None where the first and last 64 KiB do not tell.
    """

    id: str
    """What the session's file is called. `open_session` takes it, and its beginning."""
    name: str
    """The id to show: the client's own where it is longer than `id` and no other session has it."""
    client: str
    """`claude`, `codex` or `gemini`."""
    project: str
    """The folder that the client ran in, or the client's name for it."""
    path: Path
    """The live file, also where `is_live` is False. `open_session` takes it."""
    is_live: bool
    """Whether the live file exists. If not, only the archive is left."""
    is_away: bool
    """Whether it was put away: then there is no live file."""
    bytes: int
    """Size of the live file, 0 if it is gone."""
    archived_bytes: int | None
    """Bytes of history in the archive, uncompressed; None if the archive does not say."""
    archived_disk_bytes: int
    """What the archive takes of the disk, in allocated blocks, with what is in the trash."""
    archive_missing: bool
    """Whether the live file is that of a rotated session whose archive is not there."""
    disk_bytes: int
    """What all of it takes of the disk, in allocated blocks: live file, archive, trash, beside."""
    gain_bytes: int | None
    """About how much more of the disk a rotation would leave; None where only a scan tells."""
    waiting_disk_bytes: int
    """What of that is replaced live files, which go when no program writes to them any more."""
    side_bytes: int
    """Agents' transcripts and long tool results, which the client keeps in files beside it."""
    segments: int
    """How many segments are archived."""
    compactions: int | None
    """How often the session was compacted; None where only a scan tells (at least `segments`)."""
    live_tail_bytes: int | None
    """Bytes after the last compaction, None where only a scan tells."""
    modified: float
    """When the live file, or else the archive, last changed: seconds since 1970."""
    last_used: float
    """The time of the last record, or else `modified`: seconds since 1970."""
    is_running: bool
    """Whether a client has the session open."""
    is_restored: bool
    """Whether its owner restored it, so that it is rotated by its name only."""
    standing: Standing
    """`session`, or what it is instead: `empty`, a `warm-up`, or rows of an `agent` only."""
    title: Title
    """What the client calls the session; its `text` is empty if nothing was said."""
    branch: str | None
    """The git branch at the end, empty outside of git, None where that is not known."""
    started: str | None
    ended: str | None
    continues: Continues | None = None
    """The session that this one continues, None where none is known."""

    @property
    def is_there(self) -> bool:
        """Whether anything of the session itself is there, and not only what its agents said."""
        return self.is_live or self.is_away or bool(self.archived_disk_bytes)

    @property
    def is_compressed(self) -> bool:
        """Whether its file is compressed, as its client reads it (Codex)."""
        return self.path.name.endswith(names.CODEC_SUFFIX["zstd"])

    @property
    def reach(self) -> int:
        """The bytes of the live file or, of a session without one, those of its archive's files."""
        return self.bytes if self.is_live else self.archived_disk_bytes


class Wanted(Struct, frozen=True):
    """Which sessions to list; None means any.

    `paths` are the absolute paths that `project` may mean, and those of the folders where a client
    keeps the sessions of these. `least` is in bytes. A session must
    have been last used before `before` and not before `since`, in seconds since 1970.
    """

    client: str | None = None
    project: str | None = None
    paths: frozenset[str] = frozenset()
    least: int = 0
    before: float | None = None
    since: float | None = None
    hidden: bool = False

    def takes(self, entry: SessionInfo) -> bool:
        """Return whether to list a session."""
        return (
            (self.hidden or entry.standing == "session")
            and (self.client is None or entry.client == self.client)
            and (self.project is None or self._is_project(entry))
            and entry.reach >= self.least
            and (self.before is None or entry.last_used < self.before)
            and (self.since is None or entry.last_used >= self.since)
        )

    def _is_project(self, entry: SessionInfo) -> bool:
        folder, project = entry.project, _composed(self.project or "")
        if project in map(_composed, (folder, last_part(folder))):
            return True
        if _composed(folder) in map(_composed, self.paths):
            return True
        # What its client lists there: the project was renamed after a row was written, it may be.
        return str(entry.path.parent) in self.paths


def _composed(text: str) -> str:
    """Return a path with its accents in one form: file systems and keyboards have two."""
    return unicodedata.normalize("NFC", text)


def last_part(folder: str) -> str:
    """Return the name of a folder, whatever system its path is from."""
    return re.split(r"[/\\]", folder.rstrip("/\\"))[-1]


ORDERS: Final[dict[str, Callable[[SessionInfo], tuple[Any, ...]]]] = {
    "size": lambda each: (-each.reach, -(each.archived_bytes or 0)),
    "disk": lambda each: (-each.disk_bytes,),
    "gain": lambda each: (-1 if each.gain_bytes is None else -each.gain_bytes, -each.reach),
    "date": lambda each: (-each.last_used,),
    "name": lambda each: (each.title.text.casefold() or "\uffff",),
    "project": lambda each: (each.project, -each.reach),
    "client": lambda each: (each.client, -each.reach),
}
"""How sessions can be sorted: largest, latest or first in the alphabet first."""


def in_order(entries: Iterable[SessionInfo], by: str = "size") -> list[SessionInfo]:
    """Return sessions in one of the `ORDERS`; by size, one that was put away counts its archive."""
    key = ORDERS[by]
    return sorted(entries, key=lambda each: (*key(each), each.id, each.path))


def unambiguous(entries: Iterable[SessionInfo]) -> list[SessionInfo]:
    """Return the sessions; where several have the same name, each is named by its file's id.

    Several files of Gemini CLI may have the same uuid: a session that was resumed from the older
    format, and the stubs that 0.61.0 leaves. A stub, in which nobody has said anything, leaves the
    name to the session.
    """
    every = [*entries]
    used = Counter(each.name for each in every if each.standing == "session")
    return [
        each
        if each.name == each.id or used[each.name] + (each.standing != "session") <= 1
        else replace(each, name=each.id)
        for each in every
    ]


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return each name's beginning, `SHORTEST` or longer, that no other name begins with."""
    ordered = sorted(set(names))
    shared = [0, *(_shared(*pair) for pair in pairwise(ordered)), 0][: len(ordered) + 1]
    return {
        name: name[: max(SHORTEST, before + 1, behind + 1)]
        for name, (before, behind) in zip(ordered, pairwise(shared), strict=True)
    }


def _shared(one: str, other: str) -> int:
    """Return how many characters two names have in common at the beginning."""
    for number, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return number
    return min(len(one), len(other))
