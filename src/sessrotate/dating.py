"""From when to when a segment reaches, by its own records.

Rule: cheap. It looks at the whole lines within the first and the last `WINDOW` bytes, and skips
those over `jsonline.SMALL`; a segment without a dated record there has no time span. A record's
time is what its client wrote: clocks may jump, and nothing is sorted by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessrotate import jsonline
from sessrotate.formats import claude
from sessrotate.model import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sessrotate.model import Boundary
    from sessrotate.source import Source

WINDOW: Final = 1024 * 1024
"""Bytes from either end of a segment that are searched for a dated record."""

_FIRST_LOOK: Final = 8 * 1024


def times(
    source: Source, parts: Iterable[tuple[Span, Boundary | None]]
) -> Iterator[tuple[str | None, str | None]]:
    """Yield the first and the last time of each part; a boundary that is dated is the first."""
    for span, boundary in parts:
        opening = boundary.timestamp if boundary else None
        yield opening or first(source, span), last(source, span)


def first(source: Source, span: Span) -> str | None:
    """Return the time of the first dated record of `span`, None if the window has none."""
    return next(_times(_lines_forward(source, Span(span.start, _up(span)))), None)


def last(source: Source, span: Span) -> str | None:
    """Return the time of the last dated record of `span`, None if the window has none."""
    return next(_times(_lines_backward(source, Span(_down(span), span.end))), None)


def _up(span: Span) -> int:
    return min(span.end, span.start + WINDOW)


def _down(span: Span) -> int:
    return max(span.start, span.end - WINDOW)


def _times(lines: Iterator[bytes]) -> Iterator[str]:
    for line in lines:
        if jsonline.is_small(len(line)) and (time := claude.timestamp(line)):
            yield time


def _lines_forward(source: Source, span: Span) -> Iterator[bytes]:
    unfinished = b""
    for piece in _looks(span):
        *lines, rest = source.read_at(piece.start, piece.size).split(b"\n")
        if lines:
            yield unfinished + lines[0]
            yield from lines[1:]
            unfinished = rest
        else:
            unfinished += rest
    yield unfinished  # a line cut by the window is no JSON, and is passed over like any such line


def _lines_backward(source: Source, span: Span) -> Iterator[bytes]:
    unfinished = b""
    for piece in _looks(span):
        start = span.start + span.end - piece.end  # the same steps, from the other end
        rest, *lines = source.read_at(start, piece.size).split(b"\n")
        if lines:
            yield lines[-1] + unfinished
            yield from reversed(lines[:-1])
            unfinished = rest
        else:
            unfinished = rest + unfinished
    yield unfinished


def _looks(span: Span) -> Iterator[Span]:
    """Yield adjoining parts of `span`, each larger than the one before: mostly one is enough."""
    start, size = span.start, _FIRST_LOOK
    while start < span.end:
        yield Span(start, min(start + size, span.end))
        start, size = start + size, size * 4
