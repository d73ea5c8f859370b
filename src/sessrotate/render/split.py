"""What `split` shows: its plan as a table or JSON, and sentences about it.

Rule: a dry run and a run show the same plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sessrotate import names
from sessrotate.errors import RequestError, printable
from sessrotate.render import segment_table
from sessrotate.render.common import count, size

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.model import SplitPlan


def as_json(
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
    return segment_table.as_json(document, segments)


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
            f"An unfinished split is there: its {count(leftovers, 'file')} would be replaced."
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
