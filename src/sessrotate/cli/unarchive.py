"""`sessrotate unarchive`: put an archived session back as it was."""

from __future__ import annotations

import time
from typing import Annotated

from sessrotate import find
from sessrotate.cli import streams
from sessrotate.cli.options import Quiet, Session, Wait, flag
from sessrotate.clients.claude import client as claude
from sessrotate.render import archive as render_archive
from sessrotate.retention.unarchive import unarchive


def command(
    session: Session,
    *,
    touch: Annotated[
        bool,
        flag("--touch", "Date its files now, so that the client's clean-up does not delete them."),
    ] = False,
    wait: Wait = 10.0,
    quiet: Quiet = False,
) -> None:
    """Put an archived session back where its client looks, with everything that belongs to it.

    Files that are there by now are never overwritten.
    """
    where = find.archived_of(find.path_of(session))
    now = time.time()
    with streams.progress("Unpacking", 0, quiet=quiet) as progress:
        size = unarchive(where, wait, progress, touch=now if touch else None)
    age = now - where.live.stat().st_mtime
    period = claude.cleanup_period()
    streams.write(render_archive.back(where.session, str(where.live), size, period, age))
