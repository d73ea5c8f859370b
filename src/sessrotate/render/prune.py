"""What `prune` shows: a row for each segment with the reason, and the policy in words. Pure.

Rule: pure text out. A dry run and the run itself show the same plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sessrotate.errors import printable
from sessrotate.render import common
from sessrotate.render.common import count, size
from sessrotate.retention import policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessrotate.retention.policy import Decision
    from sessrotate.retention.prune import Due, PrunePlan

_COLUMNS: Final = ("session", "#", "size", "last record", "", "why")

_MANY: Final = 40
"""Rows from which on a terminal shows only what goes, and counts what stays."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What is going to happen: a plan, if there is a policy, and what of the trash is `due`.

    `due` is in bytes, of what was pruned before; `is_due` says that the trash is emptied at all.
    """

    planned: PrunePlan | None
    due: int
    is_due: bool

    @property
    def trashed(self) -> int:
        """How many bytes go to the trash."""
        return 0 if self.planned is None else self.planned.bytes_trashed

    @property
    def is_anything(self) -> bool:
        """Whether anything goes at all."""
        return bool(self.due or (self.planned is not None and self.planned.count))


def plan(shown: Shown, *, is_short: bool) -> str:
    """Return the table of a plan, below it the policy and what goes.

    With `is_short`, a long table has only what goes, and what stays is counted.
    """
    planned, text = shown.planned, ""
    if planned is not None:
        decisions = planned.decisions
        if is_short and len(decisions) > _MANY:
            decisions = tuple(entry for entry in decisions if not entry.keep)
        text += _table(decisions)
        if stay := len(planned.decisions) - len(decisions):
            text += f"{count(stay, 'segment')} more to keep: a pipe, or --json, shows them too.\n"
        text += f"{policy.in_words(planned.policy)}\n"
    return f"{text}{_sum(shown)}\n"


def _table(decisions: Iterable[Decision]) -> str:
    rows = [
        (
            printable(entry.segment.session.rpartition("/")[2], 40),
            str(entry.segment.index),
            size(entry.segment.bytes),
            _day(entry.segment.time),
            "keep" if entry.keep else "remove",
            printable(", ".join(entry.reasons)),
        )
        for entry in decisions
    ]
    left = {"session", "last record", "", "why"}
    return common.plain_table(_COLUMNS, rows, left=left) if rows else ""


def _day(time: float | None) -> str:
    return "-" if time is None else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"


def _sum(shown: Shown) -> str:
    planned, parts = shown.planned, []
    if planned is not None and planned.count:
        many = f"{count(planned.count, 'segment')} of {len(planned.decisions):,}"
        parts.append(f"To the trash: {many}, {size(planned.bytes_trashed)}.")
    elif planned is not None:
        parts.append("Nothing is to be removed.")
    if shown.is_due and shown.due:
        parts.append(f"Freed for good, from the trash: {size(shown.due)}.")
    elif shown.is_due:
        parts.append("Nothing in the trash is old enough to be freed.")
    return " ".join(parts)


def question(shown: Shown) -> str:
    """Return what a person is asked before it happens."""
    return f"{_sum(shown)} Go on? [y/N]"


def strangers(due: Due) -> str:
    """Return what is said of files in a trash that nobody pruned."""
    named = ", ".join(printable(name, 60) for name in due.strangers[:3])
    more = f" and {len(due.strangers) - 3:,} more" if len(due.strangers) > 3 else ""  # noqa: PLR2004 - as above
    name = printable(due.where.session)
    return f"The trash of {name} holds {named}{more}, which nobody pruned: left alone."


def done(trashed: int, freed: int) -> str:
    """Return the sentence about what happened; both are in bytes."""
    return f"{size(trashed)} went to the trash, {size(freed)} were freed.\n"


def as_json(shown: Shown, trashed: int, freed: int, *, dry_run: bool) -> str:
    """Return the same for programs."""
    planned = shown.planned
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
        "policy": None if planned is None else policy.in_words(planned.policy),
        "bytes_trashed": trashed,
        "bytes_freed": freed,
        "dry_run": dry_run,
    }
    return common.as_json(document)
