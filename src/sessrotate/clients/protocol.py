"""What sessrotate asks of a client: its format, its reader, and where its sessions live.

Rule: each format is two modules, and nothing else knows its record types. Every command needs the
`Client`, so it must cost nothing to import; only commands that show what records say load the
`Reader`. The modules themselves are the objects: mypy holds them against their protocols in the
specimens of the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Reversible
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from msgspec import Struct

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread
    from sessrotate.clients.preview import Agent, Sight
    from sessrotate.clients.view import Copied, Told, View
    from sessrotate.model import Boundary, Span
    from sessrotate.parsing import Line, Record


class Format(Struct, frozen=True):
    """A format of a client: the client's name, and the modules that are its two objects."""

    name: str
    client_module: str
    reader_module: str

    def client(self) -> Client:
        """Load and return the format's `Client`."""
        return cast("Client", import_module(self.client_module))

    def reader(self) -> Reader:
        """Load and return the format's `Reader`."""
        return cast("Reader", import_module(self.reader_module))


@cache
def nothing(protocol: type) -> object:
    """Return what answers all questions as the protocol itself does: of what a client lacks."""
    return type(protocol.__name__, (protocol,), {})()


class Client(Protocol):
    """A client's format, as far as cutting and finding its sessions needs it."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """What the client is called in reports, manifests and options: `claude`."""

    @property
    def MARKER(self) -> bytes:  # noqa: N802 - a constant of the module
        """Bytes that every boundary line has; empty where the format knows no boundary."""

    @property
    def NOT_IN_PLACE(self) -> str | None:  # noqa: N802 - a constant of the module
        """Why its sessions are not rotated in place, as a sentence; None where they are."""

    def recognise(self, head: bytes, *, is_whole: bool) -> bool:
        """Tell by the first bytes of a file whether it is a session of this client."""

    def boundary(self, line: Reversible[bytes], span: Span) -> Boundary | bool:
        """Say whether a line that holds `MARKER` is a boundary.

        `line` yields the bytes of `span`, which leaves the newline out, in pieces: from the first
        or, reversed, from the last. Returns the boundary;
        False for a line that is surely none; True for one that is opaque.
        """

    def timestamp(self, line: Iterable[bytes], size: int) -> str | None:
        """Return the time of one record (ISO 8601, as the client wrote it), None if without."""

    def session_of(self, file_name: str) -> str:
        """Return the id of the session whose file has this name, as the client's users know it."""

    def sessions_folder(self) -> Path:
        """Return the folder in which its sessions are looked for, whether it is there or not."""

    def sessions(self, prefix: str = "") -> Iterator[Path]:
        """Yield the session files whose id begins with `prefix`, in sorted order.

        Folders that cannot be read are passed over.
        """

    def copies(self, prefix: str = "") -> Iterator[Path]:
        """Yield the copies of session files that its client does not go on with, in sorted order.

        File managers and synchronizing tools make them, and Gemini CLI itself. They are named like
        the session, and mostly more: `session_of` keeps what is more.
        """


@runtime_checkable
class Telling(Protocol):
    """What a client may have besides: what its `sessions` passes over."""

    def tell_unread(self, unread: Unread) -> None:
        """Tell `unread` of each folder and session file that is there and cannot be read."""


class Reading(Protocol):
    """An open session, as a reader sees it. Its iterators raise as `Session.history` does."""

    @property
    def id(self) -> str:
        """The session's id."""

    @property
    def path(self) -> Path:
        """The live file, or what stands for it."""

    @property
    def beside(self) -> Path:
        """The same, or the file as which it was put away: what its client keeps is beside it."""

    @property
    def newest(self) -> int:
        """The number of the last segment; 0 where there was never a boundary."""

    def segment(self, index: int) -> Iterator[Record]:
        """Yield the records of one segment."""

    def history(self) -> Iterator[Record]:
        """Yield all records of all segments."""

    def bytes_of(self, record: Record) -> Iterator[bytes]:
        """Yield a record's line in pieces, however long it is."""

    def older(self) -> Iterator[Callable[[], Iterator[Record]]]:
        """Yield what holds rows from before the newest segment, the nearest first."""


class Reader(Protocol):
    """What the records of a client say."""

    def records(self, pieces: Iterable[bytes | memoryview], segment: int) -> Iterator[Record]:
        """Yield the records of a segment's body: its lines, for all formats made of lines."""

    def said(
        self, records: Iterable[Record], bytes_of: Callable[[Record], Iterator[bytes]]
    ) -> Iterator[Record]:
        """Yield what people read of these records, in its order: the same, for most formats.

        Where a record repeats what others have, only what is new in it comes, as records of their
        own, and the record itself as one that `is_carried`. `bytes_of` gives all bytes of one
        that is too long to be held.
        """

    def view(self, record: Record) -> View | None:
        """Return what a record says, None where nobody can tell."""

    def key(self, record: Record) -> bytes | None:
        """Return what makes two records copies of one (a uuid), None where only equal bytes do."""

    def conversation(self, session: Reading, *, with_agents: bool = False) -> Iterator[Record]:
        """Yield the records that a resume sends, in the order of the conversation.

        `with_agents`, those of agents that stand among them in the file come too.
        """

    def rewound(self, session: Reading) -> Callable[[Record], bool]:
        """Return what tells whether a record is of a branch that the user went back from.

        It is asked about the session's records and those of `said`. The history is read for it.
        """

    def agents(self, session: Reading) -> list[Agent]:
        """Return the transcripts of the session's agents."""

    def sight(self, head: bytes, tail: bytes, *, is_whole: bool) -> Sight:
        """Return what a file's first and last 64 KiB say; `is_whole`: `head` is all of it."""


@runtime_checkable
class Quick(Protocol):
    """What a reader of lines may have besides: what a line says, without a record or a view of it.

    Its records are the lines, and `said` yields them as they are.
    """

    def line_key(self, line: bytes | memoryview) -> bytes | None:
        """Return the `key` of the record on a line."""

    def gists(self, lines: Iterable[Line]) -> Iterator[Told]:
        """Yield what `view.gist_of` says of each record's view, and its `key`, and its line.

        Of a line that is too long to be held, its beginning tells the kind.
        """


@runtime_checkable
class Copying(Protocol):
    """What a reader may have besides: what stands a second time in records that are no copies."""

    def copied(
        self, is_new: Callable[[bytes], bool], bytes_of: Callable[[Record], Iterator[bytes]]
    ) -> Copied:
        """Return what tells of each record of a session, in order, how many bytes of it are copies.

        `is_new` notes a digest of 16 bytes, and tells whether it is the first of its kind.
        `bytes_of` is as for `said`.
        """


@runtime_checkable
class Wording(Protocol):
    """What a reader may have besides: which of its views say words that their lines do not have."""

    def worded(self, literals: Iterable[bytes]) -> tuple[bytes, ...]:
        """Return bytes of which a line has one if it lacks a literal that its view says.

        Literals are printable ASCII without quotes and backslashes.
        """


@runtime_checkable
class Placing(Protocol):
    """What a reader may have besides: what the client's folders tell of sessions.

    That is the project of a session that does not name its folder, and what lies beside it.
    """

    def folder(self, path: Path, head: bytes, known: Iterable[str]) -> str:
        """Return the folder in which the session at `path` was run, or another name for it.

        `head` is the file's first 64 KiB; `known` are folders in which clients were run.
        """

    def beside(self, paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
        """Return the bytes of what lies beside sessions, and those of the disk, by session file.

        Each file counts once, and sessions with nothing beside are left out.
        """


class Cold(Protocol):
    """A client that reads sessions which are compressed whole: its names for either form.

    What has a body is asked where there is no such client, too.
    """

    @property
    def FORMAT(self) -> Client:  # noqa: N802 - a constant of the module
        """Its format."""
        return cast("Client", import_module("sessrotate.clients.opaque"))

    @property
    def WINDOW(self) -> int:  # noqa: N802 - a constant of the module
        """Log 2 of the largest window of zstd that the client reads."""

    def folders(self) -> tuple[Path, ...]:
        """Return the folders in which, or below which, the client keeps its sessions."""
        return ()

    def is_named_so(self, file_name: str) -> bool:  # noqa: ARG002 - for others
        """Tell whether the client takes a file of this name for a session, in either form."""
        return False

    def is_session(self, path: Path) -> bool:  # noqa: ARG002 - for others
        """Tell whether a path names a session where the client looks for one, in either form."""
        return False

    def is_archived(self, path: Path) -> bool:
        """Tell whether the user has archived a session by the client's own command."""

    def is_readable(self, path: Path) -> bool:
        """Tell whether a compressed session begins as one that can be decompressed, or is empty."""

    def plain(self, path: Path) -> Path:
        """Return the name of the plain form, whichever form `path` names, aside or not."""

    def compressed(self, path: Path) -> Path:
        """Return the name of the compressed form."""

    def form(self, path: Path) -> Path:
        """Return the form that the client takes: the plain one, if that is there."""

    def aside(self, path: Path) -> Path:
        """Return the name that a form has while the other takes its place."""

    def all_names(self, path: Path) -> tuple[Path, ...]:
        """Return all names that files of a session have, drafts left out."""

    def seconds(self) -> Iterator[Path]:
        """Yield what is there of sessions besides the file that their client takes."""
        return iter(())

    def left_behind(self, now: float) -> Iterator[Path]:  # noqa: ARG002 - for others
        """Yield the files that were left beside sessions a day before `now`, or earlier.

        `now` is in seconds since 1970.
        """
        return iter(())

    def unread_by(self, now: float) -> str:  # noqa: ARG002 - for others
        """Say which clients may not find a compressed session; empty if none wrote any lately."""
        return ""

    def is_written_to_blindly(self, now: float) -> bool:
        """Tell whether a client wrote lately that holds no lock while a session is open."""

    def maintenance_lock(self) -> Path:
        """Return what is held (flock) by whoever compresses or migrates sessions."""

    def writer_locks(self, path: Path) -> tuple[Path, Path]:
        """Return what is held by whoever takes a writer's lock, and the lock of a session's."""
