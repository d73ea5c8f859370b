"""What `prune` prints: what each session loses and why, and the policy in words. Pure.

Rule: a dry run and the run itself show the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from sessrotate import render, units
from sessrotate.errors import printable
from sessrotate.render import count, outcomes, size
from sessrotate.render.outcomes import Seen, Shown
from sessrotate.retention import policy
from sessrotate.retention.policy import Decision

if TYPE_CHECKING:
    from sessrotate.retention.prune import PrunePlan
    from sessrotate.retention.trash import Due

_FIGURES: Final = ("remove", "size")
_TEXTS: Final = ("last record", "why")
_MANY: Final = 40
"""Above so many sessions, only those that lose something have a row; the others are counted."""

_EACH: Final = ("session", "#", "size", "last record", "", "why")


class Going(Struct, frozen=True):
    """What is about to happen: the plan, of nothing without a policy, and what the trash will free.

    `dues` are what each trash has, None if all of it stays, and `grace` is the grace period in
    seconds.
    """

    planned: PrunePlan
    dues: tuple[Due, ...] | None = None
    grace: float = 0.0

    @property
    def is_due(self) -> bool:
        """Whether anything goes for good."""
        return any(each.is_any for each in self.dues or ())

    @property
    def is_at_once(self) -> bool:
        """Whether what is pruned goes for good in the same run."""
        return self.dues is not None and not self.grace

    @property
    def deleted(self) -> int:
        """How many segments go for good."""
        return sum(len(each.files) for each in self.dues or ())

    @property
    def freed(self) -> int:
        """How many bytes of the disk what goes for good frees."""
        return sum(each.disk for each in self.dues or ())

    @property
    def is_anything(self) -> bool:
        """Whether anything is removed or freed at all."""
        return bool(self.is_due or self.planned.count)


def plan(going: Going, seen: Seen, *, is_verbose: bool = False) -> Iterator[str]:
    """Yield the table of a plan, the policy in words, and what goes for good.

    The table has a row for each session; with `is_verbose`, for each segment.
    """
    planned = going.planned
    if not planned.policy.is_empty:
        yield from _segments(planned.decisions) if is_verbose else _sessions(planned, seen)
        yield policy.in_words(planned.policy)
        if not planned.count:
            yield "Nothing to remove."
    if going.dues is not None:
        yield from _for_good(going.dues, seen)
        if any(each.kept for each in going.dues):
            yield _kept(going.dues, going.grace)
        elif not going.is_due:
            yield "Nothing can be deleted for good."


def _for_good(dues: Iterable[Due], seen: Seen) -> Iterator[str]:
    """Yield a table of what goes for good of each session."""
    rows = [(each.where, (size(each.disk), _said(each))) for each in dues if each.is_any]
    yield from outcomes.of_places(rows, ("frees",), ("deleted for good",), seen)


def _said(due: Due) -> str:
    if due.restored is not None:
        return "its old archive: the live file has all of it"
    return f"{count(len(due.files), 'pruned segment')}: no command brings them back"


def _kept(dues: Sequence[Due], grace: float) -> str:
    """Say what stays of what was pruned, and of the archives of restored sessions, and why."""
    kept = sum(each.kept for each in dues)
    why = [f"their grace period of {units.span(grace)} is not over"] if grace else []
    if any(each.is_owed and each.kept for each in dues):
        why.append("their session was restored and is not whole any more (`sessrotate restore`)")
    why.append("something still needs them (see `doctor`)")
    stays = f"Kept {size(kept)} of pruned segments and restored sessions' archives"
    return f"{stays}: {'either ' if why[1:] else ''}{', or '.join(why)}."


def _sessions(planned: PrunePlan, seen: Seen) -> Iterator[str]:
    places = {each.key: each.where for each in planned.holdings}
    grouped = groupby(planned.decisions, key=lambda entry: entry.segment.session)
    found = [(places[session], [*group]) for session, group in grouped]
    losing = [each for each in found if not all(entry.keep for entry in each[1])]
    shown = found if len(found) <= _MANY else losing
    rows = [(where, _cells(segments)) for where, segments in shown]
    yield from outcomes.of_places(rows, _FIGURES, _TEXTS, seen)
    if others := len(found) - len(shown):
        more = count(others, "more session" if rows else "session")
        yield f"Nothing would be removed from {more}."


def _cells(segments: Sequence[Decision]) -> tuple[str, ...]:
    """Return what goes of a session and why, or else why all of it stays."""
    gone = [entry for entry in segments if not entry.keep]
    times = [entry.segment.time for entry in gone if entry.segment.time is not None]
    reasons = dict.fromkeys(reason for entry in gone or segments for reason in entry.reasons)
    return (
        f"{len(gone):,} of {len(segments):,}",
        size(sum(entry.segment.bytes for entry in gone)),
        _day(max(times, default=None)),
        printable(", ".join(reasons)),
    )


def _segments(decisions: Iterable[Decision]) -> Iterator[str]:
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
    return render.plain_table(_EACH, rows, left={"session", "last record", "", "why"})


def _day(time: float | None) -> str:
    return "-" if time is None else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"


def intent(going: Going, verb: str) -> str:
    """Return the sentence about what is about to happen; `verb` is Will or Would."""
    planned, parts = going.planned, []
    if planned.count:
        many = f"{count(planned.count, 'segment')} of {len(planned.decisions):,}"
        parts.append(f"move {many} ({size(planned.bytes_trashed)}) to the trash")
    if going.deleted:
        parts.append(f"delete {count(going.deleted, 'segment')} for good")
    if whole := sum(each.restored is not None for each in going.dues or ()):
        parts.append(f"delete the old archives of {count(whole, 'restored session')}")
    freed = f", which frees {size(going.freed)} of the disk" if going.is_due else ""
    return f"{verb} {' and '.join(parts)}{freed}."


def strangers(dues: Iterable[Due]) -> Iterator[str]:
    """Yield a sentence for each trash that has files which were never pruned."""
    for due in dues:
        named = units.some([printable(name, 60) for name in due.strangers])
        name = printable(due.where.session)
        if named:
            yield f"The trash of {name} has files that were never pruned: {named}. They stay."


def shown(going: Going, done: tuple[int, int] | None = None, *, dry_run: bool = False) -> Shown:
    """Return what is shown below the plan, of it or of what was `done`.

    That is how long the files are that moved, and what the disk gained, in bytes.
    """
    trashed, freed = done or (going.planned.bytes_trashed, going.freed)
    said = intent(going, "Would" if dry_run else "Will")
    if done is not None:
        said = _done(0 if going.is_at_once else trashed, freed)
    document = as_json(going, trashed, freed, dry_run=done is None)
    return Shown(
        [said] if going.is_anything else (),
        document,
        is_anything=True,
        question=intent(going, "Will"),
    )


def _done(trashed: int, freed: int) -> str:
    parts = []
    if trashed:
        parts.append(
            f"Moved {size(trashed)} to the trash: `restore` brings it back. It takes disk space "
            "until `sessrotate prune --all --empty-trash` deletes it, after its grace period."
        )
    if freed > 0:
        parts.append(f"Freed {size(freed)} for good.")
    return " ".join(parts) or "Nothing was changed."


def as_json(going: Going, trashed: int, freed: int, *, dry_run: bool) -> Iterator[str]:
    """Yield the same for programs."""
    rules = going.planned.policy
    document = {
        "segments": decisions(going.planned),
        "policy": None if rules.is_empty else policy.in_words(rules),
        "deleted": [
            {
                "session": each.where.session,
                "segments": len(each.files),
                "restored": each.restored is not None,
                "disk_bytes": each.disk,
            }
            for each in going.dues or ()
            if each.is_any
        ],
        "bytes_trashed": trashed,
        "bytes_freed": freed,
        "dry_run": dry_run,
    }
    yield render.as_json(document)


def decisions(planned: PrunePlan) -> list[dict[str, Any]]:
    """Return what a plan does to each segment, for programs."""
    return [
        {
            "session": entry.segment.session.rpartition("/")[2],
            "index": entry.segment.index,
            "bytes": entry.segment.bytes,
            "disk_bytes": entry.segment.disk,
            "keep": entry.keep,
            "reasons": list(entry.reasons),
        }
        for entry in planned.decisions
    ]
