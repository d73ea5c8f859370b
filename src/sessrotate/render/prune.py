"""What `prune` prints: a row for each segment with the reason, and the policy in words. Pure.

Rule: a dry run and the run itself show the same plan.
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
    from collections.abc import Iterable, Iterator

    from sessrotate.retention.policy import Decision
    from sessrotate.retention.prune import PrunePlan
    from sessrotate.retention.trash import Due

_COLUMNS: Final = ("session", "#", "size", "last record", "", "why")

_MANY: Final = 40
"""Above so many rows, a terminal shows only what is removed, and counts the rest."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What is about to happen: the plan, if there is a policy, and what the trash will free.

    `due` is in bytes; `is_due` is whether the trash is emptied at all.
    """

    planned: PrunePlan | None
    due: int
    is_due: bool

    @property
    def trashed(self) -> int:
        """How many bytes move to the trash."""
        return 0 if self.planned is None else self.planned.bytes_trashed

    @property
    def is_anything(self) -> bool:
        """Whether anything is removed or freed at all."""
        return bool(self.due or (self.planned is not None and self.planned.count))


def plan(shown: Shown, *, is_short: bool) -> str:
    """Return the table of a plan, and below it the policy and the sum.

    With `is_short`, a long table shows only what is removed, and counts the rest.
    """
    planned, text = shown.planned, ""
    if planned is not None:
        decisions = planned.decisions
        if is_short and len(decisions) > _MANY:
            decisions = tuple(entry for entry in decisions if not entry.keep)
        text += _table(decisions)
        if stay := len(planned.decisions) - len(decisions):
            text += f"{count(stay, 'segment')} more are kept: a pipe or --json lists them too.\n"
        text += f"{policy.in_words(planned.policy)}\n"
    return f"{text}{total(shown)}\n"


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
    return common.plain_table(_COLUMNS, rows, left={"session", "last record", "", "why"})


def _day(time: float | None) -> str:
    return "-" if time is None else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"


def total(shown: Shown) -> str:
    """Return the sentences that sum up what is about to happen."""
    planned, parts = shown.planned, []
    if planned is not None and planned.count:
        many = f"{count(planned.count, 'segment')} of {len(planned.decisions):,}"
        parts.append(f"To the trash: {many}, {size(planned.bytes_trashed)}.")
    elif planned is not None:
        parts.append("Nothing to remove.")
    if shown.is_due and shown.due:
        parts.append(f"To be freed for good from the trash: {size(shown.due)}.")
    elif shown.is_due:
        parts.append("Nothing in the trash is old enough to be freed.")
    return " ".join(parts)


def strangers(dues: Iterable[Due]) -> Iterator[str]:
    """Yield a sentence for each trash that has files which were never pruned."""
    for due in dues:
        named = ", ".join(printable(name, 60) for name in due.strangers[:3])
        more = f" and {len(due.strangers) - 3:,} more" if len(due.strangers) > 3 else ""  # noqa: PLR2004 - as above
        name = printable(due.where.session)
        if named:
            yield f"The trash of {name} has files that were never pruned: {named}{more}. They stay."


def done(trashed: int, freed: int) -> str:
    """Return the sentence about what happened; both numbers are bytes."""
    return f"Moved {size(trashed)} to the trash and freed {size(freed)}.\n"


def as_json(shown: Shown, trashed: int, freed: int, *, dry_run: bool) -> str:
    """Return the same for programs."""
    planned = shown.planned
    document = {
        "segments": [] if planned is None else decisions(planned),
        "policy": None if planned is None else policy.in_words(planned.policy),
        "bytes_trashed": trashed,
        "bytes_freed": freed,
        "dry_run": dry_run,
    }
    return common.as_json(document)


def decisions(planned: PrunePlan) -> list[dict[str, Any]]:
    """Return what a plan does to each segment, for programs."""
    return [
        {
            "session": entry.segment.session.rpartition("/")[2],
            "index": entry.segment.index,
            "bytes": entry.segment.bytes,
            "keep": entry.keep,
            "reasons": list(entry.reasons),
        }
        for entry in planned.decisions
    ]
