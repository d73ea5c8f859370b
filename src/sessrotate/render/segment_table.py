"""Segments as rows: of a plain table, of one on a terminal, or of JSON.

Rule: the same columns in all of them. rich is loaded only for a terminal, and text that came out of
a session never goes where rich would take it for markup.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal

from sessrotate import safe_text
from sessrotate.render import common
from sessrotate.render.columns import bar
from sessrotate.render.common import size, time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.table import Table

    from sessrotate.model import Boundary, Segment

COLUMNS: Final = ("#", "size", "share", "compacted", "by", "tokens before", "first", "last")

_LEFT: Final = frozenset({"compacted", "by", "first", "last", ""})
_BAR_COLUMN: Final = ""
_EXPENDABLE: Final = ("first", "last", _BAR_COLUMN, "share")
"""Columns that a narrow terminal does without, in this order."""

_STYLES: Final = {"#": "dim", "first": "dim", "last": "dim", _BAR_COLUMN: "cyan"}
_PADDING: Final = 2
_BAR: Final = 12


def as_json(document: dict[str, Any], segments: Iterable[tuple[Segment, str]]) -> Iterator[str]:
    """Yield a document with its segments and their files, one at a time: there may be thousands."""
    yield json.dumps(document, indent=2)[: -len("\n}")] + ',\n  "segments": ['
    comma = ""
    for segment, file in segments:
        told = {
            "index": segment.index,
            "file": file,
            "start": segment.span.start,
            "end": segment.span.end,
            "bytes": segment.span.size,
            "boundary": opening(segment.boundary),
            "first_timestamp": segment.first_timestamp,
            "last_timestamp": segment.last_timestamp,
        }
        yield f"{comma}\n    {json.dumps(told)}"
        comma = ","
    yield "\n  ]\n}\n"


def opening(boundary: Boundary | None) -> dict[str, Any] | None:
    """Return what JSON says of the boundary that opens a segment."""
    if boundary is None:
        return None
    return {
        "uuid": boundary.uuid,
        "timestamp": boundary.timestamp,
        "trigger": boundary.trigger,
        "pre_tokens": boundary.pre_tokens,
    }


def rows(segments: Sequence[Segment], whole: int) -> tuple[list[tuple[str, ...]], list[float]]:
    """Return segments as rows of `COLUMNS`, and the share that each has of `whole`, in bytes."""
    shares = [segment.span.size / whole for segment in segments]
    return [_row(*each) for each in zip(segments, shares, strict=True)], shares


def _row(segment: Segment, share: float) -> tuple[str, ...]:
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


def plain_table(rows: Sequence[Sequence[str]]) -> str:
    """Return the table as aligned text."""
    return common.plain_table(COLUMNS, rows, _LEFT)


def rich_table(rows: Sequence[Sequence[str]], shares: Sequence[float], width: int) -> Table:
    """Return the table for a terminal, with a bar for each row's share of the largest.

    Columns that do not fit into `width` characters are left out.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - 30 ms at start-up, for terminals only
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    largest = max(shares, default=0.0) or 1.0
    cells = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    cells[_BAR_COLUMN] = tuple(bar(share / largest, _BAR) for share in shares)
    widths = {name: max(map(len, (name, *column))) + _PADDING for name, column in cells.items()}
    for name in _EXPENDABLE:
        if sum(widths.values()) + _PADDING > width:
            del widths[name]
    kept = [name for name in (*COLUMNS[:3], _BAR_COLUMN, *COLUMNS[3:]) if name in widths]
    drawn = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    for name in kept:
        justify: Literal["left", "right"] = "left" if name in _LEFT else "right"
        drawn.add_column(name, justify=justify, no_wrap=True, style=_STYLES.get(name, ""))
    for row in zip(*(cells[name] for name in kept), strict=True):
        drawn.add_row(*map(Text, row))
    return drawn
