"""What `restore` prints. Pure.

Rule: a dry run and the run itself show the same, in the same order: what comes from the trash, what
was put away, the live file, and what is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sessrotate.errors import printable
from sessrotate.render import common, in_place
from sessrotate.render import outcomes as shown_outcomes
from sessrotate.render.common import count, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sessrotate.archive.place import Place
    from sessrotate.in_place.outcome import Outcome
    from sessrotate.job.journal import Run
    from sessrotate.render.outcomes import Seen
    from sessrotate.retention.way_back import WayBack

FIGURES: Final[Mapping[str, Callable[[Outcome], str]]] = {
    "live file": lambda entry: size(entry.before),
    "then": lambda entry: size(entry.size),
}
_RUNS: Final = ("run", "when (UTC)", "command", "sessions", "undoing it")
_DAY: Final = 86_400.0


def sentences(plan: WayBack, *, dry_run: bool, is_short: bool = False) -> Iterator[str]:
    """Yield the sentences about one session; `is_short` is whether it is to stay rotated."""
    name = printable(plan.where.session)
    if plan.finished:
        yield plan.finished
    if not (plan.is_anything or plan.finished):
        yield _nothing(name, is_short=is_short)
        return
    if plan.pruned:
        verb = "Would bring" if dry_run else "Brought"
        yield f"{verb} {count(len(plan.pruned), 'segment')} of {name} back from the trash."
    if plan.away is not None:
        how, where = "back", printable(str(plan.where.live))
        verb = "Would put" if dry_run else "Put"
        if plan.is_rollout:
            verb, how = "Would make" if dry_run else "Made", "plain again"
        yield f"{verb} {name} {how}: {size(plan.away.size)} in {where}."
        if plan.is_rollout:
            yield "Nothing compresses it by itself for 30 days."
    if plan.whole is not None:
        yield in_place.restored(plan.where.session, plan.whole, dry_run=dry_run)
    if plan.unused is not None:
        verb = "would count" if dry_run else "counts"
        yield (
            f"It {verb} as used now: after {plan.unused / _DAY:,.0f} days without use its client "
            "would delete it within a day."
        )
    if plan.missing:
        yield f"{name} cannot be whole: {plan.missing}."


def on_disk(where: Place, session: int, kept: int) -> str:
    """Return what a session that is whole again takes of the disk, and what its archive keeps."""
    if not kept:
        return f"On disk, it takes {size(session)}.\n"
    free = f"`sessrotate prune {printable(where.session)} --empty-trash --grace 0`"
    taken = f"On disk, it takes {size(session)}, and {size(kept)} of that is its archive"
    return f"{taken}: {free} frees it.\n"


def _nothing(name: str, *, is_short: bool) -> str:
    if is_short:
        return f"Nothing to restore: {name} was not put away, and none of it is in the trash."
    return f"Nothing to restore: {name} is whole."


def old(age: float, period: float) -> str | None:
    """Say that a session that was put back is one that its client deletes; None if it is not.

    `age` is how many seconds ago its live file was changed, and `period` after how many the client
    deletes it.
    """
    if age < period:
        return None
    return (
        f"It was last changed {age / _DAY:,.0f} days ago, and its client deletes sessions after "
        f"{period / _DAY:,.0f} days, at its next start. To keep it, `touch` the file now or raise "
        "cleanupPeriodDays; `restore` without --keep-times does that for you."
    )


def heading(run: Run) -> str:
    """Return the line that says which run is undone."""
    at = common.time(printable(run.at))
    return f"Undoing run {run.number}, `{printable(run.command)}` of {at} (UTC).\n"


def no_run(*, is_any: bool) -> str:
    """Say that no run is left to be undone; `is_any` is whether one is on record."""
    why = "every run on record was undone" if is_any else "no run over many sessions is on record"
    return f"Nothing to restore: {why}.\n"


def runs(told: Sequence[tuple[Run, Sequence[Outcome]]]) -> str:
    """Return the table of runs, each with the plan of undoing it."""
    if not told:
        return no_run(is_any=False)
    rows = [
        (
            f"{run.number}",
            common.time(printable(run.at)),
            printable(run.command, 40),
            f"{len(run.sessions):,}",
            total(found) if run.is_open else "undone",
        )
        for run, found in told
    ]
    table = common.plain_table(_RUNS, rows, left={"when (UTC)", "command", "undoing it"})
    return f"{table}`sessrotate restore --run N` shows each session of run N first, and asks.\n"


def runs_json(told: Sequence[tuple[Run, Sequence[Outcome]]]) -> str:
    """Return the same for programs."""
    rows = [
        {
            "number": run.number,
            "command": run.command,
            "at": run.at,
            "sessions": len(run.sessions),
            "undone": not run.is_open,
            "come_back": sum(each.result == "planned" for each in found),
            "bytes": _grown(found),
        }
        for run, found in told
    ]
    return common.as_json({"runs": rows})


def outcomes(found: Sequence[Outcome], plans: Mapping[Place, WayBack], seen: Seen) -> Iterator[str]:
    """Yield the table of what became of each session, the sum, and how all go on from there."""
    if not found:
        yield "Nothing to restore: no session is rotated, pruned or put away."
        return
    yield from shown_outcomes.table(found, FIGURES, seen)
    yield total(found)
    yield from _under_rules(found, plans)


def _under_rules(found: Sequence[Outcome], plans: Mapping[Place, WayBack]) -> Iterator[str]:
    """Say that what is back stays so, and what brings all of it back under the rules at once."""
    back = [
        printable(entry.session)
        for entry in found
        if entry.result in {"planned", "done"}
        and entry.where is not None
        and (plan := plans.get(entry.where)) is not None
        and (plan.whole is not None or plan.away is not None)
        and not plan.is_rollout
    ]
    if not back:
        return
    again = f"`sessrotate rotate {' '.join(back)}`"
    many = "them" if back[1:] else "it"
    yield (
        f"Nothing rotates {many} or puts {many} away by itself from then on: {again} brings "
        f"{f'all {len(back):,}' if back[1:] else 'it'} back under the rules."
    )


def total(found: Sequence[Outcome]) -> str:
    """Return the sum: how many sessions come back, or came, and how much that is."""
    changed = [entry for entry in found if entry.result in {"planned", "done"}]
    now = "comes" if len(changed) == 1 else "come"
    verb = "came" if any(entry.result == "done" for entry in changed) else now
    many = f"{len(changed):,} of {count(len(found), 'session')}"
    return f"{many} {verb} back: {size(_grown(found))} into the client's folder."


def _grown(found: Sequence[Outcome]) -> int:
    changed = (entry.freed for entry in found if entry.result in {"planned", "done"})
    return max(0, -sum(changed))


def as_json(
    found: Sequence[Outcome],
    plans: Mapping[Place, WayBack],
    *,
    dry_run: bool,
    run: Run | None = None,
) -> str:
    """Return the same for programs, of one session or of many."""
    document = {
        "dry_run": dry_run,
        "run": None
        if run is None
        else {"number": run.number, "command": run.command, "at": run.at},
        "sessions": [
            common.outcome(entry, bytes_before=entry.before, bytes_after=entry.size)
            | {"detail": entry.detail}
            | _parts(plans.get(entry.where) if entry.where is not None else None)
            for entry in found
        ],
    }
    return common.as_json(document)


def _parts(plan: WayBack | None) -> dict[str, Any]:
    whole = None if plan is None else plan.whole
    return {
        "from_trash": [] if plan is None else [*plan.pruned],
        "was_put_away": plan is not None and plan.away is not None,
        "segments_put_back": 0 if whole is None else len(whole.manifest.segments),
        "lost": [] if plan is None else [*plan.lost],
        "pending": None if whole is None else whole.pending,
    }
