"""Values → what people and programs read: tables, sentences, JSON.

Rule: pure text out, nothing printed. Text that came out of a session passes `printable` first,
and never goes where rich would take it for markup. rich itself is loaded only for a terminal.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sessrotate import names
from sessrotate.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from rich.table import Table

    from sessrotate.model import Segment, SplitPlan

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")

COLUMNS: Final = ("#", "size", "share", "compacted", "by", "tokens before", "first", "last")
"""Of the table of segments; the plain one and the one on a terminal have the same."""

_LEFT: Final = frozenset({"compacted", "by", "first", "last", ""})
_BAR_COLUMN: Final = ""
_EXPENDABLE: Final = ("first", "last", _BAR_COLUMN, "share")
"""Columns that a narrow terminal does without, in this order."""

_PADDING: Final = 2
_BAR: Final = 12
_EIGHTHS: Final = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")


def size(number: int) -> str:
    """Return a number of bytes as people read it, in powers of 1024."""
    value, unit = float(number), 0
    while value >= 1023.95 and unit + 1 < len(_UNITS):  # noqa: PLR2004 - rounds up to 1024.0
        value, unit = value / 1024, unit + 1
    return f"{number} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def time(text: str | None) -> str:
    """Return a record's time to the second, as the client wrote it, or a dash."""
    return "-" if text is None else text[:19].replace("T", " ")


def as_json(document: object) -> str:
    """Return one JSON document, readable, all ASCII so that any terminal and pipe takes it."""
    return json.dumps(document, indent=2) + "\n"


# ── split ────────────────────────────────────────────────────────────────────────────────────


def split_json(
    plan: SplitPlan, path: Path, out: Path, *, dry_run: bool, refused: Sequence[str] = ()
) -> Iterator[str]:
    """Yield what `split --json` prints, a segment at a time: there may be thousands."""
    document: dict[str, Any] = {
        "session": plan.session,
        "client": plan.client,
        "source": {"path": str(path), "bytes": plan.source_bytes},
        "out": str(out),
        "layout": plan.layout,
        "codec": plan.codec,
        "dry_run": dry_run,
        "opaque_lines": plan.opaque_lines,
    }
    if refused:
        document["refused"] = list(refused)
    yield json.dumps(document, indent=2)[: -len("\n}")] + ',\n  "segments": ['
    for segment in plan.segments:
        comma = "" if segment.index == 0 else ","
        file = names.segment_file(plan.session, plan.layout, segment.index, plan.codec)
        yield f"{comma}\n    {json.dumps(segment_document(segment, file))}"
    yield "\n  ]\n}\n"


def segment_document(segment: Segment, file: str) -> dict[str, Any]:
    """Return what JSON says of one segment, which is or would be in `file`."""
    boundary = segment.boundary
    return {
        "index": segment.index,
        "file": file,
        "start": segment.span.start,
        "end": segment.span.end,
        "bytes": segment.span.size,
        "boundary": boundary
        and {
            "uuid": boundary.uuid,
            "timestamp": boundary.timestamp,
            "trigger": boundary.trigger,
            "pre_tokens": boundary.pre_tokens,
        },
        "first_timestamp": segment.first_timestamp,
        "last_timestamp": segment.last_timestamp,
    }


def split_heading(plan: SplitPlan) -> str:
    """Return the line above the table: which session, how large, how many compactions."""
    compactions = len(plan.segments) - 1
    return (
        f"{printable(plan.session)}: {size(plan.source_bytes)}, "
        f"{count(compactions, 'compaction')}, {count(len(plan.segments), 'segment')}"
    )


def split_rows(plan: SplitPlan) -> list[tuple[str, ...]]:
    """Return the table of a plan's segments, in the order of `COLUMNS`."""
    return [segment_row(segment, plan.source_bytes or 1) for segment in plan.segments]


def segment_row(segment: Segment, whole: int) -> tuple[str, ...]:
    """Return a segment as a row of `COLUMNS`; `whole` is the bytes that its share is of."""
    boundary = segment.boundary
    tokens = boundary.pre_tokens if boundary else None
    return (
        str(segment.index),
        size(segment.span.size),
        f"{segment.span.size / whole:.1%}",
        time(boundary.timestamp) if boundary else "-",
        printable((boundary and boundary.trigger) or "-", 12),
        "-" if tokens is None else f"{tokens:,}",
        time(segment.first_timestamp),
        time(segment.last_timestamp),
    )


def split_would(plan: SplitPlan, out: Path, room: int | None, leftovers: int) -> list[str]:
    """Return the sentences of a dry run about what would be written, and whether it can be."""
    what = f"{count(len(plan.segments), 'segment')} and a {names.MANIFEST}"
    how = {
        "plain": f"{size(plan.source_bytes)} and a header line for each",
        "zstd": "compressed, usually to a fifth of their size",
    }[plan.codec]
    lines = [f"Would write {what} to {printable(str(out))}: {how}."]
    if room is not None:
        short = plan.codec == "plain" and room < plan.source_bytes
        lines.append(f"{size(room)} are free there{', which is not enough' if short else ''}.")
    if leftovers:
        lines.append(
            f"An unfinished split is there: its {count(leftovers, 'file')} would be replaced."
        )
    return lines + split_remarks(plan)


def split_done(plan: SplitPlan, out: Path) -> list[str]:
    """Return the sentences that follow a split."""
    what = f"{count(len(plan.segments), 'segment')} of {printable(plan.session)}"
    where = f"({size(plan.source_bytes)}) to {printable(str(out))}"
    return [f"Wrote {what} {where}.", *split_remarks(plan)]


def split_remarks(plan: SplitPlan) -> list[str]:
    """Return what else is worth knowing about a plan."""
    remarks = []
    if len(plan.segments) == 1:
        remarks.append("The session was never compacted, so it is one segment.")
    if plan.opaque_lines:
        remarks.append(
            f"{count(plan.opaque_lines, 'line')} with the mark of a compaction but no valid "
            "JSON: kept as part of a segment."
        )
    return remarks


def count(number: int, what: str) -> str:
    """Return a number of things with the word for them."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# ── tables ───────────────────────────────────────────────────────────────────────────────────


def plain_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], left: AbstractSet[str] = _LEFT
) -> str:
    """Return a table as aligned text, for a pipe, a file, a mail; `left` are columns of text."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    lines = []
    for row in (columns, *rows):
        cells = [
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def rich_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], shares: Sequence[float], width: int
) -> Table:
    """Return the same table for a terminal, with a bar for each row's share of the largest.

    What does not fit into `width` characters is left out, whole columns at a time.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - 30 ms at start-up, for terminals only
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    largest = max(shares, default=0.0) or 1.0
    table = dict(zip(columns, zip(*rows, strict=True), strict=True))
    table[_BAR_COLUMN] = tuple(bar(share / largest) for share in shares)
    order = [*columns]
    order.insert(order.index("share") + 1, _BAR_COLUMN)
    kept = _fitting({column: table[column] for column in order}, width)
    drawn = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    for column in kept:
        drawn.add_column(
            column,
            justify="left" if column in _LEFT else "right",
            no_wrap=True,
            style={"#": "dim", "first": "dim", "last": "dim", _BAR_COLUMN: "cyan"}.get(column, ""),
        )
    for row in zip(*(table[column] for column in kept), strict=True):
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn


def _fitting(table: dict[str, tuple[str, ...]], width: int) -> list[str]:
    widths = {column: max(map(len, (column, *cells))) + _PADDING for column, cells in table.items()}
    for column in _EXPENDABLE:
        if sum(widths.values()) + _PADDING > width:
            del widths[column]
    return list(widths)


def bar(share: float) -> str:
    """Return a bar of up to twelve characters for a share from 0 to 1, to an eighth of one."""
    eighths = round(share * _BAR * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8]
