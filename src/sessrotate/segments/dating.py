"""The times of the first and the last record of a segment.

Rule: cheap. It looks at no more than `MOST_LINES` lines and `WINDOW` bytes from either end, and
at lines over `jsonline.SMALL` only if no other there is dated; a segment without a dated record
has no time span. A record's time is what its client wrote: clocks may jump, and nothing is
sorted by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from sessrotate.model import Boundary, Span
from sessrotate.parsing import json_line

if TYPE_CHECKING:
    from sessrotate.clients.protocol import Client
    from sessrotate.system.source import Source

WINDOW: Final = 16 * 1024 * 1024
"""Bytes from either end within which a whole line is looked at: room for the largest image."""

MOST_LINES: Final = 1_000
"""Lines from either end: metadata without a time comes in dozens, not thousands."""


def times(
    source: Source, client: Client, parts: Iterable[tuple[Span, Boundary | None]]
) -> Iterator[tuple[str | None, str | None]]:
    """Yield the first and the last time of each part; a boundary that is dated is the first."""
    for span, boundary in parts:
        opening = boundary.timestamp if boundary else None
        yield opening or first(source, client, span), last(source, client, span)


def first(source: Source, client: Client, span: Span) -> str | None:
    """Return the time of the first dated record of `span`, None if there is none nearby."""
    return _first_time(source, client, _lines_forward, span)


def last(source: Source, client: Client, span: Span) -> str | None:
    """Return the time of the last dated record of `span`, None if there is none nearby."""
    return _first_time(source, client, _lines_backward, span)


def _first_time(
    source: Source, client: Client, lines: Callable[[Source, Span], Iterator[Span]], span: Span
) -> str | None:
    # Long lines are slow to parse and seldom alone, so they are asked only if no other knows.
    for ask_long in (False, True):
        for line in islice(lines(source, span), MOST_LINES):
            if json_line.is_small(line.size) != ask_long and (
                time := client.timestamp(source.pieces(line), line.size)
            ):
                return time
    return None


def _lines_forward(source: Source, span: Span) -> Iterator[Span]:
    limit = min(span.end, span.start + WINDOW)
    start = span.start
    while start < limit:
        end = source.line_end(start, limit)
        if end == limit < span.end:
            return  # cut by the window, not by a newline
        if start < end:
            yield Span(start, end)
        start = end + 1


def _lines_backward(source: Source, span: Span) -> Iterator[Span]:
    floor = max(span.start, span.end - WINDOW)
    end = span.end
    while end > floor:
        start = source.line_start(end, floor)
        if start == floor > span.start:
            return
        if start < end:
            yield Span(start, end)
        end = start - 1
