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
    """Rotate the session at `path`, or show what that would do."""
    where = find.live_of(path)
    if options.dry_run:
        _dry_run(where, options)
        return
    shown = progress(quiet=options.quiet)
    done = operations.rotate_session(
        where, options.wait, shown, live=options.live, adopt=options.adopt
    )
    if done.recovered.sentence:
        streams.warn(done.recovered.past)
    if options.as_json:
        streams.write_all(render_in_place.as_json(done.plan, path, dry_run=False, done=done))
    elif done.refusal is None:
        streams.write("\n".join(render_in_place.done(done)) + "\n")
    if done.refusal is not None:
        raise done.refusal


def progress(*, quiet: bool) -> operations.Progress:
    """Return the function that the library calls to draw a progress bar."""
    return lambda what, total: streams.progress(what, total, quiet=quiet)


def _dry_run(where: Place, options: Options) -> None:
    """Show the plan, and raise the refusal that the run would raise."""
    begun = time.monotonic()
    shown = progress(quiet=options.quiet)
    done = operations.plan_session(where, shown, live=options.live, adopt=options.adopt)
    seconds = time.monotonic() - begun
    if options.as_json:
        streams.write_all(
            render_in_place.as_json(done.plan, where.live, dry_run=True, refusal=done.refusal)
        )
    else:
        if done.recovered.sentence:
            streams.write(done.recovered.sentence + "\n")
        streams.write(render_in_place.heading(done.plan) + "\n")
        streams.show_table(*render_in_place.table(done.plan))
        room = fs.free_bytes(where.config)
        streams.write("\n".join(render_in_place.would(done.plan, seconds, room)) + "\n")
    if done.refusal is not None:
        raise done.refusal


def run_all(least: int, options: Options) -> None:
    """Rotate every session of at least so many bytes, or show what that would do."""
    wanted = fleet.sessions(least)
    shown = progress(quiet=options.quiet)
    number = itertools.count(1)

    def action(where: Place) -> operations.Rotated:
        if not options.quiet and not options.as_json:
            streams.message(f"{next(number)} of {len(wanted)}: {printable(where.session)}")
        if options.dry_run:
            return operations.plan_session(where, shown, live=options.live)
        return operations.rotate_session(where, options.wait, shown, live=options.live)

    outcomes = [*fleet.rotate(wanted, action, live=options.live)]
    if options.as_json:
        streams.write(render_in_place.outcomes_json(outcomes))
    else:
        streams.write(render_in_place.outcomes(outcomes))
    code = outcome.exit_code(outcomes, in_use_counts=options.live)
    if code:
        raise typer.Exit(code)
