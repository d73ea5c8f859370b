"""Segments as rows of a table or of JSON, and what `split` says of its own. Pure.

Rule: both say the same of a segment, and text from a session is made harmless and cut to size. A
dry run and a run show the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from sessrotate import names, safe_text
from sessrotate.errors import RequestError, printable
from sessrotate.render import columns, count, json_parts, size, time
from sessrotate.render.columns import Canvas, Columns, TableRow

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.model import Boundary, Segment, SplitPlan

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
        TableRow(_cells(each, each.span.size / whole), each.span.size / largest)
        for each in segments
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


# ── what `split` says ─────────────────────────────────────────────────────────────────────────────


def split_json(
    plan: SplitPlan, path: Path, out: Path, *, dry_run: bool, refusal: RequestError | None = None
) -> Iterator[str]:
    """Yield what `split --json` prints, a segment at a time."""
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
    if refusal is not None:
        document["refused"] = [str(refusal)]
    segments = (
        (segment, names.segment_file(plan.session, plan.layout, segment.index, plan.codec))
        for segment in plan.segments
    )
    return as_json(document, segments)


def heading(plan: SplitPlan) -> str:
    """Return the line above the table: which session, how large, how many compactions."""
    compactions = len(plan.segments) - 1
    return (
        f"{printable(plan.session)}: {size(plan.source_bytes)}, "
        f"{count(compactions, 'compaction')}, {count(len(plan.segments), 'segment')}"
    )


def would(plan: SplitPlan, out: Path, room: int | None, leftovers: int) -> list[str]:
    """Return the sentences of a dry run about what would be written, and whether it can be."""
    what = f"{count(len(plan.segments), 'segment')} and a {names.MANIFEST}"
    how = {
        "plain": f"{size(plan.source_bytes)} and a header line for each",
        "zstd": "compressed, usually to a fifth of their size",
    }[plan.codec]
    lines = [f"Would write {what} to {printable(str(out))}: {how}."]
    if room is not None:
        is_short = plan.codec == "plain" and room < plan.source_bytes
        lines.append(f"{size(room)} is free there{', which is not enough' if is_short else ''}.")
    if leftovers:
        lines.append(
            "The folder holds an unfinished split: "
            f"its {count(leftovers, 'file')} would be replaced."
        )
    return lines + remarks(plan)


def done(plan: SplitPlan, out: Path) -> list[str]:
    """Return the sentences that follow a split."""
    what = f"{count(len(plan.segments), 'segment')} of {printable(plan.session)}"
    where = f"({size(plan.source_bytes)}) to {printable(str(out))}"
    return [f"Wrote {what} {where}.", *remarks(plan)]


def remarks(plan: SplitPlan) -> list[str]:
    """Return what else is worth knowing about a plan."""
    remarks = []
    if len(plan.segments) == 1:
        remarks.append("The session was never compacted, so it is one segment.")
    if plan.opaque_lines:
        remarks.append(
            f"{count(plan.opaque_lines, 'line')} with the mark of a compaction but without valid "
            "JSON: kept as part of a segment."
        )
    return remarks
