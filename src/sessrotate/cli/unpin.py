"""`sessrotate unpin`: let a policy decide on pinned segments again."""

from __future__ import annotations

from typing import Annotated

import typer

from sessrotate import find
from sessrotate.cli import streams
from sessrotate.cli.options import Session, Wait, whole
from sessrotate.errors import printable
from sessrotate.retention.prune import pin


def command(
    session: Session,
    segment: Annotated[
        int | None,
        typer.Argument(
            parser=whole(0), metavar="N", help="The segment's number; without it, all segments."
        ),
    ] = None,
    *,
    wait: Wait = 10.0,
) -> None:
    """Let a policy decide on a pinned segment again, or on all segments of a session."""
    where = find.archived_of(find.path_of(session))
    pin(where, segment, None, wait)
    which = "all segments" if segment is None else f"segment {segment}"
    streams.write(f"Unpinned {which} of {printable(where.session)}.\n")
