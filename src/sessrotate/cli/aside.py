"""`sessrotate aside`: the way out of any state that no other command can mend."""

from __future__ import annotations

from sessrotate import find
from sessrotate.cli import streams
from sessrotate.cli.options import DryRun, Session, Wait, Yes
from sessrotate.in_place import aside
from sessrotate.render import aside as render_aside


def command(
    session: Session,
    *,
    wait: Wait = 10.0,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Put a session's archive aside, whole, when nothing else helps.

    This works in any state: with a damaged manifest, an unfinished run, a file that nobody knows.
    The live file stays as it is. `stitch --allow-gaps` and `export --allow-gaps` read what they can
    of the archive where it is then.
    """
    planned = aside.plan(find.archive_of(find.path_of(session)))
    streams.write(render_aside.plan(planned))
    if dry_run or not (yes or streams.confirmed()):
        return
    streams.write(render_aside.done(planned.place, aside.execute(planned, wait)))
