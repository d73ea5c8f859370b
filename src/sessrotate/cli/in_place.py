"""`split --in-place`: rotate one session, or all. Not a command of its own."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from sessrotate import find, fs
from sessrotate.cli import streams
from sessrotate.errors import printable
from sessrotate.in_place import fleet, operations, outcome
from sessrotate.render import in_place as render_in_place
from sessrotate.render import segment_table

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.archive.place import Place


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `split --in-place`."""

    wait: float
    live: bool
    adopt: bool
    dry_run: bool
    as_json: bool
    quiet: bool


def run(path: Path, options: Options) -> None:
    """Rotate the session at `path`, or show what that would do, and raise its refusal."""
    where = find.live_of(path)
    begun = time.monotonic()
    done = _rotated(where, options)
    seconds = time.monotonic() - begun
    if done.recovered.sentence and not options.dry_run:
        streams.warn(done.recovered.past)
    if options.as_json:
        named = where.live if options.dry_run else path
        streams.write_all(render_in_place.as_json(done, named, dry_run=options.dry_run))
    elif options.dry_run:
        _show(where, done, seconds)
    elif done.refusal is None:
        streams.write_lines(render_in_place.done(done))
    if done.refusal is not None:
        raise done.refusal


def _rotated(where: Place, options: Options, *, by_itself: bool = False) -> operations.Rotated:
    """Rotate one session, or only plan it."""
    shown, live, adopt = progress(quiet=options.quiet), options.live, options.adopt
    if options.dry_run:
        return operations.plan_session(where, shown, live=live, adopt=adopt, by_itself=by_itself)
    return operations.rotate_session(
        where, options.wait, shown, live=live, adopt=adopt, by_itself=by_itself
    )


def _show(where: Place, planned: operations.Rotated, seconds: float) -> None:
    """Show a plan; `seconds` is how long it took to make."""
    if planned.recovered.sentence:
        streams.write(planned.recovered.sentence + "\n")
    streams.write(render_in_place.heading(planned.plan) + "\n")
    segments = (*planned.plan.segments, planned.plan.newest)
    streams.write_lines(segment_table.table(segments, streams.canvas()))
    room = fs.free_bytes(where.config)
    streams.write_lines(render_in_place.would(planned.plan, seconds, room))


def progress(*, quiet: bool) -> operations.Progress:
    """Return the function that the library calls to draw a progress bar."""
    return lambda what, total: streams.progress(what, total, quiet=quiet)


def run_all(least: int, options: Options) -> None:
    """Rotate every session of at least so many bytes, or show what that would do."""
    wanted = fleet.sessions(least)
    number = itertools.count(1)

    def action(where: Place) -> operations.Rotated:
        if not options.quiet and not options.as_json:
            streams.message(f"{next(number)} of {len(wanted)}: {printable(where.session)}")
        return _rotated(where, options, by_itself=True)

    outcomes = [*fleet.rotate(wanted, action, live=options.live)]
    if options.as_json:
        streams.write(render_in_place.outcomes_json(outcomes))
    else:
        streams.write(render_in_place.outcomes(outcomes))
    raise typer.Exit(outcome.exit_code(outcomes, in_use_counts=options.live))
