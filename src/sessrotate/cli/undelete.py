"""`sessrotate undelete`: bring pruned segments back from the trash."""

from __future__ import annotations

from typing import Annotated

from sessrotate import find
from sessrotate.cli import streams
from sessrotate.cli.options import Session, Wait, counted
from sessrotate.errors import printable
from sessrotate.in_place import retire
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
    """Bring pruned segments back, as long as they are in the trash.

    Also the archive of a session that was restored, where a program has written the short file
    from before back: its live file then goes on from that archive again.
    """
    where = find.archived_of(find.path_of(session))
    whole = retire.bring_back(where, wait) if segment is None else None
    if whole is not None:
        many = count(len(whole.segments), "segment")
        streams.write(
            f"Made the {many} of {printable(where.session)} in the trash its archive again: "
            "the live file goes on from there.\n"
        )
        return
    back = trash.undelete(where, segment, wait)
    many = count(len(back), "segment")
    streams.write(f"Brought {many} of {printable(where.session)} back from the trash.\n")
