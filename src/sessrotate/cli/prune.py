"""`sessrotate prune`: old segments go by a policy, seen before it happens."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from sessrotate import find, place, prune, render_prune
from sessrotate.cli import streams
from sessrotate.cli.options import Json, ManySessions, Quiet, Wait, age, size
from sessrotate.errors import SessrotateError, WrongUsageError
from sessrotate.retention import Policy

if TYPE_CHECKING:
    from sessrotate.prune import PrunePlan


def command(
    sessions: ManySessions = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Every archive of this machine.")] = False,
    keep_last: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Keep the last N of each session."),
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
            min=0,
            metavar="N",
            help="Keep the newest of each of the last N days that have any.",
        ),
    ] = None,
    keep_weekly: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="The same for weeks."),
    ] = None,
    keep_monthly: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="The same for months."),
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
        float,
        typer.Option(
            parser=age, metavar="AGE", help="How long it stays in the trash.", show_default="7d"
        ),
    ] = 7 * 86400.0,
    wait: Wait = 10.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Show what would be done; change nothing.")
    ] = False,
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
    if bool(sessions) == every:
        raise WrongUsageError("Name a SESSION, or --all, and not both.")
    named = [place.of_archived(find.path_of(name)) for name in sessions or []]
    wanted = list(place.archives()) if every else named
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
    if policy.is_empty and empty_trash:
        planned = None
    else:
        with streams.progress("Verifying", 0, quiet=quiet) as progress:
            planned = prune.prepare(wanted, policy, now, progress)
        if not as_json:
            streams.write(render_prune.plan(planned))
    errors: list[SessrotateError] = []
    if planned is not None and planned.bytes_trashed and not dry_run:
        _ask(planned, yes=yes)
        errors += [error for _, error in prune.execute(planned, wait) if error is not None]
    freed = 0
    if empty_trash and not dry_run:
        freed = sum(prune.empty_trash(where, grace, now, wait) for where in wanted)
    if as_json:
        streams.write(render_prune.as_json(planned, freed, dry_run=dry_run))
    elif not dry_run:
        streams.write(render_prune.done(planned, freed))
    for error in errors[1:]:
        streams.message(f"sessrotate: {error}")
    if errors:
        raise errors[0]


def _ask(planned: PrunePlan, *, yes: bool) -> None:
    """Have a person confirm; raise WrongUsageError where nobody can be asked."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise WrongUsageError("Nobody is here to be asked: say --yes, or look with --dry-run.")
    streams.message(render_prune.question(planned))
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise WrongUsageError("Nothing was pruned.")
