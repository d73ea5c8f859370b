"""What `prune` shows: a row for each segment with the reason, and the policy in words. Pure.

Rule: pure text out. A dry run and the run itself show the same plan.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sessrotate import render, retention
from sessrotate.errors import printable
from sessrotate.render import count, size

if TYPE_CHECKING:
    from sessrotate.prune import PrunePlan

_COLUMNS: Final = ("session", "#", "size", "last record", "", "why")


def plan(planned: PrunePlan) -> str:
    """Return the table of a plan, below it the policy and what goes."""
    rows = [
        (
            printable(entry.segment.session.rpartition("/")[2], 40),
            str(entry.segment.index),
            size(entry.segment.bytes),
            _day(entry.segment.time),
            "keep" if entry.keep else "remove",
            printable(", ".join(entry.reasons)),
        )
        for entry in planned.decisions
    ]
    left = {"session", "last record", "", "why"}
    table = render.plain_table(_COLUMNS, rows, left=left) if rows else ""
    return f"{table}{retention.in_words(planned.policy)}\n{_sum(planned)}\n"


def _day(time: float | None) -> str:
    return "-" if time is None else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"


def _sum(planned: PrunePlan) -> str:
    gone = sum(not entry.keep for entry in planned.decisions)
    if not gone:
        return "Nothing is to be removed."
    many = f"{count(gone, 'segment')} of {len(planned.decisions):,}"
    return f"To the trash: {many}, {size(planned.bytes_trashed)}."


def question(planned: PrunePlan) -> str:
    """Return what a person is asked before it happens."""
    return f"{_sum(planned)} Go on? [y/N]"


def done(planned: PrunePlan | None, freed: int) -> str:
    """Return the sentence about what happened."""
    trashed = planned.bytes_trashed if planned is not None else 0
    return f"{size(trashed)} went to the trash, {size(freed)} were freed.\n"


def as_json(planned: PrunePlan | None, freed: int, *, dry_run: bool) -> str:
    """Return the same for programs."""
    document: dict[str, Any] = {
        "segments": [
            {
                "session": entry.segment.session.rpartition("/")[2],
                "index": entry.segment.index,
                "bytes": entry.segment.bytes,
                "keep": entry.keep,
                "reasons": list(entry.reasons),
            }
            for entry in (planned.decisions if planned is not None else ())
        ],
        "policy": None if planned is None else retention.in_words(planned.policy),
        "bytes_trashed": planned.bytes_trashed if planned is not None else 0,
        "bytes_freed": freed,
        "dry_run": dry_run,
    }
    return render.as_json(document)
