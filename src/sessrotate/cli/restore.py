"""`sessrotate restore`: the one way back, whatever happened to a session."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from msgspec.structs import replace

from sessrotate import clients, find
from sessrotate.archive import owner, place, restored
from sessrotate.archive.place import Place
from sessrotate.cli import archives, driver, streams
from sessrotate.cli.options import DryRun, Json, ManySessions, Quiet, Wait, Yes, flag, one_of, whole
from sessrotate.clients.common import real
from sessrotate.errors import RefusedError, SessrotateError, WrongUsageError, printable
from sessrotate.in_place import gain, operations, outcome
from sessrotate.in_place.outcome import Outcome
from sessrotate.job import run_log, undo
from sessrotate.job.run_log import Change, Run
from sessrotate.job.undo import Undo
from sessrotate.render import restore as render_restore
from sessrotate.render.outcomes import Shown
from sessrotate.retention import restore, rollouts
from sessrotate.retention.restore import WantedBack, WayBack


def command(
    sessions: ManySessions = None,
    *,
    last: Annotated[
        bool,
        flag("--last-run", "Undo the last run that you have not undone yet."),
    ] = False,
    number: Annotated[
        int | None,
        typer.Option("--run", parser=whole(1), metavar="N", help="Undo run N."),
    ] = None,
    every: Annotated[
        bool, flag("--all", "Every session that is rotated, pruned, put away or compressed.")
    ] = False,
    shows_runs: Annotated[
        bool, flag("--runs", "Only list the runs, and what undoing each would bring back.")
    ] = False,
    keep_rotated: Annotated[
        bool,
        flag(
            "--keep-rotated",
            "Leave the live file short: bring back only what was pruned or put away.",
        ),
    ] = False,
    project: Annotated[
        Path | None,
        flag(
            "--project",
            "The new path of the session's project, if the project was moved while the session was "
            "put away: the folder in which the client runs, or the folder with the project's "
            "sessions.",
        ),
    ] = None,
    keep_times: Annotated[
        bool,
        flag(
            "--keep-times",
            "Keep the files' old dates, although the client's clean-up decides by these dates.",
        ),
    ] = False,
    wait: Wait = 10.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Bring a session back, whatever happened to it.

    Rotated: the live file is whole again, and `run` or `tidy` deletes the archive after 7 days, or
    as the settings say. Pruned: the segments come back from the trash. Put away: the session is
    back where its client looks, and its files get the current time as their date, so that the
    client does not delete them. Compressed (Codex): the file is decompressed.

    Nothing rotates a restored session automatically, or archives it for its age, until you rotate
    it by name.

    If you name one session, `restore` acts at once. Otherwise it shows the plan and asks first. A
    run is a `tidy`, a `run`, or a command for several sessions (or --all). --run N leaves alone
    sessions that were rotated, restored, pruned or replaced since then, and names them.
    """
    others = [last, number is not None, every, shows_runs]
    one_of(sessions, any(others), "a SESSION or pass --last-run, --run N, --runs or --all")
    if sum(others) > 1:
        raise WrongUsageError("Pass one of --last-run, --run N, --runs and --all.")
    if project is not None and any(others):
        raise WrongUsageError("--project needs a SESSION.")
    wanted = WantedBack(
        whole=not keep_rotated,
        is_placed=project is not None,
        touch=None if keep_times else time.time(),
    )
    how = _How(wait, dry_run, yes, as_json, quiet, wanted=wanted)
    if shows_runs:
        _list_runs(how)
    if last or number is not None:
        _undo(number, how)
    named = (_place(session, project) for session in sessions or ())
    away = (*place.archives(), *rollouts.compressed_ones()) if every else named
    places = [*dict.fromkeys(away)]
    plain = run_log.plain_again(filter(rollouts.is_one, places))
    undone = [Undo(where, wanted, noted=plain.get(where)) for where in places]
    if len(undone) == 1 and not every:
        _one(undone[0], how)
    else:
        _many(undone, how, is_named=not every)


class _How(driver.Options, frozen=True, kw_only=True):
    """The options; what is `wanted` of each session, at most."""

    wanted: WantedBack


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
                f"{printable(str(each.live))} exists: --project is for a session without a live "
                "file. `sessrotate archive` puts the session away first; or restore without "
                "--project."
            )
    return there[-1]


def _in_project(where: Place, folder: Path) -> Place:
    """Return the place of a session whose live file is to come back to another project.

    That is named by the folder of its sessions, or by the one that the client runs in.
    """
    files, here = clients.in_place().files, folder.absolute()
    projects = real(files.projects_folder())
    name = place.project_of(projects, here.parent.resolve() / here.name)
    if not name and not here.is_dir():
        shown = printable(str(here))
        streams.warn(
            f"There is no folder {shown}: a client finds the session once this folder exists."
        )
    return next(place.all_named(projects, name or files.project_name(here), (where.session,)))


# ── one ──────────────────────────────────────────────────────────────────────────────────────


def _one(only: Undo, how: _How) -> None:
    """Restore one session, or show what that would do, and raise what keeps it from that."""
    where = only.where
    if how.dry_run:
        done = restore.prepare(where, how.wanted)
    else:
        drawn = driver.progress(quiet=how.quiet)
        done = restore.restore(where, how.wanted, how.wait, drawn)
    if done.refusal is not None:
        raise done.refusal
    became = done.outcome("planned" if how.dry_run else "done")
    document = render_restore.as_json([became], {done.where: done}, dry_run=how.dry_run)
    shown = Shown(_lines(done, how), document, warnings=[_note(only, became, how)])
    driver.show(shown, as_json=how.as_json)
    if how.dry_run:
        restore.check_room(done)
    elif how.wanted.touch is None and done.is_back:
        status, rule = where.live.stat(), where.client.cleanup.in_force()
        at = rule.deletes_at(status, is_desktop=where.client.cleanup.is_desktop(where.live))
        if at is not None and at <= (now := time.time()):
            changed = status.st_mtime
            streams.message(render_restore.old(now - changed, at - changed))


def _lines(done: WayBack, how: _How) -> Iterator[str]:
    """Yield what is said of one session, and what it takes of the disk."""
    yield from render_restore.sentences(done, dry_run=how.dry_run, is_short=not how.wanted.whole)
    if done.whole is not None and not how.dry_run:
        kept = restored.of(done.where)
        taken = gain.measured(done.where)
        yield render_restore.on_disk(done.where, taken, 0 if kept is None else kept.allocated)


# ── several ──────────────────────────────────────────────────────────────────────────────────


def _list_runs(how: _How) -> NoReturn:
    """List the runs, and what undoing each would give now."""
    noted = run_log.changes()
    told = [
        (run, _became(run, noted, how) if run.undoing == "open" else [])
        for run in run_log.runs(noted)
    ]
    driver.end(
        Shown(render_restore.runs(told), render_restore.runs_json(told)), as_json=how.as_json
    )


def _undo(number: int | None, how: _How) -> NoReturn:
    """Undo a run, the last that is not undone for None."""
    noted = run_log.changes()
    runs = run_log.runs(noted)
    run = next((each for each in runs if each.number == number), None)
    if number is None:
        still = [each for each in reversed(runs) if each.undoing == "open"]
        # Whatever cannot be undone any more must not be the last run for ever.
        outcomes = ((each, _became(each, noted, how)) for each in still)
        can = (each for each, found in outcomes if any(one.result == "planned" for one in found))
        run = next(can, still[0] if still else None)
    if run is None and number is not None:
        raise WrongUsageError(
            f"There is no record of run {number}: `sessrotate restore --runs` lists the runs."
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
    return [_planned(each, {}, is_named=False) for each in _undone(run, noted, how)]


def _undone(run: Run, noted: Sequence[Change], how: _How) -> list[Undo | Outcome]:
    """Return what undoes a run, in which every session stays rotated where that is wanted."""
    is_whole, touch = how.wanted.whole, how.wanted.touch

    def meant(wanted: WantedBack) -> WantedBack:
        return replace(wanted, whole=wanted.whole and is_whole, touch=touch)

    return [
        replace(each, wanted=meant(each.wanted)) if isinstance(each, Undo) else each
        for each in undo.plan(run, noted)
    ]


def _many(
    undone: Sequence[Undo | Outcome], how: _How, run: Run | None = None, *, is_named: bool = True
) -> NoReturn:
    """Plan all restorations, ask, and carry them out; `is_named`: of each its owner said its id."""
    plans: dict[Place, WayBack] = {}
    drawn = driver.progress(quiet=how.quiet)
    if not how.dry_run:
        ours = (each.where for each in undone if isinstance(each, Undo))
        left = (where for where in ours if not rollouts.is_one(where))
        operations.finish_interrupted(left, how.wait)
    planned = [_planned(each, plans, is_named=is_named) for each in undone]
    seen = archives.changed(() if how.as_json else planned)
    number, many = itertools.count(1), sum(each.result == "planned" for each in planned)

    def act(each: Undo, where: Place) -> Outcome:
        shown = plans[where]
        if not how.quiet and not how.as_json:
            streams.message(f"{next(number)} of {many}: {printable(where.session)}")
        done = restore.restore(where, each.wanted, how.wait, drawn, shown=shown)
        plans[where] = done
        return _with(done.outcome("done"), each.said)

    def do() -> Shown:
        found, failure = [*planned], None
        for at, each in enumerate(undone):
            if isinstance(each, Undo) and planned[at].result == "planned":
                doing = outcome.each([each.where], partial(act, each), "restore the session")
                found[at] = next(doing)
                failure = _note(each, found[at], how) or failure
        trash = restored.trash_bytes()
        shown = render_restore.shown(found, plans, seen, run, dry_run=False, trash=trash)
        return replace(shown, warnings=[failure])

    driver.carry_out(render_restore.shown(planned, plans, seen, run, dry_run=True), do, how)


def _note(wanted: Undo, became: Outcome, how: _How) -> SessrotateError | None:
    """Note that a session's part of a run was undone; return why that could not be written.

    A session that stays rotated, as somebody wants it, is not as it was.
    """
    stays = not how.wanted.whole and not rollouts.is_one(wanted.where)
    if wanted.noted is None or became.result != "done" or stays:
        return None
    return run_log.undone(wanted.noted, wanted.where)


def _planned(each: Undo | Outcome, plans: dict[Place, WayBack], *, is_named: bool) -> Outcome:
    if isinstance(each, Outcome):
        return each

    def look(where: Place) -> Outcome:
        plan = restore.prepare(where, each.wanted)
        if plan.refusal is not None and is_named:
            raise plan.refusal
        restore.check_room(plan, sum(other.takes for other in plans.values()))
        plans[where] = plan
        return _with(plan.outcome("planned"), each.said)

    return next(outcome.each([each.where], look, "read the session"))


def _with(became: Outcome, said: str) -> Outcome:
    return replace(became, detail="; ".join(filter(None, (became.detail, said))))
