"""An open session: its records, live or all of them, wherever they are kept.

Promise: what comes out of `history()` is, line by line, what `stitch` gives. The session is
streamed; memory does not grow with it.

Rule: only reads. A segment's file is opened when its records are asked for, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sessrotate import clients, find, names
from sessrotate.archive import away_file
from sessrotate.clients.preview import EDGE, Agent, Sight, Title, edges_of
from sessrotate.clients.protocol import Reader
from sessrotate.clients.view import View
from sessrotate.errors import DamagedError, StorageError, WrongUsageError
from sessrotate.model import Boundary, Span
from sessrotate.parsing import Record, records, split
from sessrotate.reading import holders
from sessrotate.reading.pieces import Holder, OpenSegment, SegmentInfo

if TYPE_CHECKING:
    from sessrotate.parsing import Line
    from sessrotate.reading.pieces import OnGap

T = TypeVar("T")


class Session:
    """A session that is open for reading; `open_session` returns it.

    If a segment is missing or has changed, the methods that yield records raise DamagedError with a
    sentence that names it; with `on_gap` (see `open_session`), the session reports such a segment
    and skips it. If the system reports an error, they raise StorageError. Records are in the order
    in which the client wrote them, unless a method says otherwise.
    """

    id: str
    """The session's id: what its file is called."""
    path: Path
    """The live file, or the folder or file that was opened instead."""
    client: str
    """The client that wrote the session: `claude`, `codex` or `gemini`."""
    reader: Reader
    """How this client's records are read; for this package's own use."""
    cuts: Sequence[str]
    """A sentence for each segment of which the client cut out most of what it had written."""

    def __init__(self, path: Path, holder: Holder, on_gap: OnGap | None = None) -> None:
        """`holder` has the session that somebody meant by a path. Raises as its `segments` does."""
        found, client = holder.state, holder.client
        name = names.uncompressed(path.parts)
        self.id = client.session_of(name) if holder.session is None else holder.session
        self.path = path if found is None else found.place.live
        self.beside = self.path if found is None else away_file.away(found.place) or self.path
        self.client = client.NAME
        self.reader = clients.reader(client)
        self.cuts = [each.detail for each in holder.problems if each.kind == "cut"]
        self._segments = holder.segments()
        self._found = found
        self._on_gap = on_gap
        self._reported: set[str] = set()  # a segment may be read more than once

    # ── what there is ────────────────────────────────────────────────────────────────────────

    @property
    def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments, the oldest first; the last one is the live tail."""
        return tuple(segment.info for segment in self._segments)

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
        """The compactions that open segments, as far as they are known without reading."""
        return tuple(info.boundary for info in self.segments if info.boundary is not None)

    @property
    def newest(self) -> int:
        """The number of the last segment; 0 if the session was never compacted."""
        return self._segments[-1].info.index

    def problem(self, index: int) -> str | None:
        """Return why a segment cannot be read, if that is known without trying, else None.

        Raises WrongUsageError if there is no such segment.
        """
        return self._segment(index).problem

    def title(self) -> Title:
        """Return what the client calls the session, as far as its edges tell: as in a list.

        The edges are the session's first and last 64 KiB, and what the live file carries.
        """
        return self.sight().title

    def sight(self) -> Sight:
        """Return what a list shows of the session; for this package's own use.

        Segments that cannot be read are left out.
        """
        kept = [each for each in self._segments if each.problem is None]
        head, older, client = _beginning(kept), b"", clients.in_place()
        is_whole = len(head) <= EDGE and len(kept) == len(self._segments)
        head, live = head[:EDGE], None if self._found is None else self._found.live
        if self.client != client.files.NAME:
            return self.reader.sight(head, _end(kept), is_whole=is_whole)
        if self._found is not None and live is not None and self._found.prefix:
            older, (head, tail) = head, edges_of(live, live.size())
            is_whole = is_whole and live.size() <= EDGE
        else:
            tail = _end(kept)
        return client.edges.of_live(self.id, head, tail, older, is_whole=is_whole)

    # ── records ──────────────────────────────────────────────────────────────────────────────

    def history(self) -> Iterator[Record]:
        """Yield every record of the history, from all segments, archived and live."""
        for segment in self._segments:
            yield from self.segment(segment.info.index)

    def segment(self, index: int) -> Iterator[Record]:
        """Yield the records of one segment, and open no other.

        Raises WrongUsageError if there is no such segment.
        """
        return self._past_gaps(
            self._segment(index), lambda pieces: self.reader.records(pieces, index)
        )

    def lines(self, index: int) -> Iterator[Line]:
        """Yield where the lines of one segment stand (`parsing.split`), without making records.

        Raises WrongUsageError if there is no such segment.
        """
        return self._past_gaps(self._segment(index), split)

    def _past_gaps(
        self, segment: OpenSegment, read: Callable[[Iterator[bytes | memoryview]], Iterator[T]]
    ) -> Iterator[T]:
        """Yield what is read of a segment; where gaps are allowed, report what ends it early."""
        try:
            yield from read(_read(segment))
        except (DamagedError, StorageError) as error:
            if self._on_gap is None:
                if isinstance(error, DamagedError):
                    raise DamagedError(f"{error} Pass --allow-gaps to go on without it.") from error
                raise
            # Only its end tells that a segment is damaged: what came before it was handed on.
            is_read = isinstance(error, DamagedError) and segment.problem is None
            told = f"{error} What is read from it may be wrong." if is_read else str(error)
            if told not in self._reported:
                self._reported.add(told)
                self._on_gap(told)

    def conversation(self, *, with_agents: bool = False) -> Iterator[Record]:
        """Yield what the client would send to the model, in the order of the conversation.

        It has no agents' records, and no branches that the user left. With `with_agents`, it also
        has agents' records from the session's own file, each after the record that it follows
        there. This reads the records that a resume loads several times.
        """
        yield from self.reader.conversation(self, with_agents=with_agents)

    def said(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield these records of the session without those that only repeat earlier ones.

        The records of most clients stay as they are. In some formats, a record repeats earlier
        messages: this yields what is new in it, as separate records, and after them the record
        itself, with `is_carried` set.
        """
        yield from self.reader.said(records, self.bytes_of)

    def find(self, uuid: str) -> Record | None:
        """Return the last record with a uuid, or None; search the newest segment first."""
        wanted = uuid.encode("utf-8", "surrogatepass")
        for segment in reversed(self._segments):
            match = None
            for record in self.segment(segment.info.index):
                if wanted in record.line and self.key(record) == wanted:
                    match = record
            if match is not None:
                return match
        return None

    # ── what a record says ───────────────────────────────────────────────────────────────────

    def view(self, record: Record) -> View | None:
        """Return what a record says, the same for all clients.

        None if that is unknown: the line is not JSON, or longer than 8 MiB.
        """
        return self.reader.view(record)

    def key(self, record: Record) -> bytes | None:
        """Return the client's own id of a record (a uuid): copies of one record share it.

        None for a record without one; then only equal bytes make two lines copies.
        """
        return self.reader.key(record)

    def bytes_of(self, record: Record) -> Iterator[bytes]:
        """Yield all bytes of a record's line in pieces, without its newline, however long it is."""
        if record.is_whole:
            yield record.line
            return
        skip, left = record.offset, record.size
        for piece in _read(self._segment(record.segment)):
            data = bytes(piece[skip : skip + left])
            skip, left = max(0, skip - len(piece)), left - len(data)
            yield data
            if not left:
                return

    def pieces(self, index: int) -> Iterator[bytes | memoryview]:
        """Yield the bytes of one segment; each piece is valid until the next is asked for.

        Raises WrongUsageError if there is no such segment.
        """
        return _read(self._segment(index))

    # ── agents ───────────────────────────────────────────────────────────────────────────────

    def agents(self) -> list[Agent]:
        """Return the transcripts of the session's agents.

        The history may be read once to tell which tool call started which agent.
        """
        if self.path.is_dir():
            return []
        return self.reader.agents(self)

    def records_of(self, agent: Agent) -> Iterator[Record]:
        """Yield the records of an agent's transcript, without repetitions (see `said`).

        Raises InUseError if the file was replaced while it was opened, StorageError if it is gone.
        """
        with holders.transcript(agent.path) as source:

            def bytes_of(record: Record) -> Iterator[bytes]:
                return iter(source.pieces(Span(record.offset, record.offset + record.size)))

            pieces = source.pieces(Span(0, source.size()))
            yield from self.reader.said(self.reader.records(pieces, 0), bytes_of)

    # ── for readers: the rest of `clients.protocol.Reading` ──────────────────────────────────

    def older(self) -> Iterator[Callable[[], Iterator[Record]]]:
        """Yield what holds records from before the newest segment, the nearest first."""
        newest = self.newest
        older = [info for info in reversed(self.segments) if info.index < newest]
        for info in older:
            if info.standing == "live":
                yield partial(self.segment, info.index)
        yield self._carried
        for info in older:
            if info.standing == "sealed":
                yield partial(self.segment, info.index)

    def _carried(self) -> Iterator[Record]:
        """Yield the copies of archived records that a rotated live file begins with."""
        if self._found is not None and self._found.live is not None:
            copies = self._found.live.pieces(Span(0, self._found.prefix))
            yield from records(copies, self.newest, is_carried=True)

    def _segment(self, index: int) -> OpenSegment:
        for segment in self._segments:
            if segment.info.index == index:
                return segment
        count, newest = len(self._segments), self.newest
        raise WrongUsageError(
            f"There is no segment {index}: the session has {count}, numbered 0 to {newest}."
        )


def _read(segment: OpenSegment) -> Iterator[bytes | memoryview]:
    if segment.problem is not None:
        raise DamagedError(segment.problem)
    return iter(segment.pieces())


def _beginning(segments: Sequence[OpenSegment]) -> bytes:
    """Return the first bytes of these segments: more than `EDGE`, or all that can be read."""
    data = b""
    with suppress(DamagedError, StorageError):
        for piece in chain.from_iterable(map(_read, segments)):
            data += piece
            if len(data) > EDGE:
                break
    return data


def _end(segments: Sequence[OpenSegment]) -> bytes:
    """Return the last `EDGE` bytes of these segments, as far as they can be read."""
    data = b""
    for segment in reversed(segments):
        part = b""
        with suppress(DamagedError, StorageError):
            for piece in _read(segment):
                part = (part + piece)[-EDGE:]
        data = part + data
        if len(data) >= EDGE:
            break
    return data[-EDGE:]


# ── opening ──────────────────────────────────────────────────────────────────────────────────


@contextmanager
def open_session(session: str | Path, *, on_gap: OnGap | None = None) -> Iterator[Session]:
    """Open a session for reading; use it in a `with` statement.

    `session` is an id, the beginning of one (4 characters or more), or a path: of a session file,
    of an archive, of a folder of segments, or of a segment in one. A `str` that names a file or
    holds a path separator is a path.

    If a segment is missing or damaged, the session calls `on_gap` with a sentence about it, and
    skips it. Without `on_gap`, reading such a segment raises DamagedError.

    Raises WrongUsageError if no session or several match, NotASessionError if the file is not a
    session, DamagedError if the archive cannot be read at all, InUseError if the session was
    replaced while it was opened, and StorageError if the system reports an error.
    """
    path = session if isinstance(session, Path) else find.path_of(session)
    with holders.opened(path) as holder:
        yield Session(path, holder, on_gap)
