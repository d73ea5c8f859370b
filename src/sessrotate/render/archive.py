"""What `archive`, `unarchive` and `compress` print. Pure.

Rule: a dry run and the run itself show the same table. Sizes are those of files on the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessrotate.errors import printable
from sessrotate.render import common
from sessrotate.render.common import count, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessrotate.in_place.outcome import Outcome
    from sessrotate.retention.compress import Compressed

_COLUMNS: Final = ("session", "leaves", "takes", "result")
_DAY: Final = 86_400.0


def outcomes(found: Sequence[Outcome], *, dry_run: bool) -> str:
    """Return the table of what became of each session, and the sum below it."""
    rows = [
        (
            printable(entry.session, 40),
            size(entry.freed),
            "-" if entry.result == "planned" else size(entry.size),
            entry.text,
        )
        for entry in found
    ]
    table = common.plain_table(_COLUMNS, rows, left={"session", "result"})
    verb = "would leave" if dry_run else "left"
    freed = size(sum(entry.freed for entry in found))
    many = count(len(found), "session")
    return f"{table}{many}; {freed} {verb} the client's folder.\n"


def as_json(found: Sequence[Outcome], *, dry_run: bool) -> str:
    """Return the same for programs."""
    document = {
        "sessions": [
            common.outcome(entry, bytes_freed=entry.freed, bytes_stored=entry.size)
            for entry in found
        ],
        "bytes_freed": sum(entry.freed for entry in found),
        "dry_run": dry_run,
    }
    return common.as_json(document)


def back(session: str, path: str, number: int, period: float, age: float) -> str:
    """Return the sentences about a session that was put back.

    `number` is its bytes, `age` how many seconds ago its live file was changed, and `period` after
    how many the client deletes it.
    """
    text = f"Put {printable(session)} back: {size(number)} in {printable(path)}.\n"
    if age < period:
        return text
    return (
        f"{text}It was last changed {age / _DAY:,.0f} days ago, and its client deletes sessions "
        f"after {period / _DAY:,.0f} days, at its next start. To keep it, `touch` the file now or "
        "raise cleanupPeriodDays; next time, `unarchive --touch` does that for you.\n"
    )


def compressed(done: Compressed) -> str:
    """Return what became of one archive."""
    name = printable(done.where.session)
    if not done.segments:
        return f"{name}: nothing to compress.\n"
    many = count(done.segments, "segment")
    return f"{name}: {many}, {size(done.before)} became {size(done.after)}.\n"


def compressed_json(done: Sequence[Compressed]) -> str:
    """Return the same of all archives for programs."""
    return common.as_json(
        {
            "sessions": [
                {
                    "session": entry.where.session,
                    "segments": entry.segments,
                    "bytes_before": entry.before,
                    "bytes_after": entry.after,
                }
                for entry in done
            ],
            "bytes_before": sum(entry.before for entry in done),
            "bytes_after": sum(entry.after for entry in done),
        }
    )
