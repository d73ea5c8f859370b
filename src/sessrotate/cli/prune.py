"""`sessrotate prune`: old segments go by a policy, seen before it happens."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from sessrotate.cli import archives, streams
from sessrotate.cli.options import DryRun, Every, Json, ManySessions, Quiet, Wait, age, size
from sessrotate.errors import SessrotateError, WrongUsageError
from sessrotate.render import prune as render_prune
from sessrotate.retention import prune
from sessrotate.retention.policy import Policy

if TYPE_CHECKING:
    from sessrotate.archive.place import Place
    from sessrotate.render.prune import Shown
    from sessrotate.retention.prune import PrunePlan


def command(
    sessions: ManySessions = None,
    *,
    every: Every = False,
    keep_last: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Keep the last N of each session."),
    ] = None,
    keep_within: Annotated[
        float | None,
        typer.Option(
            parser=age,
            metavar="AGE",
            help="Keep what is at most so much older than its session's newest.",
        ),
    ] = None,
    keep_daily: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Keep the newest of each of the last N days that have any.",
        ),
    ] = None,
    keep_weekly: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="The same for weeks."),
    ] = None,
    keep_monthly: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="The same for months."),
    ] = None,
    max_age: Annotated[
        float | None,
        typer.Option(
            parser=age,
            metavar="AGE",
            help="Remove what is older, and is not kept by another rule.",
        ),
    ] = None,
    max_size: Annotated[
        int | None,
        typer.Option(
            parser=size,
            metavar="SIZE",
            help="Remove the oldest that no rule keeps until all together fit.",
        ),
    ] = None,
    empty_trash: Annotated[
        bool, typer.Option("--empty-trash", help="Free what has been in the trash for long enough.")
    ] = False,
    grace: Annotated[
        float | None,
        typer.Option(
            parser=age, metavar="AGE", help="How long it stays in the trash.", show_default="7d"
        ),
    ] = None,
    wait: Wait = 10.0,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Remove old archived segments by a policy, with the reason for each.

    They go to the archive's trash, and `undelete` brings them back; only --empty-trash frees
    their bytes, after the grace time. The newest sealed segment of a session, pinned ones, what
    does not verify and sessions that a client runs always stay. With keep rules alone, what none
    of them keeps goes; with --max-age or --max-size only what these name.
    """
    wanted = archives.named(sessions, every=every)
    policy = Policy(
        keep_last=keep_last,
        keep_within=keep_within,
        keep_daily=keep_daily,
        keep_weekly=keep_weekly,
        keep_monthly=keep_monthly,
        max_age=max_age,
        max_size=max_size,
    )
    now = time.time()
    grace = prune.GRACE if grace is None else grace
    errors: list[SessrotateError] = []
    planned = None
    if not policy.is_empty or not empty_trash:
        with streams.progress("Verifying", 0, quiet=quiet) as progress:
            planned = prune.prepare(wanted, policy, now, progress)
        errors += [error for _, error in planned.failures]
    dues = _due(wanted, grace, now, errors) if empty_trash else []
    freed = sum(due.bytes for due in dues)
    if empty_trash and grace == 0 and planned is not None:
        freed += planned.bytes_trashed  # right behind what was there before
    shown = render_prune.Shown(planned, freed, is_due=empty_trash)
    if not as_json:
        width = streams.terminal_width()
        streams.write(render_prune.plan(shown, is_short=width is not None))
    for due in dues:
        if due.strangers:
            streams.message(render_prune.strangers(due))
    if dry_run or not _agreed(shown, yes=yes):
        if as_json:
            streams.write(render_prune.as_json(shown, shown.trashed, shown.due, dry_run=True))
        archives.end(errors)
        return
    trashed = _execute(planned, wait, errors)
    freed = _emptied(wanted, grace, now, wait, errors) if empty_trash else 0
    if as_json:
        streams.write(render_prune.as_json(shown, trashed, freed, dry_run=False))
    else:
        streams.write(render_prune.done(trashed, freed))
    archives.end(errors)


def _due(
    wanted: list[Place], grace: float, now: float, errors: list[SessrotateError]
) -> list[prune.Due]:
    found = []
    for where in wanted:
        try:
            found.append(prune.due(where, grace, now))
        except SessrotateError as error:
            if str(error) not in map(str, errors):  # the plan met it, too
                errors.append(error)
    return found


def _execute(planned: PrunePlan | None, wait: float, errors: list[SessrotateError]) -> int:
    """Carry out a plan; return how many bytes went to the trash."""
    trashed = 0
    if planned is not None:
        for holding, error in prune.execute(planned, wait):
            if error is None:
                trashed += planned.bytes_of(holding)
            else:
                errors.append(error)
    return trashed


def _emptied(
    wanted: list[Place], grace: float, now: float, wait: float, errors: list[SessrotateError]
) -> int:
    """Empty the trash of archives; return how many bytes that freed."""
    freed = 0
    for where in wanted:
        try:
            freed += prune.empty_trash(where, grace, now, wait)
        except SessrotateError as error:
            if str(error) not in map(str, errors):
                errors.append(error)
    return freed


def _agreed(shown: Shown, *, yes: bool) -> bool:
    """Have a person confirm; raise WrongUsageError where nobody can be asked."""
    if yes or not shown.is_anything:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise WrongUsageError("Nobody is here to be asked: say --yes, or look with --dry-run.")
    streams.message(render_prune.question(shown))
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    streams.message("Nothing was changed.")
    return False
