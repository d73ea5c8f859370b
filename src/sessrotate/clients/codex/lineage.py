"""Where a Codex session comes from: what it was forked from, or reverted to.

Rule: data for whoever shows it; the other session is not opened. A fork of 0.150 and later holds
no copy of what came before: its history goes on where the other one's is cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.clients.codex.rows import inner, text
from sessrotate.clients.preview import Origin

if TYPE_CHECKING:
    from sessrotate.clients.codex.rows import Row


def origin(row: Row) -> Origin | None:
    """Return what a session's first row says it continues, None if it begins by itself.

    `history_base` names the ordinal before which the other's history ends (0.150 and later, forks
    and reverts); a fork of an older client copies all rows and names only the session.
    """
    if row.type != "session_meta":
        return None
    base = inner(row.payload, "history_base")
    thread = text(base, "thread_id")
    if thread is not None:
        ordinal = base.get("end_ordinal_exclusive")
        return Origin(thread, ordinal if type(ordinal) is int and ordinal >= 0 else None)
    forked = text(row.payload, "forked_from_id")
    return Origin(forked) if forked is not None else None


def words(where: Origin) -> str:
    """Return a sentence about it."""
    if where.at is None:
        return f"This session was forked from {where.session}."
    return f"This session continues {where.session} at ordinal {where.at:,}."
