"""What `restore` prints. Pure.

Rule: a dry run and the run itself show the same, in the same order: what comes from the trash, what
was put away, the live file, and what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from sessrotate import render
from sessrotate.errors import printable
from sessrotate.in_place.outcome import Outcome
from sessrotate.render import count, outcomes, size
from sessrotate.render.outcomes import BROUGHT_BACK, Seen, Shown
from sessrotate.units import DAY

if TYPE_CHECKING:
    from sessrotate.archive.place import Place
    from sessrotate.in_place.restore import RestorePlan
    from sessrotate.job.run_log import Run
    from sessrotate.retention.restore import WayBack

_NAMED: Final = 5
"""Sessions at most that a command in a sentence names."""

_UNDOING: Final = {"undone": "undone", "impossible": "nothing of it can be undone"}

_RUNS: Final = ("run", "when (UTC)", "command", "sessions", "undoing it")


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
            yield "Nothing compresses it automatically for 30 days."
    if plan.whole is not None:
        yield _whole(name, plan.whole, dry_run=dry_run)
    if plan.unused is not None:
        verb = "would count" if dry_run else "counts"
        yield (
            f"It {verb} as used now: it was unused for {plan.unused / DAY:,.0f} days, and its "
            "client would delete it within a day."
        )
    if plan.missing:
        yield f"{name} cannot be made whole: {plan.missing}."


def _whole(name: str, plan: RestorePlan, *, dry_run: bool) -> str:
    """Say how large the live file is that is whole again, what that needs, and what it lacks."""
    what = f"{count(len(plan.manifest.segments), 'segment')} ({size(plan.manifest.source_bytes)})"
    put, is_now, is_kept = (
        ("Would put", "would be", "would be kept") if dry_run else ("Put", "is now", "is kept")
    )
    line = (
        f"{put} {what} of {name} back: the live file {is_now} {size(plan.size)}, and the archive "
        f"{is_kept} until its grace period is over."
    )
    if dry_run:
        free = "" if plan.free is None else f"; {size(plan.free)} is free"
        line += f" This needs {size(plan.size)} of free space{free}."
    elif plan.pending:
        line += f" Not freed yet: {plan.pending}"
    if plan.tail is None:
        last = plan.manifest.segments[-1].segment.last_timestamp
        after = "the last rotation" if last is None else printable(render.time(last))
        line += f" The live file was gone, and with it everything after {after}: look for that in "
        line += "`aside` or a backup."
    return line


def on_disk(where: Place, session: int, kept: int) -> str:
    """Return what a session that is whole again takes of the disk, and what its archive keeps."""
    if not kept:
        return f"On disk, the session takes {size(session)}."
    free = f"`sessrotate prune {printable(where.session)} --empty-trash --grace 0`"
    taken = f"On disk, the session takes {size(session)}, of which its archive takes {size(kept)}"
    return f"{taken}. The archive is a copy, kept for the grace period: {free} deletes it now."


def _nothing(name: str, *, is_short: bool) -> str:
    if is_short:
        return f"Nothing to restore: {name} was not put away, and none of it is in the trash."
    return f"Nothing to restore: {name} is whole."


def old(age: float, period: float) -> str:
    """Say that a session that was put back is one that its client deletes.

    `age` is how many seconds ago its live file was changed, and `period` after how many the client
    deletes it.
    """
    return (
        f"It was last changed {age / DAY:,.0f} days ago, and its client deletes sessions after "
        f"{period / DAY:,.0f} days, at its next start. To keep it, `touch` the file now or raise "
        "cleanupPeriodDays; `restore` without --keep-times does that for you."
    )


def heading(run: Run) -> str:
    """Return the line that says which run is undone."""
    at = render.time(printable(run.at))
    return f"Undoing run {run.number}, `{printable(run.command)}` of {at} (UTC)."


def no_run(*, is_any: bool) -> str:
    """Say that no run is left to be undone; `is_any` is whether one is on record."""
    why = (
        "every run on record has been undone, or cannot be"
        if is_any
        else "there is no record of a run over many sessions"
    )
    return f"Nothing to restore: {why}."


def runs(told: Sequence[tuple[Run, Sequence[Outcome]]]) -> Iterator[str]:
    """Yield the table of runs, each with the plan of undoing it."""
    if not told:
        yield no_run(is_any=False)
        return
    rows = [
        (
            f"{run.number}",
            render.time(printable(run.at)),
            printable(run.command, 40),
            f"{len(run.sessions):,}",
            _UNDOING.get(run.undoing) or BROUGHT_BACK.total(found, dry_run=True),
        )
        for run, found in told
    ]
    yield from render.plain_table(_RUNS, rows, left={"when (UTC)", "command", "undoing it"})
    yield "`sessrotate restore --run N` shows each session of run N first, and asks."


def runs_json(told: Sequence[tuple[Run, Sequence[Outcome]]]) -> Iterator[str]:
    """Yield the same for programs."""
    rows = [
        {
            "number": run.number,
            "command": run.command,
            "at": run.at,
            "sessions": len(run.sessions),
            "undone": run.undoing == "undone",
            "come_back": sum(each.result == "planned" for each in found),
            "bytes": outcomes.grown(found),
        }
        for run, found in told
    ]
    yield render.as_json({"runs": rows})


def shown(
    found: Sequence[Outcome],
    plans: Mapping[Place, WayBack],
    seen: Seen,
    run: Run | None,
    *,
    dry_run: bool,
    trash: int = 0,
) -> Shown:
    """Return what is shown of several sessions, and how all go on from there.

    `trash` is how many bytes of the disk the trash takes, with the archives of restored sessions.
    """
    told = outcomes.shown(BROUGHT_BACK, found, seen, dry_run=dry_run)
    lines = chain(told.lines, _under_rules(found, plans), _still_taken(trash))
    none = ["Nothing to restore: no session is rotated, pruned or put away."]
    document = as_json(found, plans, dry_run=dry_run, run=run)
    return replace(told, lines=lines if found else none, document=document)


def _under_rules(found: Sequence[Outcome], plans: Mapping[Place, WayBack]) -> Iterator[str]:
    """Say that what is back stays so, and what brings all of it back under the rules at once."""
    back = [
        printable(entry.session)
        for entry in found
        if entry.result in outcomes.CHANGED
        and entry.where is not None
        and entry.where in plans
        and plans[entry.where].is_back
    ]
    if not back:
        return
    again = f"`sessrotate rotate {' '.join(back) if len(back) <= _NAMED else 'SESSION …'}`"
    many, age = ("them", "their age") if back[1:] else ("it", "its age")
    yield (
        f"Nothing rotates {many} automatically, or archives {many} for {age}, until you run "
        f"{again}."
    )


def _still_taken(trash: int) -> Iterator[str]:
    """Say what the disk has back only later, and what gives it back at once."""
    if trash:
        yield (
            f"Archives of restored sessions and the trash take up {size(trash)} until their grace "
            "period is over: `sessrotate prune --all --empty-trash --grace 0` deletes them."
        )


def as_json(
    found: Sequence[Outcome],
    plans: Mapping[Place, WayBack],
    *,
    dry_run: bool,
    run: Run | None = None,
) -> Iterator[str]:
    """Yield the same for programs, of one session or of many."""
    which = run and {"number": run.number, "command": run.command, "at": run.at}
    parts = partial(_parts, plans)
    return outcomes.as_json(BROUGHT_BACK, found, parts, dry_run=dry_run, run=which)


def _parts(plans: Mapping[Place, WayBack], entry: Outcome) -> dict[str, Any]:
    plan = None if entry.where is None else plans.get(entry.where)
    whole = None if plan is None else plan.whole
    return {
        "detail": entry.detail,
        "from_trash": [] if plan is None else [*plan.pruned],
        "was_put_away": plan is not None and plan.away is not None,
        "segments_put_back": 0 if whole is None else len(whole.manifest.segments),
        "lost": [] if plan is None else [*plan.lost],
        "pending": None if whole is None else whole.pending,
    }
