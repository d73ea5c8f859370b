"""Where every byte of a session's history is, at any moment of a rotation or restoration. Pure.

Rule: this is the only answer to that question. Reading, stitching, verifying and restoring all use
it, so a byte that is found here is found by all of them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from sessrotate.model import Span
from sessrotate.segments.manifest import Manifest

Where = Literal["sealed", "pruned", "pack", "live"]


class HistorySpan(Struct, frozen=True):
    """A part of the history: a sealed segment's body, or bytes of one of the other files.

    What was pruned has no bytes. `index` is the segment's, None for what is not one yet.
    """

    where: Where
    index: int | None
    span: Span


def spans(
    *,
    listed: Manifest | None,
    live: Span,
    late: Span,
    is_first: bool,
) -> tuple[HistorySpan, ...]:
    """Return the history in order.

    `listed` is what the live file goes on from, `live` the body of the live file, in its own
    offsets. `late` is what of the pack came late to a replaced file and the live file has yet to
    get: it goes to the live file's end, or comes `is_first`.
    """
    found: list[HistorySpan] = []
    for entry in listed.segments if listed is not None else ():
        index, span = entry.segment.index, entry.segment.span
        if entry.pruned is not None:
            found.append(HistorySpan("pruned", index, Span(0, 0)))
        else:
            found.append(HistorySpan("sealed", index, Span(0, span.size)))
    rest = [HistorySpan("live", None, live), HistorySpan("pack", None, late)]
    return (*found, *(part for part in (rest[::-1] if is_first else rest) if part.span.size))
