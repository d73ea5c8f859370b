"""What `archive` and `unarchive` show. Pure.

Rule: pure text out, the same table for a dry run and for what was done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sessrotate.errors import printable
from sessrotate.render import common
from sessrotate.render.common import count, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessrotate.retention.archive_fleet import Outcome

_COLUMNS: Final = ("session", "leaves", "takes", "result")

_DAY: Final = 86_400.0


def outcomes(found: Sequence[Outcome], *, dry_run: bool) -> str:
    """Return the table of what became of all sessions, and the sum below it."""
    rows = [
        (
            printable(entry.where.session, 40),
            size(entry.freed),
            "-" if entry.result == "planned" else size(entry.stored),
            entry.result if entry.error is None else f"{entry.result}: {entry.error}",
        )
        for entry in found
    ]
    table = common.plain_table(_COLUMNS, rows, left={"session", "result"}) if rows else ""
    verb = "would leave" if dry_run else "left"
    freed = size(sum(entry.freed for entry in found))
    many = count(len(found), "session")
    return f"{table}{many}; {freed} {verb} the client's folder.\n"


def as_json(found: Sequence[Outcome], *, dry_run: bool) -> str:
    """Return the same for programs."""
    document: dict[str, Any] = {
        "sessions": [
            {
                "session": entry.where.session,
                "path": str(entry.where.live),
                "bytes_freed": entry.freed,
                "bytes_stored": entry.stored,
                "result": entry.result,
                "reason": None if entry.error is None else str(entry.error),
            }
            for entry in found
        ],
        "bytes_freed": sum(entry.freed for entry in found),
        "dry_run": dry_run,
    }
    return common.as_json(document)


def back(session: str, path: str, number: int, period: float, age: float) -> str:
    """Return the sentences about a session that came back.

    `number` is its bytes, `age` for how many seconds its live file was not changed, `period`
    after how many the client deletes it.
    """
    told = f"{printable(session)} is back: {size(number)} in {printable(path)}.\n"
    if age < period:
        return told
    return (
        f"{told}It was not changed for {age / _DAY:,.0f} days, and its client deletes at its next "
        f"start what was not for {period / _DAY:,.0f}: `touch` it before, or raise "
        "cleanupPeriodDays. (`unarchive --touch` does that on the way.)\n"
    )
