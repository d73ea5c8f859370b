"""All sessions of the machine, and what is in one: the figures of `list` and `report`.

Promise: every byte is counted once. In come the clients' folders; out come the values here. May
import `reading` and below, and of `in_place` only the plan of a rotation.

Rule: only reads, and only as much of a file as the figure needs. A line's bytes include its
newline, so that kinds, segments and days each add up to the session's bytes. Text from a session
(titles, names of tools and folders) is kept as it is; whoever shows it makes it printable. A figure
of the list is exact, or None if it was not cheap to know. Nothing is estimated but what a rotation
would gain, by the plan of one.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import names

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.clients.preview import Continues, Standing, Title
    from sessrotate.clients.view import LineKind
    from sessrotate.model import Boundary


SegmentState = Literal["live", "sealed", "absent"]


class Share(Struct, frozen=True):
    """How many lines and bytes are of a kind, or of a tool."""

    name: str
    lines: int
    bytes: int


class Day(Struct, frozen=True):
    """How many bytes were written on a day (`2026-03-01`, UTC), or None if nothing says when."""

    day: str | None
    bytes: int


class SegmentRow(Struct, frozen=True):
    """One segment: where it lies in the history, in bytes, and what it holds.

    `lines` is None if the segment cannot be read. `boundary` is the compaction that opens it. An
    `absent` segment (pruned, missing or damaged) has a `problem` that says why, and is left out of
    all sums.
    """

    index: int
    start: int
    bytes: int
    lines: int | None
    boundary: Boundary | None
    first_timestamp: str | None
    last_timestamp: str | None
    state: SegmentState
    problem: str | None = None

    @property
    def end(self) -> int:
        """Where the next segment begins."""
        return self.start + self.bytes


class LargeLine(Struct, frozen=True):
    """One of the largest lines. `offset` is in the whole history, `within` in its segment."""

    session: str
    segment: int
    offset: int
    within: int
    bytes: int
    kind: LineKind
    tool: str | None = None


class Contents(Struct, frozen=True):
    """What the lines are; all of them were read for it.

    `kinds` has every kind that occurs, and `tools` the results of each tool (which add up to the
    kind `tool results`), both largest first. `copies` has what stands a second time in the same
    session, by what it is (`kinds.Copy`), with the lines that hold it; `copied_lines` counts each
    of these lines once. Copies count in the kinds as well.
    """

    kinds: tuple[Share, ...]
    tools: tuple[Share, ...]
    copies: tuple[Share, ...]
    copied_lines: int
    largest: tuple[LargeLine, ...]

    @property
    def copied(self) -> int:
        """Bytes that are copies; all others are unique."""
        return sum(share.bytes for share in self.copies)


class SessionReport(Struct, frozen=True):
    """The report of one session; sizes are bytes.

    `live_bytes` is the size of the file that the client reads, None if there is none. `folder` is
    the project, where the client ran; None if no record says. `is_running`: a client says that it
    is running the session, `is_restored` that its owner brought it back, so that it is rotated by
    its name only. `would_free` is about how many bytes of the disk a rotation would free
    (of a file outside of its client's folder, what stands before the last compaction), and `kept`
    the sentence that says why it would not, None if it would. `room_missing` is how many bytes more
    have to be free before. `growth` has the days in order: exact with `contents`, and otherwise
    spread evenly over the time of each segment.
    `disk_bytes` are what all of it takes of the disk, None where that was not asked; `deletes_at`
    is when its client will delete it if nobody uses it, in seconds since 1970, None for never.
    Commands name it `by` its path where its id does not do, else empty.
    """

    id: str
    client: str
    path: str
    folder: str | None
    title: str
    is_running: bool
    live_bytes: int | None
    segments: tuple[SegmentRow, ...]
    would_free: int
    command: str | None
    kept: str | None
    growth: tuple[Day, ...]
    contents: Contents | None = None
    room_missing: int = 0
    disk_bytes: int | None = None
    deletes_at: float | None = None
    by: str = ""
    is_restored: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of all segments that are present; archived ones count uncompressed."""
        return sum(segment.bytes for segment in self.segments if segment.state != "absent")

    @property
    def lines(self) -> int:
        """Lines of all segments that are present."""
        return sum(segment.lines or 0 for segment in self.segments if segment.state != "absent")

    @property
    def compressed_bytes(self) -> int:
        """Bytes of the live file, if its client keeps the session compressed (Codex), else 0."""
        is_so = self.path.endswith(names.CODEC_SUFFIX["zstd"])
        return self.live_bytes or 0 if is_so else 0

    @property
    def archived_bytes(self) -> int:
        """Bytes of history in the archive: its segments that are present; all of one put away."""
        return sum(segment.bytes for segment in self.segments if segment.state == "sealed")

    @property
    def live_tail(self) -> int:
        """Bytes from the newest compaction on."""
        return self.segments[-1].bytes if self.segments else 0

    @property
    def compactions(self) -> int:
        """How often the session was compacted."""
        return sum(segment.boundary is not None for segment in self.segments)

    @property
    def first_timestamp(self) -> str | None:
        """The first time in any segment."""
        return next(
            (segment.first_timestamp for segment in self.segments if segment.first_timestamp), None
        )

    @property
    def last_timestamp(self) -> str | None:
        """The last time in any segment."""
        times = (
            segment.last_timestamp or segment.first_timestamp for segment in reversed(self.segments)
        )
        return next((time for time in times if time), None)


class Total(Struct, frozen=True):
    """The sums over the sessions of a client or a project."""

    name: str
    client: str
    sessions: int
    bytes: int
    archived_bytes: int
    would_free: int


class UnreadSession(Struct, frozen=True):
    """A session that could not be read, and why, as a sentence."""

    path: str
    reason: str


class NextStep(Struct, frozen=True):
    """A step: which client's sessions, how many and which, and about how many bytes it frees.

    `is_most`: it frees that much at most. `command` is empty where sessrotate can do nothing.
    """

    client: str
    what: str
    sessions: int
    bytes: int
    command: str
    is_most: bool = False


class MachineReport(Struct, frozen=True):
    """The report of all sessions, largest first everywhere but in `growth` and `worth`.

    `worth` are the sessions that are worth rotating, those first where it frees most.
    `contents` are the sums over all sessions, None without kinds. Copies are those within a
    session, and the lines that a fork says it took over; those of a resumed clone are not known.
    `trash_bytes` is what every trash takes of the disk: pruned segments, and archives of restored
    sessions. `disk_bytes` is what live files, archives, trash and what lies beside sessions take of
    it, as `list` says, and `side_bytes` how many bytes of files lie beside. `next_steps` are what
    else than rotating would free some.
    """

    sessions: tuple[SessionReport, ...]
    clients: tuple[Total, ...]
    projects: tuple[Total, ...]
    growth: tuple[Day, ...]
    worth: tuple[SessionReport, ...]
    unread: tuple[UnreadSession, ...]
    contents: Contents | None = None
    trash_bytes: int = 0
    disk_bytes: int = 0
    side_bytes: int = 0
    next_steps: tuple[NextStep, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of all sessions."""
        return sum(session.bytes for session in self.sessions)

    @property
    def lines(self) -> int:
        """Lines of all sessions."""
        return sum(session.lines for session in self.sessions)

    @property
    def archived_bytes(self) -> int:
        """Bytes that are in archives."""
        return sum(session.archived_bytes for session in self.sessions)

    @property
    def would_free(self) -> int:
        """About how many bytes of the disk rotating every session would free."""
        return sum(session.would_free for session in self.sessions)


# ── what the list says ────────────────────────────────────────────────────────────────────────────

SHORTEST: Final = 8
"""Characters of an id to show, if they are enough to tell the session from others."""


class SessionInfo(Struct, frozen=True):
    """What is known about a session without reading all of it.

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
    """How many segments are archived, pruned ones included."""
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
