"""A session as a library: its records, live or all of them, wherever they are by now.

Rule: only reads, streams, and changes nothing; what comes out of `history()` is, line by line,
what `stitch` gives. A segment is opened when its records are asked for, and not before.

    with open_session("5e55107a") as session:
        for record in session.history():
            print(record.segment, record.offset, record.size)
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from sessrotate import clients, find
from sessrotate.archive.state import State
from sessrotate.clients.claude import client as claude
from sessrotate.errors import DamagedError, StorageError, WrongUsageError
from sessrotate.model import Span
from sessrotate.parsing.records import Record, records
from sessrotate.reading import holders, open_segments
from sessrotate.reading.foreign_set import ForeignSet
from sessrotate.reading.holders import WholeFile
from sessrotate.segments.files import SegmentSet
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sessrotate.clients.preview import Agent, Title
    from sessrotate.clients.protocol import Client, Reader
    from sessrotate.clients.view import View
    from sessrotate.model import Boundary
    from sessrotate.reading.holders import Holder
    from sessrotate.reading.open_segments import OpenSegment, SegmentInfo

    OnGap = Callable[[str], None]
    """Is called with a sentence for each segment that is passed over."""


class Session:
    """A session that is open for reading; `open_session` makes it.

    `client` is the name of the client that wrote it, and `reader` what its records are read with.
    `carried` are the lines that a rotated live file begins with, copies of archived ones.
    """

    def __init__(
        self,
        client: Client,
        identity: str,
        path: Path,
        segments: Sequence[OpenSegment],
        *,
        carried: Callable[[], Iterator[bytes]] | None = None,
        on_gap: OnGap | None = None,
    ) -> None:
        self.id = identity
        self.path = path
        self.client = client.NAME
        self.reader: Reader = clients.reader(client)
        self._bodies = segments
        self._carried = carried
        self._on_gap = on_gap
        self._told: set[str] = set()  # a segment may be read more than once

    @property
    def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments, in order; the newest is the live tail."""
        return tuple(entry.info for entry in self._bodies)

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
        """The compactions that open segments, where what holds them says so."""
        return tuple(info.boundary for info in self.segments if info.boundary is not None)

    def history(self) -> Iterator[Record]:
        """Yield every record of all segments and of the live file, in order.

        Raises DamagedError, with a sentence that names the segment, when one is missing or not
        what it was; where gaps are allowed, they are told and passed over.
        """
        for entry in self._bodies:
            yield from self.segment(entry.info.index)

    def segment(self, index: int) -> Iterator[Record]:
        """Yield the records of one segment, without reading others. Raises as `history` does.

        Raises WrongUsageError if there is no such segment.
        """
        entry = self._body(index)
        try:
            yield from self.reader.records(_read(entry), index)
        except (DamagedError, StorageError) as error:
            if self._on_gap is None:
                raise
            if str(error) not in self._told:
                self._told.add(str(error))
                self._on_gap(str(error))

    @property
    def newest(self) -> int:
        """The number of the last segment; 0 where there was never a boundary."""
        return self._bodies[-1].info.index

    def pieces(self, index: int) -> Iterator[bytes | memoryview]:
        """Yield the bytes of one segment, each piece valid until the next. Raises as `history`.

        Raises WrongUsageError if there is no such segment.
        """
        return _read(self._body(index))

    def problem(self, index: int) -> str | None:
        """Return why a segment cannot be read, as far as is known without trying."""
        return self._body(index).problem

    def live(self) -> Iterator[Record]:
        """Yield what a resume would load, in the order of the file. Raises as `history` does."""
        yield from self.reader.live(self)

    def conversation(self) -> Iterator[Record]:
        """Yield the records that a resume sends, in the order of the conversation.

        The live records are read several times. Raises as `history` does.
        """
        yield from self.reader.conversation(self)

    def said(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield what people read of these records of the session.

        Those of most clients as they are; of formats that repeat what was said, what is new in
        each (`Reader.said`), and a record that repeats as one that `is_carried`.
        """
        yield from self.reader.said(records, self.bytes_of)

    def view(self, record: Record) -> View | None:
        """Return what a record says, None where nobody can tell: it is no JSON, or far too long."""
        return self.reader.view(record)

    def key(self, record: Record) -> bytes | None:
        """Return what makes two records copies of one, None where only equal bytes do."""
        return self.reader.key(record)

    def title(self) -> Title:
        """Return what the session is called, as its client shows it. Raises as `history` does.

        Looked for in the live file with what it carries, and in the session's first 64 KiB; all
        of a file that was never split is read.
        """
        return self.reader.title(self)

    def agents(self) -> list[Agent]:
        """Return the transcripts of the session's agents. Raises as `history` does.

        The history is read once where that takes to tell which tool call started which agent.
        """
        if self.path.is_dir():
            return []
        return self.reader.agents(self)

    def records_of(self, agent: Agent) -> Iterator[Record]:
        """Yield what people read of an agent.

        Raises StorageError and others, as opening a file does.
        """
        with Source(agent.path) as source:

            def bytes_of(record: Record) -> Iterator[bytes]:
                return iter(source.pieces(Span(record.offset, record.offset + record.size)))

            pieces = source.pieces(Span(0, source.size()))
            yield from self.reader.said(self.reader.records(pieces, 0), bytes_of)

    def side_bytes(self) -> int:
        """Return how many bytes the client keeps beside the session: long results of tools."""
        return self.reader.side_bytes(self)

    def find(self, uuid: str) -> Record | None:
        """Return the last record with this uuid (the client's key), None if there is none.

        Segments are looked through from the newest to the oldest, until it is found.
        """
        wanted = uuid.encode("utf-8", "surrogatepass")
        for entry in reversed(self._bodies):
            match = None
            for record in self.segment(entry.info.index):
                if wanted in record.line and self.key(record) == wanted:
                    match = record
            if match is not None:
                return match
        return None

    def bytes_of(self, record: Record) -> Iterator[bytes]:
        """Yield a record's line in pieces, without its newline, however long it is."""
        if record.is_whole:
            yield record.line
            return
        skip, left = record.offset, record.size
        for piece in _read(self._body(record.segment)):
            data = bytes(piece[skip : skip + left])
            skip, left = max(0, skip - len(piece)), left - len(data)
            yield data
            if not left:
                return

    def _body(self, index: int) -> OpenSegment:
        for entry in self._bodies:
            if entry.info.index == index:
                return entry
        raise WrongUsageError(
            f"There is no segment {index}: there are {len(self._bodies)}, from 0."
        )

    def titled(self, edge: int) -> Iterator[Record]:
        """Yield the records that may give the session a title, in their order.

        They are the live ones, what the live file carries, and the session's first `edge` bytes.
        Raises as `history` does.
        """
        newest = self.newest
        for info in self.segments:
            if info.standing == "live" or info.index == newest:
                if info.index == newest and self._carried is not None:
                    yield from records(self._carried(), newest, is_carried=True)
                yield from self.segment(info.index)
            elif not info.index:
                early = takewhile(lambda record: record.offset < edge, self.segment(0))
                yield from early

    def older(self) -> Iterator[Callable[[], Iterator[Record]]]:
        """Yield what holds rows from before the newest segment, the nearest first."""
        newest = self.newest
        older = [info for info in reversed(self.segments) if info.index < newest]
        for info in older:
            if info.standing == "live":
                yield partial(self.segment, info.index)
        if (carried := self._carried) is not None:
            yield lambda: records(carried(), newest, is_carried=True)
        for info in older:
            if info.standing == "sealed":
                yield partial(self.segment, info.index)


def _read(entry: OpenSegment) -> Iterator[bytes | memoryview]:
    if entry.problem is not None:
        raise DamagedError(entry.problem)
    return entry.pieces()


@contextmanager
def open_session(session: str | Path, *, on_gap: OnGap | None = None) -> Iterator[Session]:
    """Open a session for reading: a path, an id, or the beginning of one.

    A path is that of a session file, of a folder of segments, of a segment in one, or of an
    archive. `on_gap` is told of each segment that is missing or damaged, which is then passed
    over; without it that is an error. Raises WrongUsageError if there is no such session,
    NotASessionError if it is none, DamagedError if its archive cannot be read at all,
    StorageError as the system reports.
    """
    path = session if isinstance(session, Path) else find.path_of(session)
    with holders.opened(path) as holder:
        yield _session(path, holder, on_gap)


def _session(path: Path, holder: Holder, on_gap: OnGap | None) -> Session:
    match holder:
        case State(place=where, live=live, prefix=prefix):
            carried = None if live is None else lambda: iter(live.pieces(Span(0, prefix)))
            segments = open_segments.of_state(holder)
            return Session(
                claude, where.session, where.live, segments, carried=carried, on_gap=on_gap
            )
        case ForeignSet(session=identity, client=client, segments=found):
            for problem in holder.problems:
                if problem.index is None:
                    if on_gap is None:
                        raise DamagedError(problem.detail)
                    on_gap(problem.detail)
            return Session(client, identity, path, found, on_gap=on_gap)
        case SegmentSet(session=identity):
            client = open_segments.client_of(holder)
            segments = open_segments.of_set(holder, client)
            return Session(client, identity, path, segments, on_gap=on_gap)
        case WholeFile(source=source, client=client):
            identity = client.session_of(path.name)
            segments = open_segments.of_file(source, client)
            return Session(client, identity, path, segments, on_gap=on_gap)
