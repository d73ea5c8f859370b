"""`sessrotate pin`: keep a segment, whatever a policy says."""

from __future__ import annotations

from typing import Annotated

import typer

from sessrotate import find
from sessrotate.cli import streams
from sessrotate.cli.options import Segment, Session, Wait
from sessrotate.errors import printable
from sessrotate.retention.prune import pin


def command(
    session: Session,
    segment: Segment,
    *,
    note: Annotated[str, typer.Option(metavar="TEXT", help="Why you pinned it, for later.")] = "",
    wait: Wait = 10.0,
) -> None:
    """Keep a segment, whatever a policy says."""
    where = find.archived_of(find.path_of(session))
    pin(where, segment, note, wait)
    streams.write(f"Pinned segment {segment} of {printable(where.session)}.\n")
