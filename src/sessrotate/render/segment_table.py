"""Segments as rows of a table or of JSON. Pure.

Rule: both say the same of a segment, and text from a session is made harmless and cut to size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from sessrotate import safe_text
from sessrotate.render import columns
from sessrotate.render.columns import Canvas, Columns, Row
from sessrotate.render.common import json_parts, size, time

if TYPE_CHECKING:
    from sessrotate.model import Boundary, Segment

_COLUMNS: Final = Columns(
    ("#", "size", "share", "compacted", "by", "tokens before", "first", "last"),
    left=frozenset({"compacted", "by", "first", "last"}),
    expendable=("first", "last", "share", "tokens before", "by", "compacted"),
)


def as_json(document: dict[str, Any], segments: Iterable[tuple[Segment, str]]) -> Iterator[str]:
    """Yield a document with its segments and their files, a segment a line."""
    told = (
        {
            "index": segment.index,
            "file": file,
            "start": segment.span.start,
            "end": segment.span.end,
            "bytes": segment.span.size,
            "boundary": opening(segment.boundary),
            "first_timestamp": segment.first_timestamp,
            "last_timestamp": segment.last_timestamp,
        }
        for segment, file in segments
    )
    return json_parts({**document, "segments": told})


def opening(boundary: Boundary | None) -> dict[str, Any] | None:
    """Return what JSON says of the boundary that opens a segment."""
    if boundary is None:
        return None
    told = asdict(boundary)
    # The former is where the segment starts, and the latter is only for who decides where to cut.
    del told["offset"], told["is_sidechain"]
    return told


def table(segments: Sequence[Segment], canvas: Canvas) -> Iterator[str]:
    """Yield the lines of a table of segments, each with its share of all of them."""
    sizes = [segment.span.size for segment in segments]
    whole, largest = sum(sizes) or 1, max(sizes) or 1
    rows = [
        Row(_cells(each, each.span.size / whole), each.span.size / largest) for each in segments
    ]
    return columns.table(_COLUMNS, rows, canvas)


def _cells(segment: Segment, share: float) -> tuple[str, ...]:
    return (
        str(segment.index),
        size(segment.span.size),
        f"{share:.1%}",
        *compaction(segment.boundary),
        time(segment.first_timestamp),
        time(segment.last_timestamp),
    )


def compaction(boundary: Boundary | None) -> tuple[str, str, str]:
    """Return when a session was compacted, by what, and how many tokens it had, as cells."""
    if boundary is None:
        return "-", "-", "-"
    tokens = "-" if boundary.pre_tokens is None else f"{boundary.pre_tokens:,}"
    when = safe_text.clipped(time(boundary.timestamp), 19)
    return when, safe_text.clipped(boundary.trigger or "-", 12), tokens
