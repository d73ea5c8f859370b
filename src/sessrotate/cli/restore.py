"""`sessrotate restore`: undo `split --in-place`."""

from __future__ import annotations

from sessrotate import find
from sessrotate.archive import copies, state
from sessrotate.cli import streams
from sessrotate.cli.in_place import progress
from sessrotate.cli.options import DryRun, Quiet, Session, Wait
from sessrotate.in_place import operations, restore
from sessrotate.render import in_place as render_in_place


def command(
    session: Session,
    *,
    wait: Wait = 10.0,
    dry_run: DryRun = False,
    quiet: Quiet = False,
) -> None:
    """Put a session's full history back into its live file.

    The archive is verified as it is read. Once the live file is whole again, the archive goes to
    the trash for 7 days, or what the settings say. Nothing rotates the session again by itself
    until you rotate it by name.
    """
    where = find.live_of(find.path_of(session))
    copies.check_owner(where)
    if dry_run:
        with state.opened(where) as found:
            planned = restore.prepare(found)
    else:
        planned = operations.restore_session(where, wait, progress(quiet=quiet))
    streams.write(render_in_place.restored(where.session, planned, dry_run=dry_run) + "\n")
    if dry_run and planned is not None:
        restore.check_room(planned)
