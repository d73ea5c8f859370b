"""What holds a session → the stretches of its history, each to be read from any line on.

Rule: a place in the history is the same before and after a rotation, so that parts of a session may
be read by different processes, each of which opens it for itself. The segments of a live file are
looked for when somebody asks in which one a place is, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate.archive.state import State
from sessrotate.clients.claude import client as claude
from sessrotate.clients.protocol import Client
from sessrotate.errors import DamagedError
from sessrotate.model import Span
from sessrotate.reading import open_segments, pieces
from sessrotate.reading.open_segments import OpenSegment
from sessrotate.segments.segment_set import unreadable
from sessrotate.system.source import Source

if TYPE_CHECKING:
    Read = Callable[[], Iterable[bytes | memoryview]]


class Window(Struct, frozen=True):
    """The lines that begin in these bytes of a history; without an `end`, all from `begin` on."""

    begin: int = 0
    end: int | None = None

    def has(self, place: int) -> bool:
        """Tell whether a place is in it."""
        return self.begin <= place and (self.end is None or place < self.end)


class Stretch(Struct, frozen=True):
    """Whole lines of a history: the `place` at which they begin, and what reads them.

    `index` is the segment's, None where they are not a sealed segment. `start` is where in the
    segment they begin, or behind all sealed segments. `problem` says why they cannot be read.
    """

    place: int
    index: int | None
    start: int
    read: Read
    problem: str | None = None


class Stretches:
    """The stretches of a session that is open."""

    client: Client
    pruned: tuple[int, ...] = ()
    """Where the segments begin that were pruned."""
    sealed: int = 0
    """How many bytes of the history are in segments."""

    def within(self, window: Window) -> Iterator[Stretch]:
        """Yield the stretches of the lines that begin in a window."""
        raise NotImplementedError

    def where(self, stretch: Stretch, offset: int) -> tuple[int, int]:
        """Return the number of the segment that has a line, and the offset in it.

        `offset` is the line's, as counted from the stretch's `start`. Raises what a scan raises.
        """
        if stretch.index is not None:
            return stretch.index, offset
        begin, index = next(each for each in reversed(self._segments) if each[0] <= offset)
        return index, offset - begin

    @cached_property
    def _segments(self) -> list[tuple[int, int]]:
        """Where segments that are not sealed begin, behind the sealed ones, and their numbers."""
        state = self._state()
        if state not in _CUTS:
            found, at = [], 0
            for segment in self._loose():
                found.append((at, segment.info.index))
                at += segment.info.bytes or 0
            _CUTS.clear()
            _CUTS[state] = found
        return _CUTS[state]

    def _loose(self) -> Iterable[OpenSegment]:
        raise NotImplementedError

    def _state(self) -> object:
        """Return what the session's files are: as long as that is the same, so are its segments."""
        raise NotImplementedError


_CUTS: Final[dict[object, list[tuple[int, int]]]] = {}
"""The segments of the last live file of which somebody asked: it is searched in many windows."""


class OfFile(Stretches):
    """Those of a file that was never split."""

    def __init__(self, source: Source, client: Client) -> None:
        self.client = client
        self._source: Final = source
        self._size: Final = source.size()

    def within(self, window: Window) -> Iterator[Stretch]:
        """Yield all lines of the window as one stretch."""
        span = _lines(self._source, Span(0, self._size), 0, window)
        if span.size:
            yield Stretch(span.start, None, span.start, partial(self._source.pieces, span))

    def _loose(self) -> Iterable[OpenSegment]:
        return open_segments.of_file(self._source, self.client)

    def _state(self) -> object:
        return self._source.path, self._source.identity()


class OfState(Stretches):
    """Those of a session of which an archive holds a part."""

    def __init__(self, found: State) -> None:
        """Raise DamagedError if the live file does not go on from its archive."""
        self.client = claude
        self._found: Final = found
        self._history: Final = found.history()
        self._archived: Final = pieces.archived(found)
        listed = found.listed.segments if found.listed is not None else ()
        self._spans: Final = [entry.segment.span for entry in listed]
        self.sealed = listed[-1].segment.span.end if listed else 0
        self.pruned = tuple(each.segment.span.start for each in listed if each.pruned is not None)

    def within(self, window: Window) -> Iterator[Stretch]:
        """Yield the sealed segments that begin in the window, then other lines that do."""
        found, problems = self._found, unreadable(self._archived) if self._archived else {}
        place = self.sealed
        for piece in self._history:
            if piece.index is not None:
                begin = self._spans[piece.index].start
                if piece.where != "pruned" and window.has(begin):
                    read = partial(pieces.read, found, piece, self._archived)
                    problem = None if piece.where == "pack" else problems.get(piece.index)
                    yield Stretch(begin, piece.index, 0, read, problem)
                continue
            if piece.where == "live" and found.live is not None:
                span = _lines(found.live, piece.span, place - piece.span.start, window)
                part, at = replace(piece, span=span), place + span.start - piece.span.start
                if span.size:
                    read = partial(pieces.read, found, part, self._archived)
                    yield Stretch(at, None, at - self.sealed, read)
            elif window.has(place):
                read = partial(pieces.read, found, piece, self._archived)
                yield Stretch(place, None, place - self.sealed, read)
            place += piece.span.size

    def where(self, stretch: Stretch, offset: int) -> tuple[int, int]:
        """Return as for all; without a live file, lines belong to the last segment."""
        if stretch.index is None and not self._segments:
            return len(self._spans) - 1, self._spans[-1].size + offset
        return super().where(stretch, offset)

    def _loose(self) -> Iterable[OpenSegment]:
        every = open_segments.of_state(self._found)
        return [each for each in every if each.info.standing == "live"]

    def _state(self) -> object:
        live = self._found.live
        return self._found.place, self._history, None if live is None else live.identity()


def read(stretch: Stretch) -> Iterator[bytes | memoryview]:
    """Yield a stretch's bytes. Raises DamagedError where that is known to be impossible."""
    if stretch.problem is not None:
        raise DamagedError(stretch.problem)
    return iter(stretch.read())


def _lines(source: Source, span: Span, shift: int, window: Window) -> Span:
    """Return where the lines stand in a file that begin in a window.

    They are in `span`, and `shift` makes an offset of the file a place in the history.
    """
    start = max(span.start, window.begin - shift)
    end = span.end if window.end is None else min(span.end, window.end - shift)
    if start > span.start:
        start = min(source.line_end(start - 1, max(end, start - 1)) + 1, span.end)
    if start >= end:
        return Span(start, start)
    return Span(start, min(source.line_end(end - 1, span.end) + 1, span.end))
