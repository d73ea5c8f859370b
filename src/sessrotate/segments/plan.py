"""Boundaries and options → the plan of a split. Pure.

Rule: a plan says everything that will be written, so that a dry run that shows it shows the run.
No file is touched and no clock is read.
"""

from __future__ import annotations

from collections.abc import Iterable

from sessrotate.model import Boundary, Scan, Segment, Span


def spans(
    scan: Scan, start: int = 0, *, is_cut: bool = False
) -> list[tuple[Span, Boundary | None]]:
    """Return the parts of a session, from offset `start` on, and the boundary that opens each.

    Part 0 is what stands before the first boundary: it may be empty, and the only one. It is left
    out where a rotated live file begins with the boundary that it was cut at. If the client cut
    that out (`is_cut`), part 0 is what it kept of the segment that it had opened.
    """
    boundaries = [boundary for boundary in scan.boundaries if boundary.offset >= start]
    starts = [start, *(boundary.offset for boundary in boundaries)]
    openings: list[Boundary | None] = [None, *boundaries]
    if start and starts[1:2] == [start] and not is_cut:
        del starts[0], openings[0]
    ends = [*starts[1:], scan.end]
    return [
        (Span(start, end), boundary)
        for start, end, boundary in zip(starts, ends, openings, strict=True)
    ]


def segments(
    parts: Iterable[tuple[Span, Boundary | None]],
    times: Iterable[tuple[str | None, str | None]],
    *,
    number: int = 0,
    shift: int = 0,
    is_cut: bool = False,
) -> tuple[Segment, ...]:
    """Return the segments of these parts, given the first and the last time of each, in order.

    The first one has this `number`, and all stand `shift` bytes further on in the history than in
    the file. `is_cut` is as in `spans`.
    """
    return tuple(
        Segment(
            number + at,
            Span(span.start + shift, span.end + shift),
            boundary,
            first,
            last,
            is_cut=is_cut and not at,
        )
        for at, ((span, boundary), (first, last)) in enumerate(zip(parts, times, strict=True))
    )
