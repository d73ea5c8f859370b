"""`sessrotate restore`: the one way back, whatever happened to a session."""

from __future__ import annotations

import itertools
import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from sessrotate import find
from sessrotate.archive import owner, place, restored
from sessrotate.cli import archives, driver, streams
from sessrotate.cli.options import DryRun, Json, ManySessions, Quiet, Wait, Yes, flag, one_of, whole
from sessrotate.clients.claude import cleanup
from sessrotate.clients.claude import client as claude
from sessrotate.clients.common import real
from sessrotate.errors import RefusedError, SessrotateError, WrongUsageError, printable
from sessrotate.in_place import gain, operations, outcome
from sessrotate.job import journal, run_log, undo
from sessrotate.job.undo import Undo
from sessrotate.render import restore as render_restore
from sessrotate.render.outcomes import Shown
from sessrotate.retention import restore, rollouts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sessrotate.archive.place import Place
    from sessrotate.in_place.outcome import Outcome
    from sessrotate.job.journal import Run
    from sessrotate.job.run_log import Change
    from sessrotate.retention.restore import Wanted
    from sessrotate.retention.way_back import WayBack


def command(
    sessions: ManySessions = None,
    *,
    last: Annotated[
        bool,
        flag("--last-run", "What the last run did that is not undone: `tidy`, `run`, `--all`."),
    ] = False,
    number: Annotated[
        int | None,
        typer.Option("--run", parser=whole(1), metavar="N", help="What run N did."),
    ] = None,
    every: Annotated[
        bool, flag("--all", "Every session that is rotated, pruned or put away.")
    ] = False,
    shows_runs: Annotated[
        bool, flag("--runs", "Only list the runs, and what undoing each would give.")
    ] = False,
    keep_rotated: Annotated[
        bool,
        flag(
            "--keep-rotated",
            "Leave the live file short: only what was pruned or put away comes back.",
        ),
    ] = False,
    project: Annotated[
        Path | None,
        flag(
            "--project",
            "Where the session's project is now, if its folder was moved while the session was "
            "put away: the folder the client runs in, or the one of the project's sessions.",
        ),
    ] = None,
    keep_times: Annotated[
        bool,
        flag(
            "--keep-times",
            "Leave the dates of files as they were, though the client's clean-up goes by them.",
        ),
    ] = False,
    wait: Wait = 10.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Bring a session back, whatever happened to it.

    Rotated: its live file is whole again, and its archive is freed after 7 days, or what the
    settings say. Pruned: its segments come back from the trash. Put away: it is back where its
    client looks, and counts as used now, or its client would delete it. Nothing rotates it or puts
    it away by itself until you rotate it by name. Compressed (Codex): its file is plain again.

    One session that you name is restored at once. Everything else is shown first, and you are
    asked. --run N undoes what a run did to many sessions (`tidy`, `run`, `--all`, several that you
    named). What was changed since is left alone, and named.
    """
    others = [last, number is not None, every, shows_runs]
    one_of(sessions, any(others), "a SESSION or pass --last-run, --run N, --runs or --all")
    if sum(others) > 1:
        raise WrongUsageError("Pass one of --last-run, --run N, --runs and --all.")
    if project is not None and any(others):
        raise WrongUsageError("--project needs a SESSION.")
    now = None if keep_times else time.time()
    how = _How(wait, dry_run, yes, as_json, quiet, touch=now, is_short=keep_rotated)
    if shows_runs:
        _list_runs(how)
        return
    if last or number is not None:
        _undo(number, how)
        return
    named = (_place(session, project) for session in sessions or ())
    away = (*place.archives(), *rollouts.compressed_ones()) if every else named
    places = [*dict.fromkeys(away)]
    wanted = restore.SHORT if keep_rotated else restore.ALL
    wanted = replace(wanted, is_placed=project is not None)
    if every:
        _many([Undo(where, wanted) for where in places], how, is_named=False)
    elif len(places) == 1:
        _one(places[0], wanted, how)
    else:
        _many([Undo(where, wanted) for where in places], how)


class _How(driver.Options, frozen=True, kw_only=True):
    """The options; `touch` is what files are dated that the client would delete (since 1970)."""

    touch: float | None
    is_short: bool


def _place(session: str, project: Path | None) -> Place:
    path = find.path_of(session)
    where = find.archived_of(path) if path.is_dir() else rollouts.meant(path)
    if not rollouts.is_one(where):
        owner.check(where)
    if project is None:
        return where
    there = [where, _in_project(where, project)]
    for each in there:
        if os.path.lexists(each.live):
            raise RefusedError(
                f"{printable(str(each.live))} is there: --project is for a session that is not. "
                "Move the file away, or restore without --project."
            )
    return there[-1]


def _in_project(where: Place, folder: Path) -> Place:
    """Return the place of a session whose live file is to come back to another project.

    That is named by the folder of its sessions, or by the one that the client runs in.
    """
    projects, here = real(claude.projects_folder()), folder.absolute()
    name = place.project_of(projects, here.parent.resolve() / here.name)
    return next(place.all_named(projects, name or claude.project_name(here), (where.session,)))


# ── one ──────────────────────────────────────────────────────────────────────────────────────


def _one(where: Place, wanted: Wanted, how: _How) -> None:
    """Restore one session, or show what that would do, and raise what keeps it from that."""
    if how.dry_run:
        done = _prepared(where, wanted, how)
    else:
        done = restore.restore(
            where, wanted, how.wait, driver.progress(quiet=how.quiet), touch=how.touch
        )
    if done.refusal is not None:
        raise done.refusal
    became = done.outcome("planned" if how.dry_run else "done")
    document = render_restore.as_json([became], {done.where: done}, dry_run=how.dry_run)
    failure = journal.plain_again(where) if done.is_rollout and not how.dry_run else None
    shown = Shown(_lines(done, how), document, warnings=[failure])
    driver.show(shown, as_json=how.as_json)
    is_back = not done.is_rollout and (done.away is not None or done.whole is not None)
    if is_back and not how.dry_run and how.touch is None:
        status = done.where.live.stat()
        age, period = time.time() - status.st_mtime, _period(done.where.live, status)
        if (told := render_restore.old(age, period)) is not None:
            streams.message(told)
    if how.dry_run:
        restore.check_room(done)


def _lines(done: WayBack, how: _How) -> Iterator[str]:
    """Yield what is said of one session, and what it takes of the disk."""
    yield from render_restore.sentences(done, dry_run=how.dry_run, is_short=how.is_short)
    if done.whole is not None and not how.dry_run:
        kept = restored.of(done.where)
        taken = gain.measured(done.where)
        yield render_restore.on_disk(done.where, taken, 0 if kept is None else kept.allocated)


def _prepared(where: Place, wanted: Wanted, how: _How) -> WayBack:
    """Return the plan; where files keep their dates, none says that it counts as used now."""
    plan = restore.prepare(where, wanted)
    return plan if how.touch is not None else replace(plan, unused=None)


def _period(live: Path, status: os.stat_result) -> float:
    """Return after how many seconds without use the client deletes this session."""
    rule = cleanup.in_force()
    at = rule.deletes_at(status, is_desktop=cleanup.is_desktop(live))
    return math.inf if at is None else at - status.st_mtime


# ── several ──────────────────────────────────────────────────────────────────────────────────


def _list_runs(how: _How) -> None:
    """List the runs, and what undoing each would give now."""
    noted = run_log.changes()
    told = [(run, _became(run, noted, how) if run.is_open else []) for run in journal.runs(noted)]
    driver.end(
        Shown(render_restore.runs(told), render_restore.runs_json(told)), as_json=how.as_json
    )


def _undo(number: int | None, how: _How) -> None:
    """Undo a run, the last that is not undone for None."""
    noted = run_log.changes()
    runs = journal.runs(noted)
    run = next((each for each in runs if each.number == number), None)
    if number is None:
        still = [each for each in reversed(runs) if each.is_open]
        # Whatever cannot be undone any more must not be the last run for ever.
        outcomes = ((each, _became(each, noted, how)) for each in still)
        can = (each for each, found in outcomes if any(one.result == "planned" for one in found))
        run = next(can, still[0] if still else None)
    if run is None and number is not None:
        raise WrongUsageError(
            f"No run {number} is on record: `sessrotate restore --runs` lists those that are."
        )
    if run is None:
        none = render_restore.as_json([], {}, dry_run=how.dry_run)
        shown = Shown([render_restore.no_run(is_any=bool(runs))], none)
        driver.end(shown, as_json=how.as_json)
    if not how.as_json:
        streams.write_lines([render_restore.heading(run)])
    _many(_undone(run, noted, how), how, run, is_named=False)


def _became(run: Run, noted: Sequence[Change], how: _How) -> list[Outcome]:
    """Return what undoing a run would come to now."""
    return [_planned(each, how, {}, is_named=False) for each in _undone(run, noted, how)]


def _undone(run: Run, noted: Sequence[Change], how: _How) -> list[Undo]:
    """Return what undoes a run, in which every session stays rotated where that is wanted."""
    planned = undo.plan(run, noted)
    if not how.is_short:
        return planned
    return [
        replace(each, wanted=each.wanted and replace(each.wanted, whole=False)) for each in planned
    ]


def _many(
    undone: Sequence[Undo], how: _How, run: Run | None = None, *, is_named: bool = True
) -> None:
    """Plan all restorations, ask, and carry them out; `is_named`: of each its owner said its id."""
    plans: dict[Place, WayBack] = {}
    if not how.dry_run:
        left = (each.where for each in undone if each.where and not rollouts.is_one(each.where))
        operations.finish_interrupted(left, how.wait, driver.progress(quiet=how.quiet))
    planned = [_planned(each, how, plans, is_named=is_named) for each in undone]
    seen = archives.changed(() if how.as_json else planned)

    def do() -> Shown:
        found, failure, number = [*planned], None, itertools.count(1)
        many = sum(each.result == "planned" for each in planned)
        for at, each in enumerate(planned):
            if each.result == "planned":
                if not how.quiet and not how.as_json:
                    streams.message(f"{next(number)} of {many}: {printable(each.session)}")
                found[at] = _done(undone[at], each, how, plans)
                failure = _note(undone[at], found[at], how) or failure
        shown = render_restore.shown(found, plans, seen, run, dry_run=False)
        return replace(shown, warnings=[failure])

    driver.carry_out(render_restore.shown(planned, plans, seen, run, dry_run=True), do, how)


def _note(wanted: Undo, became: Outcome, how: _How) -> SessrotateError | None:
    """Note that a session's part of a run was undone; return why that could not be written.

    A session that stays rotated, as somebody wants it, is not as it was.
    """
    where, noted = became.where, wanted.noted
    if where is None or became.result != "done" or how.is_short:
        return None
    if noted is None:
        return journal.plain_again(where) if rollouts.is_one(where) else None
    return journal.undone(noted, where)


def _planned(undo: Undo, how: _How, plans: dict[Place, WayBack], *, is_named: bool) -> Outcome:
    if undo.left is not None or undo.where is None or undo.wanted is None:
        return undo.left or outcome.Outcome(undo.where, "nothing to do")
    wanted = undo.wanted

    def look(where: Place) -> Outcome:
        plan = _prepared(where, wanted, how)
        if plan.refusal is not None and is_named:
            raise plan.refusal
        restore.check_room(plan, sum(each.takes for each in plans.values()))
        plans[where] = plan
        return _with(plan.outcome("planned"), undo.said)

    return next(outcome.each([undo.where], look, "read the session"))


def _done(undo: Undo, planned: Outcome, how: _How, plans: dict[Place, WayBack]) -> Outcome:
    wanted = undo.wanted or restore.ALL
    shown = driver.progress(quiet=how.quiet)

    def act(where: Place) -> Outcome:
        plan = plans[where]
        done = restore.restore(where, wanted, how.wait, shown, touch=how.touch, shown=plan)
        plans[done.where] = done  # where its project is by now
        return _with(done.outcome("done"), undo.said)

    wheres = [planned.where] if planned.where is not None else []
    return next(outcome.each(wheres, act, "restore the session"))


def _with(became: Outcome, said: str) -> Outcome:
    return replace(became, detail="; ".join(filter(None, (became.detail, said))))
