"""What `split --in-place` shows and does; no command of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sessrotate import fs, in_place, place, recover, render_in_place, rotate, state
from sessrotate.cli import streams
from sessrotate.errors import RequestError

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.place import Place
    from sessrotate.rotate import RotationPlan


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `split` that matter in place."""

    wait: float
    live: bool
    adopt: bool
    dry_run: bool
    as_json: bool
    quiet: bool


def run(path: Path, options: Options) -> None:
    """Rotate the session at `path`, or show what that would do."""
    where = place.of_live(path)
    if options.dry_run:
        _dry_run(where, options)
        return
    shown = progress(quiet=options.quiet)
    done = in_place.rotate_session(
        where, options.wait, shown, live=options.live, adopt=options.adopt
    )
    if done.recovered.sentence:
        streams.message(f"sessrotate: {done.recovered.past}")
    if options.as_json:
        streams.write_all(render_in_place.as_json(done.plan, path, dry_run=False, done=done))
    elif done.refusal is None:
        streams.write("\n".join(render_in_place.done(done)) + "\n")
    if done.refusal is not None:
        raise done.refusal


def progress(*, quiet: bool) -> in_place.Progress:
    """Return what the library calls to have a bar drawn."""
    return lambda what, total: streams.progress(what, total, quiet=quiet)


def _dry_run(where: Place, options: Options) -> None:
    """Show the plan; end with the refusal that the run would end with."""
    with state.opened(where) as found:
        recovery = recover.plan(found)
        begun = time.monotonic()
        size = found.live.size() if found.live is not None else 0
        with streams.progress("Reading", size, quiet=options.quiet) as reading:
            planned = rotate.prepare(found, reading, adopt=options.adopt)
        seconds = time.monotonic() - begun
    refusal = _refusal(where, planned, live=options.live)
    if options.as_json:
        streams.write_all(
            render_in_place.as_json(planned, where.live, dry_run=True, refusal=refusal)
        )
    else:
        if recovery.sentence:
            streams.write(recovery.sentence + "\n")
        streams.write(render_in_place.heading(planned) + "\n")
        streams.show_table(*render_in_place.table(planned))
        room = fs.free_bytes(where.config)
        streams.write("\n".join(render_in_place.would(planned, seconds, room)) + "\n")
    if refusal is not None:
        raise refusal


def _refusal(where: Place, planned: RotationPlan, *, live: bool) -> RequestError | None:
    try:
        rotate.check(planned, where, live=live)
    except RequestError as error:
        return error
    return None
