"""What holds a session → the stretches of its history, each to be read from any line on.

Rule: a place in the history is the same before and after a rotation, so that parts of a session may
be read by different processes, each of which opens it for itself. The segments of a live file are
looked for when somebody asks in which one a place is, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate.errors import DamagedError
from sessrotate.model import Span
from sessrotate.reading.pieces import Holder
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
    """Whole lines of a history, and what reads them.

    `index` is the segment's, None where they are not a sealed segment. `start` is where in the
    segment they begin, or behind all sealed segments. `problem` says why they cannot be read.
    """

    index: int | None
    start: int
    read: Read
    problem: str | None = None


class Stretches:
    """The stretches of a session that is open, and of which the sizes of all parts are known.

    * `pruned`: where the segments begin that were pruned.
    * `sealed`: how many bytes of the history are in segments.
    """

    def __init__(self, holder: Holder) -> None:
        """Raise DamagedError if the live file does not go on from its archive."""
        holder.check()
        self._holder: Final = holder
        sizes = (each.info.bytes or 0 for each in holder.sealed)
        *begins, self.sealed = accumulate(sizes, initial=0)
        self._begins: Final = [*zip(begins, holder.sealed, strict=True)]
        self.pruned: Final = [begin for begin, each in self._begins if each.is_pruned]

    def within(self, window: Window) -> Iterator[Stretch]:
        """Yield the sealed segments that begin in the window, then other lines that do."""
        for begin, segment in self._begins:
            if window.has(begin) and not segment.is_pruned:
                yield Stretch(segment.info.index, 0, segment.pieces, segment.problem)
        place = self.sealed
        for each in self._holder.loose:
            span, shift = each.span, place - each.span.start
            if each.file is not None:
                span = _lines(each.file, span, shift, window)
            elif not window.has(place):
                span = Span(0, 0)
            if span.size:
                yield Stretch(None, span.start + shift - self.sealed, partial(each.read, span))
            place += each.span.size

    def where(self, stretch: Stretch, offset: int) -> tuple[int, int]:
        """Return the number of the segment that has a line, and the offset in it.

        `offset` is the line's, as counted from the stretch's `start`. Without a live file, lines
        belong to the last segment. Raises what a scan raises.
        """
        if stretch.index is not None:
            return stretch.index, offset
        if not self._live:
            last = self._holder.sealed[-1].info
            return last.index, (last.bytes or 0) + offset
        begin, index = next(each for each in reversed(self._live) if each[0] <= offset)
        return index, offset - begin

    @cached_property
    def _live(self) -> list[tuple[int, int]]:
        """Where segments that are not sealed begin, behind the sealed ones, and their numbers."""
        files = [each.file for each in self._holder.loose if each.file is not None]
        names = tuple((each.path, each.identity()) for each in files)
        state = self.sealed, names, tuple(each.span for each in self._holder.loose)
        if state not in _CUTS:
            segments = (each.info for each in self._holder.segments())
            live = [each for each in segments if each.standing == "live"]
            begins = accumulate((each.bytes or 0 for each in live), initial=0)
            _CUTS.clear()
            _CUTS[state] = [(begin, each.index) for begin, each in zip(begins, live, strict=False)]
        return _CUTS[state]


_CUTS: Final[dict[object, list[tuple[int, int]]]] = {}
"""The segments of the last live file of which somebody asked: it is searched in many windows."""


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
