"""`sessrotate aside`: the way out of any state that no other command can mend."""

from __future__ import annotations

from sessrotate import find
from sessrotate.cli import driver, streams
from sessrotate.cli.options import DryRun, Session, Wait, Yes
from sessrotate.in_place import aside
from sessrotate.render import in_place as render_in_place
from sessrotate.render.outcomes import Shown


def command(
    session: Session,
    *,
    wait: Wait = 10.0,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Put a session's whole archive aside, when nothing else helps.

    This works in any state: with a damaged manifest, an unfinished run, or an unknown file. The
    live file stays as it is. `stitch --allow-gaps` and `export --allow-gaps` read what they can of
    the archive in its new place.
    """
    planned = aside.plan(find.archive_of(find.path_of(session)))
    streams.write_lines(render_in_place.aside_plan(planned))

    def do() -> Shown:
        return Shown(render_in_place.put_aside(planned, aside.execute(planned, wait)))

    driver.carry_out(Shown(is_anything=True), do, driver.Options(dry_run=dry_run, yes=yes))
