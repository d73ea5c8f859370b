"""What is in a session, and in all sessions of a machine: the figures of `report`. Pure.

Rule: nothing but data, and every byte is counted once. A line's bytes are those with its newline,
so that kinds, segments and days each sum up to the session's bytes. Text from a session (titles,
names of tools and folders) is held as it is; whoever shows it makes it printable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sessrotate.clients.kinds import Kind
    from sessrotate.model import Boundary

SegmentState = Literal["live", "sealed", "absent"]


@dataclass(frozen=True, slots=True)
class Share:
    """So many lines and their bytes, under one name: a kind, or a tool."""

    name: str
    lines: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Day:
    """How many bytes of history are of a day (`2026-03-01`, UTC); None: nothing says when."""

    day: str | None
    bytes: int


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """One segment: where it lies in the history, in bytes, and what it holds.

    `lines` is None where that would take reading what cannot be read. `boundary` is the compaction
    that opens it. One that is `absent` (pruned, missing, damaged) has a `problem` that says so, and
    is in no figure but its own.
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
        """Where the next one begins."""
        return self.start + self.bytes


@dataclass(frozen=True, slots=True)
class LargeLine:
    """One of the largest lines. `offset` is in the whole history, `within` in its segment."""

    session: str
    segment: int
    offset: int
    within: int
    bytes: int
    kind: Kind
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class Contents:
    """What the lines are, for which all of them were read.

    `kinds` has every kind that there is, `tools` what each tool gave (their sums are those of
    `tool results`), both largest first. Duplicates are copies of lines that the session has
    already; they are in the kinds as well.
    """

    kinds: tuple[Share, ...]
    tools: tuple[Share, ...]
    duplicate_lines: int
    duplicate_bytes: int
    largest: tuple[LargeLine, ...]


@dataclass(frozen=True, slots=True)
class SessionReport:
    """The report of one session; sizes are bytes.

    `live_bytes` is the size of the file that the client reads, None where there is none. `folder`
    is where the client ran, the project; None where no record says. `running`: a client says that
    it runs it. `would_free` is how much smaller a rotation would make the live file, and `kept`
    the sentence that says why it would not (in the words of a refusal), None where it would.
    `growth` are the days in order, exact where `contents` was asked for and else spread evenly
    over the time of each segment.
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

    @property
    def bytes(self) -> int:
        """Bytes of all segments that are there, archived ones as they are uncompressed."""
        return sum(segment.bytes for segment in self.segments if segment.state != "absent")

    @property
    def lines(self) -> int:
        """Lines of all segments that are there."""
        return sum(segment.lines or 0 for segment in self.segments if segment.state != "absent")

    @property
    def archived_bytes(self) -> int:
        """Bytes of the sealed segments that are there."""
        return sum(segment.bytes for segment in self.segments if segment.state == "sealed")

    @property
    def live_tail(self) -> int:
        """Bytes from the newest compaction on."""
        return self.segments[-1].bytes if self.segments else 0

    @property
    def compactions(self) -> int:
        """How often it was compacted."""
        return sum(segment.boundary is not None for segment in self.segments)

    @property
    def first_timestamp(self) -> str | None:
        """The first time that a segment tells."""
        return next(
            (segment.first_timestamp for segment in self.segments if segment.first_timestamp), None
        )

    @property
    def last_timestamp(self) -> str | None:
        """The last time that a segment tells."""
        times = (
            segment.last_timestamp or segment.first_timestamp for segment in reversed(self.segments)
        )
        return next((time for time in times if time), None)


@dataclass(frozen=True, slots=True)
class Total:
    """The sums over the sessions of a client or a project."""

    name: str
    client: str
    sessions: int
    bytes: int
    archived_bytes: int
    would_free: int


@dataclass(frozen=True, slots=True)
class WorthRotating:
    """A session that is worth rotating: what that frees, in bytes, and what does it."""

    session: str
    client: str
    folder: str | None
    title: str
    bytes: int
    would_free: int
    command: str


@dataclass(frozen=True, slots=True)
class UnreadSession:
    """A session that could not be read, and why, as a sentence."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class MachineReport:
    """The report of all sessions, largest first everywhere but in `growth`.

    `contents` are the sums over all sessions, None where kinds were not asked for; duplicates are
    those within one session, copies of another session's lines (a resumed clone) are none.
    """

    sessions: tuple[SessionReport, ...]
    clients: tuple[Total, ...]
    projects: tuple[Total, ...]
    growth: tuple[Day, ...]
    worth: tuple[WorthRotating, ...]
    unread: tuple[UnreadSession, ...]
    contents: Contents | None = None

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
        """Bytes that rotating all that can be would take out of the clients' folders."""
        return sum(session.would_free for session in self.sessions)
