"""The figures of `report`: what is in a session, and in all sessions of a machine. Pure.

Rule: nothing but data, and every byte is counted once. A line's bytes include its newline, so that
kinds, segments and days each add up to the session's bytes. Text from a session (titles, names of
tools and folders) is kept as it is; whoever shows it makes it printable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from sessrotate import names

if TYPE_CHECKING:
    from sessrotate.clients.kinds import Kind
    from sessrotate.model import Boundary
    from sessrotate.reports.next_steps import NextStep

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
    kind: Kind
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
    have to be free before. `to_tidy` is about how many bytes of the disk `tidy` frees besides: by
    finishing what was interrupted, and by compressing what is archived and plain. `growth` has the
    days in order: exact with `contents`, and otherwise spread evenly over the time of each segment.
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
    to_tidy: int = 0
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

    @property
    def to_tidy(self) -> tuple[SessionReport, ...]:
        """The sessions of which `tidy` frees something besides rotating them."""
        return tuple(session for session in self.sessions if session.to_tidy > 0)
