"""What sessrotate asks of a client whose sessions are rotated where they live.

Promise: whatever changes a session in place, or looks at one that was, asks its client here, and
names none. Of a part that a client does not have, the protocol's own answers are true.

Rule: each part is loaded when it is asked for: most commands need no more than the files.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, cast

from msgspec import Struct

from sessrotate.clients.preview import Sight
from sessrotate.clients.protocol import Client, nothing
from sessrotate.errors import printable
from sessrotate.model import Boundary, Scan, Span
from sessrotate.units import DAY, days

if TYPE_CHECKING:
    from sessrotate.system.source import Source

    Near = dict[Path, list[str]]
    """The names of agents' transcripts in folders of live files."""

FileKind = Literal["session", "agent", "copy"]
"""What a file in a project's folder is."""


class InPlace(Struct, frozen=True):
    """A client whose sessions are rotated in place, by what its parts answer for.

    `parts` are the modules that do, by the properties' names. One that is left out is the
    protocol's own answers: nothing.
    """

    parts: dict[str, str]

    @property
    def files(self) -> Files:
        """Its format; where its live files are, and which file is one."""
        return cast("Files", self._part("files", Files))

    @property
    def edges(self) -> Edges:
        """What the first and last bytes of a session say."""
        return cast("Edges", self._part("edges", Edges))

    @property
    def resume(self) -> Resume:
        """Where a session can be cut, and what a resume needs of what stands before."""
        return cast("Resume", self._part("resume", Resume))

    @property
    def beside(self) -> Beside:
        """What the client keeps beside a live file."""
        return cast("Beside", self._part("beside", Beside))

    @property
    def trims(self) -> Trims:
        """How the client makes a live file smaller by itself."""
        return cast("Trims", self._part("trims", Trims))

    @property
    def cleanup(self) -> CleanUp:
        """Which sessions the client deletes by itself."""
        return cast("CleanUp", self._part("cleanup", CleanUp))

    @property
    def database(self) -> Database:
        """What the client's own database says of live files."""
        return cast("Database", self._part("database", Database))

    @property
    def calls(self) -> Calls:
        """How the client calls us."""
        return cast("Calls", self._part("calls", Calls))

    def _part(self, name: str, protocol: type) -> object:
        module = self.parts.get(name)
        return nothing(protocol) if module is None else import_module(module)


# ── live files ───────────────────────────────────────────────────────────────────────────────


class Files(Client, Protocol):
    """Where live files are. Folders are named as the client's own variables say."""

    def projects_folder(self) -> Path:
        """Return the folder that holds one folder for each project."""

    def config_folder(self) -> Path:
        """Return the client's own folder, absolute."""

    def usual_folder(self) -> Path:
        """Return the client's own folder where nobody names another."""

    def other_folders(self) -> list[Path]:
        """Return the folders of the home that a client seems to have as well, in order."""
        return []

    def settings_file(self) -> Path:
        """Return where the client keeps its user's settings."""

    def project_name(self, folder: Path) -> str:
        """Return what the client calls the project of a folder that it runs in."""

    def registries(self, beside: Path) -> tuple[Path, ...]:  # noqa: ARG002 - the protocol's
        """Return the folders in which a running client may have registered.

        `beside` is the folder that holds the one of projects.
        """
        return ()

    def named(self, file_name: str) -> FileKind | None:
        """Tell by its name what a file in a project's folder is; None of no session file."""

    def may_have_row(self, pieces: Iterable[bytes]) -> bool:
        """Tell whether a row is anywhere in a file, or may be in a line over 8 MiB."""
        return any(self.recognise(piece, is_whole=False) for piece in pieces)


# ── edges ────────────────────────────────────────────────────────────────────────────────────


class Edges(Protocol):
    """What the first and last 64 KiB of a session say."""

    def of_live(
        self, session: str, head: bytes, tail: bytes, older: bytes, *, is_whole: bool
    ) -> Sight:
        """Return what is in sight of a session by its live file's edges.

        Its archive begins `older`, empty where it was never rotated. `is_whole`: `head` is all of
        the file.
        """

    def brief(
        self, session: str, head: bytes, tail: bytes, older: bytes, *, is_whole: bool
    ) -> Sight:
        """Return of the same only whether somebody used the session, and when."""

    def uuids(self, head: bytes, tail: bytes) -> frozenset[str]:
        """Return what tells the rows in sight from all others."""

    def follows(self, head: bytes) -> str | None:
        """Return which row the first one in sight that says so follows, None if none does."""


# ── what a resume needs ──────────────────────────────────────────────────────────────────────


class Carried(Struct, frozen=True):
    """A line from before the cut that goes along, without its newline, and why.

    `segment` is the number of the sealed segment that it stands in, None for the live file.
    `reason` says what the line is, as people read it.
    """

    span: Span
    reason: str
    segment: int | None = None


NEXT_COMPACTION: Final = "Wait for the session's next compaction: it usually resolves this."
"""What helps where a session is refused for what its client wrote at or since the last one."""


class LivePlan(Struct, frozen=True):
    """The live tail of a session: everything from `cut` on, and what goes before it.

    With `refusals` it must not be carried out: a resume might not be the same. Each says why, then
    what helps, which is not always to wait. `hidden` is the number of the sealed segment that may
    have a row which is needed, and cannot be looked into. `misleads` is whether the first prompt
    does not stay, since clients would go on from it.
    """

    cut: int
    carried: tuple[Carried, ...]
    refusals: tuple[str, ...]
    hidden: int | None = None
    misleads: bool = False

    @property
    def reaches_back(self) -> bool:
        """Whether rows are needed that are in the archive alone."""
        return any(entry.segment is not None for entry in self.carried)


class Archived(Struct, frozen=True):
    """What is archived of a session, and would be in the file if it had not been rotated.

    `size` is its bytes. `segments` gives the sealed segments and their numbers, the newest first;
    None for one that cannot be looked into; each is open until the next is asked for. `says` tells
    whether one of its compactions says what it preserved, and `plain` gives the number of the last
    segment that begins with one that does not; 0 if none does.
    """

    size: int = 0
    segments: Callable[[], Iterator[tuple[int, Source | None]]] = lambda: iter(())
    says: Callable[[], bool] = lambda: False
    plain: Callable[[], int] = lambda: 0


NOTHING: Final = Archived()


class Resume(Protocol):
    """Where a session can be cut, and what a resume needs of what stands before."""

    def of_conversation(self, scanned: Scan, start: int) -> Scan:
        """Leave out compactions where the conversation has none to cut at behind `start`."""

    def plan(
        self,
        source: Source,
        boundaries: Sequence[int],
        end: int,
        archived: Archived = NOTHING,
        *,
        prefix: int = 0,
        judged: int = 0,
        progress: Callable[[int], None] = lambda _done: None,
    ) -> LivePlan:
        """Return what a resume needs of the session `source` up to `end`, cut at its last boundary.

        `boundaries` is where the lines of its compactions begin, in bytes; the first `prefix` bytes
        were put there by a rotation. The rows before offset `judged` were there at the last one.
        `progress` is told how many bytes are done.
        """

    def says_at(self, source: Source, line: Span) -> bool:
        """Tell whether the compaction on a line says what it preserved, however long it is."""

    def dangles(self, source: Source, prefix: int, judged: int) -> bool:
        """Tell whether a row from offset `judged` on continues one that is nowhere in the file.

        The first `prefix` bytes were put there by a rotation. Never wrong where it says no.
        """

    def last_row(self, source: Source, end: int) -> Span | None:
        """Return the last row of the conversation before an offset, without its newline.

        That is what clients go on from; None where there is none.
        """

    def ends_in_a_row(self, source: Source) -> bool:
        """Tell whether a file's last line is a row of a conversation, whole."""


# ── what is beside ───────────────────────────────────────────────────────────────────────────


class Beside(Protocol):
    """What the client keeps beside a live file: transcripts of agents, results of tools."""

    def is_agent(self, name: str) -> bool:  # noqa: ARG002 - the protocol's
        """Tell whether a file has the name of an agent's transcript."""
        return False

    def transcripts(self, live: Path, session: str) -> list[Path]:  # noqa: ARG002 - as above
        """Return the transcripts in the folder of a session's name, in order."""
        return []

    def away(self, live: Path, session: str) -> list[Path]:  # noqa: ARG002 - as above
        """Return all transcripts of a session that was put away as this file, in order."""
        return []

    def alone(self, prefix: str = "") -> Iterator[tuple[Path, Path]]:  # noqa: ARG002 - as above
        """Yield where a session's own file would be, and a transcript, of sessions without one.

        Only of those whose id begins so.
        """
        return iter(())

    def owners(self, head: bytes) -> set[str]:  # noqa: ARG002 - as above
        """Return the sessions that the first rows of an agent's transcript name."""
        return set()

    def beside(self, live: Path, session: str, near: Near | None = None) -> list[str]:  # noqa: ARG002
        """Return the names of what is surely the session's beside its live file, the folder first.

        Whoever asks for many keeps in `near` what is there. Raises OSError if the folder cannot be
        read.
        """
        return []


# ── what the client does by itself ───────────────────────────────────────────────────────────


class Trims(Protocol):
    """How the client makes a live file smaller by itself, and what it keeps of that."""

    def replaced(self, live: Path, session: str) -> list[Path]:  # noqa: ARG002 - the protocol's
        """Return the files that were kept when a client trimmed this session, the oldest first.

        A second name of the live file itself is none yet.
        """
        return []

    def may_be_trimmed(self, live: Path, session: str) -> bool:  # noqa: ARG002 - as above
        """Tell whether anything is kept of this session, be it only a name for the next trim."""
        return False

    def names_of(self, live: Path, session: str, status: os.stat_result) -> list[Path]:  # noqa: ARG002
        """Return which of the names for kept files the file with this status has."""
        return []

    def new_name(self, live: Path, session: str, at_ns: int | None = None) -> Path:
        """Return a name under which this live file is to be kept, and that nothing has.

        `at_ns`, in nanoseconds since 1970, is how old the file is where it is not the live file any
        more. Only asked where a client may trim the session.
        """

    def is_of_settings(self, line: bytes) -> bool:  # noqa: ARG002 - as above
        """Tell whether a line is a setting: clients write equal ones again and again."""
        return False

    def is_superseded(self, line: bytes) -> bool:  # noqa: ARG002 - as above
        """Tell whether a line is of a kind of which only the last one stays."""
        return False


class Database(Protocol):
    """A database of the client's own that says what its live files are (Claude Code has none).

    It follows while nobody can write to the new file, and again before the exchange is over.
    """

    def obstacle(self, live: Path) -> str | None:  # noqa: ARG002 - the protocol's
        """Return why it cannot be changed now, and what to do about that, None if it can."""
        return None

    def follow(self, live: Path) -> None:
        """Have it say what the live file is now, if there is one; twice is the same as once.

        It must not open the live file: whoever does waits until this has returned. Raises
        SessrotateError or OSError if it cannot follow: a later run calls again.
        """


class Cleanup(Struct, frozen=True):
    """What the client does to old sessions of its own accord.

    `period` is after how many seconds without a change it deletes one, infinite if it never does;
    `paused` says why new versions do not. `ceiling` is the same for sessions that were begun in the
    desktop app, None where it spares them. `origin` is the file that sets the period, None for the
    client's default, and `advice` how a person makes it long enough. `project` is the folder of the
    project whose own settings say it: a client that is started there deletes the sessions of all.
    """

    period: float
    paused: str = ""
    ceiling: float | None = None
    origin: Path | None = None
    project: Path | None = None
    advice: str = ""

    def deletes_at(self, status: os.stat_result, *, is_desktop: bool) -> float | None:
        """Return when it deletes a session with this live file, in seconds since 1970.

        None if it never does. All versions go by the time of the file, whatever its records say.
        """
        period = self.ceiling if is_desktop else self.period
        return None if period is None or math.isinf(period) else status.st_mtime + period

    def saved_at(self, status: os.stat_result, margin: float, *, is_desktop: bool) -> float | None:
        """Return when a session with this live file is put away, `margin` seconds before that.

        In seconds since 1970; None if the client never deletes it.
        """
        period = self.ceiling if is_desktop else self.period
        at = self.deletes_at(status, is_desktop=is_desktop)
        if period is None or at is None:
            return None
        return status.st_mtime + self.saved_after(margin, period)

    def saved_after(self, margin: float, period: float | None = None) -> float:
        """Return after how many seconds without a change a session is put away.

        That is `margin` seconds before the client deletes it, which it does after `period` seconds.
        A third of the period at most, so that a short period does not put everything away; and
        never within a day of its last use.
        """
        period = self.period if period is None else period
        return max(period - min(margin, period / 3), DAY)

    def leaves_time(self, margin: float, every: float = DAY) -> bool:
        """Tell whether a run comes in time to save every session, one each `every` seconds."""
        is_endless = math.isinf(self.period)
        return is_endless or self.period - self.saved_after(margin) >= every

    def saving(self, margin: float, every: float = DAY, older_than: float | None = None) -> str:
        """Say which sessions are put away `margin` seconds before the client deletes them.

        Those unused for `older_than` seconds are in any case. A run comes each `every` seconds.
        Where that may be too late, it says what to change.
        """
        where = "its default" if self.origin is None else printable(str(self.origin), 1000)
        if math.isinf(self.period):
            return f"Claude Code deletes no sessions now: {self.paused} ({where})."
        after = self.saved_after(margin)
        said = f"Claude Code deletes sessions unused for {days(self.period)} ({where})."
        if self.leaves_time(margin, every):
            if older_than is not None:
                after = min(after, max(older_than, DAY))
            return (
                f"{said} The nightly run puts a session away, compressed, once it is unused for "
                f"{days(after)}: it leaves the client's list, and `sessrotate restore SESSION` "
                "brings it back."
            )
        late = (
            f"{said} A run every {days(every)} puts away sessions unused for {days(after)}, "
            "and cannot save all of them in time."
        )
        if every > DAY:
            return f"{late} Start it every night: `sessrotate schedule install --every daily`."
        if self.period / 3 >= every:
            return f"{late} Raise `before_cleanup` in the settings of `run`, to 3d for example."
        return f"{late} Raise the period to 3 days or more, for example with {self.advice}."


NEVER: Final = Cleanup(math.inf, "it has no clean-up")
"""What a client does that never deletes a session."""


class CleanUp(Protocol):
    """Which sessions the client deletes by itself."""

    def in_force(self) -> Cleanup:
        """Return what the client's clean-up does on this machine."""
        return NEVER

    def doomed(
        self,
        rule: Cleanup,  # noqa: ARG002 - the protocol's
        within: float,  # noqa: ARG002 - as above
        now: float,  # noqa: ARG002 - as above
        live: Iterable[Path] | None = None,  # noqa: ARG002 - as above
    ) -> list[str]:
        """Return the ids of the sessions that the client deletes within so many seconds from `now`.

        `now` is in seconds since 1970, and `live` are the files of all, if somebody knows them.
        """
        return []

    def is_desktop(self, path: Path) -> bool:  # noqa: ARG002 - as above
        """Tell whether a session counts as one of the desktop app."""
        return False


# ── how it calls us ──────────────────────────────────────────────────────────────────────────


class Compacted(Struct, frozen=True):
    """What a compaction on the disk says of those to come.

    `is_repeated_if_rotated`: the client writes all archived rows again at each further one.
    """

    is_repeated_if_rotated: bool = False


class Calls(Protocol):
    """How the client calls us when it compacts a session."""

    def silenced(self) -> tuple[Path, str] | None:
        """Return what keeps the client from calling our hook: a file, and its setting."""
        return None

    def compacted(self, line: bytes, boundary: Boundary) -> Compacted:  # noqa: ARG002 - the protocol's
        """Return what the line of a boundary says of its compaction."""
        return Compacted()

    def is_summary(self, line: bytes) -> bool:  # noqa: ARG002 - as above
        """Tell whether a line is the summary that ends the writing of a compaction."""
        return True
