"""`sessrotate prune`: remove old segments by a policy, after showing what would go."""

from __future__ import annotations

import time
from functools import cache
from typing import Annotated

import typer
from msgspec.structs import replace

from sessrotate.archive import clock, restored
from sessrotate.archive.place import Place
from sessrotate.cli import archives, driver, streams
from sessrotate.cli.options import (
    DryRun,
    Every,
    Json,
    ManySessions,
    Quiet,
    Wait,
    Yes,
    aged,
    counted,
    flag,
    sized,
)
from sessrotate.errors import (
    RefusedError,
    SessrotateError,
    exit_code,
    worst,
)
from sessrotate.in_place.outcome import Outcome, each, failure
from sessrotate.job import config, run_log
from sessrotate.render import prune as render_prune
from sessrotate.render.outcomes import Shown
from sessrotate.render.prune import Going
from sessrotate.retention import prune, trash
from sessrotate.retention.policy import Policy
from sessrotate.retention.trash import Due


def command(
    sessions: ManySessions = None,
    *,
    every: Every = False,
    keep_last: Annotated[int | None, counted("Keep the last N segments of each session.")] = None,
    keep_within: Annotated[
        float | None,
        aged("Keep segments that are at most AGE older than the newest segment of their session."),
    ] = None,
    keep_daily: Annotated[
        int | None,
        counted("Keep the newest segment of each day, for the last N days that have segments."),
    ] = None,
    keep_weekly: Annotated[int | None, counted("The same for weeks.")] = None,
    keep_monthly: Annotated[int | None, counted("The same for months.")] = None,
    max_age: Annotated[
        float | None, aged("Remove segments older than AGE, unless a keep rule applies to them.")
    ] = None,
    max_size: Annotated[
        int | None,
        sized(
            "Remove the oldest segments, except those to which a keep rule applies, until all "
            "archives together fit in SIZE."
        ),
    ] = None,
    empty_trash: Annotated[
        bool,
        flag(
            "--empty-trash",
            "Delete pruned segments, and archives of restored sessions, for good once their grace "
            "period is over.",
        ),
    ] = False,
    grace: Annotated[
        float | None,
        aged("With --empty-trash: how long the grace period is.", default="as the settings say"),
    ] = None,
    wait: Wait = 10.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    is_verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Show every segment, and why it is kept or removed."),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Remove old segments from archives by a policy, after showing what each session loses.

    Removed segments move to the archive's trash, and `restore` brings them back. After the grace
    period, --empty-trash deletes them, and so do `tidy` and `run`. With only keep rules, `prune`
    removes everything that they do not keep; with --max-age or --max-size, only what these two
    rules select. These segments always stay: the newest segment of a session, pinned and damaged
    segments, and all segments of a running session.
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
    due_after = _grace(grace) if empty_trash else None
    planned = prune.NOTHING  # where only the trash is emptied
    if not policy.is_empty or not empty_trash:
        with streams.progress("Verifying", 0, quiet=quiet) as progress:
            planned = prune.prepare(wanted, policy, now, progress)
    found = [*planned.failures]
    dues: dict[Place, Due] = {}
    copied, pruned_now = cache(restored.copied), {} if due_after else planned.trashed()

    def look(where: Place) -> Outcome:
        due = trash.due(where, due_after or 0.0, now, copied)
        dues[where] = trash.together(due, pruned_now.get(where))
        return Outcome(where, "planned", dues[where].bytes)

    found += each(wanted if empty_trash else (), look)
    going = Going(planned, tuple(dues.values()) if empty_trash else None, due_after or 0.0)
    by_age = bool((due_after and going.is_due) or (max_age is not None and planned.bytes_trashed))
    found += _check_clock(now, by_age=by_age, dry_run=dry_run)
    if not as_json:
        deleted = (each.where for each in dues.values() if each.is_any)
        seen = archives.seen([*(each.where for each in planned.holdings), *deleted])
        streams.write_lines(render_prune.plan(going, seen, is_verbose=is_verbose))
    for sentence in render_prune.strangers(dues.values()):
        streams.message(sentence)
    disk = trash.measured(wanted) if going.is_due else 0
    if dry_run:
        found += [each for each in planned.expected() if each.error is not None]

    def do() -> Shown:
        anew = cache(restored.copied)  # a copy may have come before the answer

        def empty(where: Place) -> Outcome:
            grace, shown = due_after or 0.0, dues[where]
            return Outcome(where, "done", trash.empty(where, grace, now, wait, anew, shown=shown))

        name = "prune --all" if every else "prune"
        kept = run_log.Journal(name, is_kept=every or len(wanted) > 1)
        pruned = [*kept.noting("prune", prune.execute(planned, wait))]
        emptied = [*kept.noting("trash", each(dues, empty))]
        freed = disk - trash.measured(wanted) if going.is_due else 0
        shown = render_prune.shown(going, (sum(each.freed for each in pruned), freed))
        return _with_failures(shown, [*found, *pruned, *emptied], kept.failure, every=every)

    shown = render_prune.shown(going, dry_run=dry_run)
    # What an interrupted run left is settled in any case.
    options = driver.Options(dry_run=dry_run, yes=yes or not going.is_anything, as_json=as_json)
    driver.carry_out(_with_failures(shown, found, every=every), do, options)


def _with_failures(
    shown: Shown, found: list[Outcome], unnoted: SessrotateError | None = None, *, every: bool
) -> Shown:
    """Return the same with every failure once, the worst last, and with its exit code."""
    errors = {str(each.error): each.error for each in found if each.error}
    last = worst(errors.values())
    others = (error for error in errors.values() if error is not last)
    told = replace(shown, warnings=[unnoted, *others, last], code=exit_code(errors.values()))
    return archives.with_hidden(told, every=every)


def _grace(given: float | None) -> float:
    """Return the grace period that was given, or that of the settings, in seconds."""
    grace = config.grace() if given is None else given
    if grace is None:
        raise RefusedError(
            "The settings keep the trash for ever ([trash] grace = false): pass --grace AGE to "
            "delete what has been there for longer."
        )
    return grace


def _check_clock(now: float, *, by_age: bool, dry_run: bool) -> list[Outcome]:
    """Raise RefusedError if something would go by its age and the clock is not believed.

    Of a dry run, which shows its plan all the same, that is returned as what it would come to.
    """
    doubt = clock.doubt(now) if by_age else ""
    if not doubt:
        return []
    refusal = RefusedError(
        f"Nothing was changed. {doubt} Two things do not depend on the clock: `--empty-trash "
        "--grace 0`, and rules without --max-age."
    )
    if not dry_run:
        raise refusal
    return [failure(None, refusal)]
