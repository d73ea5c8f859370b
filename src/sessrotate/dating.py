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
_LATER_LOOK: Final = 64 * 1024


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
    rest = b""
    position, look = span.start, _FIRST_LOOK
    while position < span.end:
        piece = source.read_at(position, min(look, span.end - position))
        position, look = position + len(piece), _LATER_LOOK
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    yield rest  # a line cut by the window is no JSON, and is passed over like any such line


def _lines_backward(source: Source, span: Span) -> Iterator[bytes]:
    rest = b""
    position, look = span.end, _FIRST_LOOK
    while position > span.start:
        start = max(span.start, position - look)
        rest, *lines = (source.read_at(start, position - start) + rest).split(b"\n")
        position, look = start, _LATER_LOOK
        yield from reversed(lines)
    yield rest
