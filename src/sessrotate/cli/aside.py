"""`sessrotate aside`: the way out of any state that no other command can mend."""

from __future__ import annotations

from typing import Annotated

import typer

from sessrotate import find
from sessrotate.archive import place
from sessrotate.cli import streams
from sessrotate.cli.options import DryRun, Session, Wait
from sessrotate.in_place import aside
from sessrotate.render import aside as render_aside


def command(
    session: Session,
    *,
    wait: Wait = 10.0,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Put a session's archive aside, whole, when nothing else helps.

    This works in any state: with a damaged manifest, an unfinished run, a file that nobody knows.
    The live file stays as it is. `stitch --allow-gaps` and `export --allow-gaps` read what they can
    of the archive where it is then.
    """
    planned = aside.plan(place.of_archived(find.path_of(session)))
    streams.write(render_aside.plan(planned))
    if dry_run or not (yes or streams.confirmed()):
        return
    streams.write(render_aside.done(planned.place, aside.execute(planned, wait)))
