"""`sessrotate undelete`: bring pruned segments back from the trash."""

from __future__ import annotations

from typing import Annotated

from sessrotate import find
from sessrotate.archive import place
from sessrotate.cli import streams
from sessrotate.cli.options import Session, Wait, counted
from sessrotate.errors import printable
from sessrotate.render.common import count
from sessrotate.retention import trash


def command(
    session: Session,
    *,
    segment: Annotated[
        int | None, counted("Bring back only segment N.", least=0, default="all")
    ] = None,
    wait: Wait = 10.0,
) -> None:
    """Bring pruned segments back, as long as they are in the trash."""
    where = place.of_archived(find.path_of(session))
    back = trash.undelete(where, segment, wait)
    many = count(len(back), "segment")
    streams.write(f"Brought {many} of {printable(where.session)} back from the trash.\n")
