"""`sessrotate unpin`: let a policy decide on a pinned segment again."""

from __future__ import annotations

from sessrotate import find
from sessrotate.cli import streams
from sessrotate.cli.options import Segment, Session, Wait
from sessrotate.errors import printable
from sessrotate.retention.prune import pin


def command(session: Session, segment: Segment, *, wait: Wait = 10.0) -> None:
    """Let a policy decide on a pinned segment again."""
    where = find.archived_of(find.path_of(session))
    pin(where, segment, None, wait)
    streams.write(f"Unpinned segment {segment} of {printable(where.session)}.\n")
