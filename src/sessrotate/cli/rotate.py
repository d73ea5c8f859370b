"""`sessrotate rotate`: make a session small for its client, and keep its history in an archive.

`split --in-place` is the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from msgspec.structs import replace

from sessrotate import find, fs
from sessrotate.archive import restored
from sessrotate.archive.place import Place
from sessrotate.cli import archives, driver, streams
from sessrotate.cli.options import (
    DryRun,
    Json,
    ManySessions,
    Quiet,
    Wait,
    Yes,
    flag,
    one_of,
    sized,
)
from sessrotate.errors import WrongUsageError, printable
from sessrotate.in_place import fleet, gain, obstacles, operations
from sessrotate.in_place.outcome import Outcome
from sessrotate.job import run_log
from sessrotate.render import in_place as render_in_place
from sessrotate.render import outcomes, segment_table
from sessrotate.render.outcomes import Shown

Every = Annotated[
    bool, flag("--all", "Rotate each session whose rotation frees at least 1 MiB of disk space.")
]
MinSize = Annotated[
    int | None,
    sized("With --all: rotate all sessions of at least SIZE, even if that frees little."),
]
Live = Annotated[bool, flag("--live", "Rotate a session even if a client is running it.")]
Adopt = Annotated[
    bool,
    flag(
        "--unsafe-adopt",
        "If the live file does not continue its archive, put that archive aside and start a new "
        "one.",
    ),
]


class Options(driver.Options, frozen=True, kw_only=True):
    """The options of `rotate`; `is_every` is whether nobody named the sessions."""

    live: bool
    adopt: bool
    is_every: bool = False


def command(
    sessions: ManySessions = None,
    *,
    every: Every = False,
    min_size: MinSize = None,
    live: Live = False,
    wait: Wait = 10.0,
    unsafe_adopt: Adopt = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make sessions small for their client, and keep their history in compressed archives.

    What a resume needs stays where the client looks, and the session resumes exactly as before.
    Everything else moves to an archive next to the client's projects folder. `restore` undoes it.

    If you name one session, `rotate` acts at once. For several, or --all, it shows the plan and
    asks first.
    """
    one_of(sessions, every)
    if min_size is not None and not every:
        raise WrongUsageError("--min-size needs --all.")
    if unsafe_adopt and (every or len(sessions or ()) > 1):
        raise WrongUsageError("--unsafe-adopt needs one SESSION.")
    options = Options(
        wait, dry_run, yes, as_json, quiet, live=live, adopt=unsafe_adopt, is_every=every
    )
    paths = [find.path_of(session) for session in sessions or ()]
    if len(paths) == 1:
        _run_one(paths[0], options)
    elif paths:
        places = [find.live_of(path) for path in paths]
        _run_many([(where, fleet.live_size(where)) for where in places], options)
    else:  # smaller ones are healed if need be
        wanted = fleet.sessions(min_size or 0, or_rewound=True)
        _run_many(wanted, options, least=gain.WORTH if min_size is None else None)


def _run_one(path: Path, options: Options) -> None:
    """Rotate the session at `path`, or show what that would do, and end with its refusal."""
    where = find.live_of(path)
    begun = time.monotonic()
    done = _rotated(where, options)
    seconds = time.monotonic() - begun
    if done.recovered.sentence and not options.dry_run:
        streams.warn(render_in_place.recovered(done.recovered, dry_run=False))
    named = where.live if options.dry_run else path
    lines = () if done.refusal else render_in_place.done(done)
    lines = _plan(where, done, seconds) if options.dry_run else lines
    document = render_in_place.as_json(done, named, dry_run=options.dry_run)
    driver.show(Shown(lines, document), as_json=options.as_json)
    if done.refusal is not None:
        raise done.refusal
    if options.dry_run and done.disk is not None:
        obstacles.check_room(where.config, done.need)


def _rotated(
    where: Place, options: Options, *, by_itself: bool = False, least: int = 0, lead: str = ""
) -> operations.Rotated:
    """Rotate one session, or only plan it; `lead` says which of many it is."""
    shown, how = (
        driver.progress(quiet=options.quiet, lead=lead),
        {"live": options.live, "adopt": options.adopt},
    )
    if options.dry_run:
        return operations.plan_session(where, shown, **how, by_itself=by_itself, least=least)
    return operations.rotate_session(where, options.wait, shown, **how, by_itself=by_itself)


def _plan(where: Place, planned: operations.Rotated, seconds: float) -> Iterator[str]:
    """Yield what shows a plan; `seconds` is how long it took to make."""
    if planned.recovered.sentence:
        yield render_in_place.recovered(planned.recovered, dry_run=True)
    if not planned.together:  # else it is another file that will be cut
        yield render_in_place.heading(planned.plan)
        segments = (*planned.plan.segments, planned.plan.newest)
        yield from segment_table.table(segments, streams.canvas())
    if planned.refusal is None:
        yield from render_in_place.would(planned, seconds, fs.free_bytes(where.config))


def _run_many(
    wanted: list[tuple[Place, int]], options: Options, *, least: int | None = None
) -> None:
    """Plan the rotation of sessions, ask, and carry it out where it frees at least `least` bytes.

    `wanted` has their sizes too. With None for `least` they are rotated whatever that frees; so
    are those that have to be healed.
    """
    if not options.dry_run:
        places = (where for where, _ in wanted)
        operations.finish_interrupted(places, options.wait)
    planned = [*_each(wanted, options, dry_run=True, least=least or 0)]
    chosen = {entry.where for entry in planned if entry.result == "planned"}
    seen = archives.changed(() if options.as_json else planned)
    kept = run_log.Journal("rotate --all" if options.is_every else "rotate")

    def shown(found: list[Outcome], *, dry_run: bool) -> Shown:
        told = outcomes.shown(
            outcomes.ROTATED, found, seen, dry_run=dry_run, in_use_counts=options.live
        )
        told = replace(told, warnings=[kept.failure])
        return archives.with_hidden(told, every=options.is_every)

    def do() -> Shown:
        _unmark(planned, wanted, options)
        going = [each for each in wanted if each[0] in chosen]
        done = kept.noting("rotate", _each(going, options, dry_run=False))
        stay = [entry for entry in planned if entry.where not in chosen]
        return shown([*stay, *done], dry_run=False)

    if not chosen:
        _unmark(planned, wanted, options)
    driver.carry_out(shown(planned, dry_run=options.dry_run or bool(chosen)), do, options)


def _unmark(planned: list[Outcome], wanted: list[tuple[Place, int]], options: Options) -> None:
    """Let the rules have those again that somebody names and that are as short as can be."""
    if options.is_every or options.dry_run:
        return
    short = {each.where for each in planned if each.result == "nothing to do"}
    marked = [each for each in wanted if each[0] in short and restored.is_marked(each[0])]
    [*_each(marked, replace(options, quiet=True), dry_run=False)]


def _each(
    wanted: list[tuple[Place, int]], options: Options, *, dry_run: bool, least: int = 0
) -> Iterator[Outcome]:
    leads = fleet.leads(wanted)
    how = replace(options, dry_run=dry_run)

    def action(where: Place) -> operations.Rotated:
        lead = leads[where]
        if not options.quiet and not options.as_json and not dry_run:
            streams.message(f"{lead}: {printable(where.session)}")
        return _rotated(where, how, by_itself=options.is_every, least=least, lead=f"{lead} · ")

    return fleet.rotate(wanted, action, live=options.live)
