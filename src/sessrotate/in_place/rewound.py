"""Rotated sessions that go on from an archived row: a rotation heals them, whatever their size.

Rule: most sessions are told by their first bytes, and of the others only the live file is read; the
archive is asked where that says "maybe". Only reads.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from sessrotate.archive import continued
from sessrotate.clients.claude.dangling import dangles
from sessrotate.errors import SessrotateError, printable
from sessrotate.in_place import operations
from sessrotate.segments import live_header
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.archive.place import Place


def may_be(path: Path) -> bool:
    """Tell whether a live file may need rows of its archive; one that cannot be read does not."""
    header = continued.tail_header(path)
    if header is None:
        return False
    try:
        with Source.itself(path) as source:
            if continued.misfit(header, source) is not None:
                return False  # its client cut it, and knows what it needs
            prefix = live_header.prefix(header)
            return dangles(source, prefix, prefix + header.judged_bytes)
    except (SessrotateError, OSError):
        return False


def problem(where: Place) -> str | None:
    """Return what to say of a session that a rotation would heal; None if that is not so."""
    if not may_be(where.live):
        return None
    with suppress(SessrotateError):  # that is said of the session by those who look at its archive
        planned = operations.plan_session(where, lambda *_: nullcontext(lambda _done: None)).plan
        if planned.live is None or not planned.heals:
            return None
        name, goes = printable(where.session), planned.live.misleads
        what = "has a prompt too many" if goes else "lacks what came before it"
        helps = f"`sessrotate rotate {name}` {'takes that out' if goes else 'puts that back'}."
        if planned.live.refusals:
            helps = f"{planned.live.refusals[0]} `sessrotate restore {name}` gives the whole file."
        return (
            "Somebody went back, in a client that ran, to a message from before the rotation, and "
            f"a resume {what}: {helps}"
        )
    return None
