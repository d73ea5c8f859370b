"""Boundaries and options → the plan of a split. Pure.

Rule: a plan says everything that will be written, so that a dry run that shows it shows the run.
No file is touched and no clock is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.model import Boundary, Codec, FileIdentity, Layout, Scan, Segment, Span, SplitPlan

if TYPE_CHECKING:
    from collections.abc import Iterable


def spans(scan: Scan, start: int = 0) -> list[tuple[Span, Boundary | None]]:
    """Return the parts of a session, from offset `start` on, and the boundary that opens each.

    Part 0 is what stands before the first boundary: it may be empty, and the only one. It is left
    out where a rotated live file begins with the boundary that it was cut at.
    """
    boundaries = [boundary for boundary in scan.boundaries if boundary.offset >= start]
    starts = [start, *(boundary.offset for boundary in boundaries)]
    openings: list[Boundary | None] = [None, *boundaries]
    if start and starts[1:2] == [start]:
        del starts[0], openings[0]
    ends = [*starts[1:], scan.end]
    return [
        (Span(start, end), boundary)
        for start, end, boundary in zip(starts, ends, openings, strict=True)
    ]


def split(
    *,
    session: str,
    client: str,
    source: FileIdentity,
    scan: Scan,
    times: Iterable[tuple[str | None, str | None]],
    layout: Layout,
    codec: Codec,
) -> SplitPlan:
    """Return the plan that cuts a session at every boundary.

    `times` are the first and the last time of each part, in order.
    """
    segments = tuple(
        Segment(index, span, boundary, first, last)
        for index, ((span, boundary), (first, last)) in enumerate(
            zip(spans(scan), times, strict=True)
        )
    )
    return SplitPlan(session, client, source, segments, scan.opaque_lines, layout, codec)
