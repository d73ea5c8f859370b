"""What `rotate` and `split --in-place` do: rotate a session, some, or all. No command itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer
from msgspec import Struct
from msgspec.structs import replace

from sessrotate import find, fs
from sessrotate.archive import restored
from sessrotate.cli import archives, streams
from sessrotate.errors import printable
from sessrotate.in_place import fleet, gain, operations, outcome, room
from sessrotate.job import journal
from sessrotate.render import in_place as render_in_place
from sessrotate.render import segment_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.in_place.outcome import Outcome


class Options(Struct, frozen=True):
    """The options of `rotate`, and of `split --in-place`.

    `is_every` is whether nobody named the sessions, `yes` whether nobody is asked.
    """

    wait: float
    live: bool
    adopt: bool
    dry_run: bool
    as_json: bool
    quiet: bool
    yes: bool = False
    is_every: bool = False


def run(paths: Sequence[Path], options: Options, min_size: int | None = None) -> None:
    """Rotate sessions, or show what that would do.

    One that is alone needs no confirmation. Without `paths`, all: those of at least `min_size`
    bytes, or if that is None, those that are worth it; smaller ones are healed if need be.
    """
    if len(paths) == 1:
        _run_one(paths[0], options)
        return
    if paths:
        places = [find.live_of(path) for path in paths]
        run_many([(where, fleet.live_size(where)) for where in places], options)
        return
    wanted = fleet.sessions(min_size or 0, or_rewound=True)
    every = replace(options, is_every=True)
    run_many(wanted, every, least=gain.WORTH if min_size is None else None)


def _run_one(path: Path, options: Options) -> None:
    """Rotate the session at `path`, or show what that would do, and raise its refusal."""
    where = find.live_of(path)
    begun = time.monotonic()
    done = _rotated(where, options)
    seconds = time.monotonic() - begun
    if done.recovered.sentence and not options.dry_run:
        streams.warn(render_in_place.recovered(done.recovered))
    if options.as_json:
        named = where.live if options.dry_run else path
        streams.write_all(render_in_place.as_json(done, named, dry_run=options.dry_run))
    elif options.dry_run:
        _show(where, done, seconds)
    elif done.refusal is None:
        streams.write_lines(render_in_place.done(done))
    if done.refusal is not None:
        raise done.refusal
    if options.dry_run and done.disk is not None:
        room.check(where.config, done.need)


def _rotated(
    where: Place, options: Options, *, by_itself: bool = False, least: int = 0, lead: str = ""
) -> operations.Rotated:
    """Rotate one session, or only plan it; `lead` says which of many it is."""
    shown, how = (
        progress(quiet=options.quiet, lead=lead),
        {"live": options.live, "adopt": options.adopt},
    )
    if options.dry_run:
        return operations.plan_session(where, shown, **how, by_itself=by_itself, least=least)
    return operations.rotate_session(where, options.wait, shown, **how, by_itself=by_itself)


def _show(where: Place, planned: operations.Rotated, seconds: float) -> None:
    """Show a plan; `seconds` is how long it took to make."""
    if planned.recovered.sentence:
        streams.write(render_in_place.to_recover(planned.recovered) + "\n")
    if not planned.together:  # else it is another file that will be cut
        streams.write(render_in_place.heading(planned.plan) + "\n")
        segments = (*planned.plan.segments, planned.plan.newest)
        streams.write_lines(segment_table.table(segments, streams.canvas()))
    if planned.refusal is None:
        free = fs.free_bytes(where.config)
        streams.write_lines(render_in_place.would(planned, seconds, free))


def progress(*, quiet: bool, lead: str = "") -> operations.Progress:
    """Return the function that the library calls to draw a progress bar; `lead` begins its text."""
    return lambda what, total: streams.progress(f"{lead}{what}", total, quiet=quiet)


def run_many(
    wanted: list[tuple[Place, int]], options: Options, *, least: int | None = None
) -> None:
    """Plan the rotation of sessions, ask, and carry it out where it frees at least `least` bytes.

    `wanted` has their sizes too. With None for `least` they are rotated whatever that frees; so
    are those that have to be healed.
    """
    if not options.dry_run:
        shown = progress(quiet=options.quiet)
        operations.finish_interrupted((where for where, _ in wanted), options.wait, shown)
    planned = [*_each(wanted, options, dry_run=True, least=least or 0)]
    chosen = {entry.where for entry in planned if entry.result == "planned"}
    seen = archives.changed(() if options.as_json else planned)
    is_going = (
        bool(chosen)
        and not options.dry_run
        and archives.agreed(
            render_in_place.outcomes(planned, seen),
            f"Rotate: {render_in_place.moved_and_gained(planned)}.",
            yes=options.yes,
            as_json=options.as_json,
        )
    )
    found = planned
    if (is_going or not chosen) and not (options.is_every or options.dry_run):
        _unmark(planned, wanted, options)
    if is_going:
        kept = journal.begin("rotate --all" if options.is_every else "rotate")
        going = [each for each in wanted if each[0] in chosen]
        done = [*kept.noting("rotate", _each(going, options, dry_run=False))]
        streams.complain_of(kept.failure)
        found = [*(entry for entry in planned if entry.where not in chosen), *done]
    if options.as_json:
        streams.write(render_in_place.outcomes_json(found))
    elif is_going or options.dry_run or not chosen:
        streams.write_lines(render_in_place.outcomes(found, seen))
    is_hidden = options.is_every and bool(archives.told_hidden())
    raise typer.Exit(outcome.exit_code(found, in_use_counts=options.live) or int(is_hidden))


def _unmark(planned: list[Outcome], wanted: list[tuple[Place, int]], options: Options) -> None:
    """Let the rules have those again that somebody names and that are as short as can be."""
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
