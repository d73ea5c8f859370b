"""What `archive` prints. Pure.

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

_COLUMNS: Final = ("session", "leaves", "takes", "result")


def outcomes(found: Sequence[Outcome], *, dry_run: bool) -> str:
    """Return the table of what became of each session, and the sum below it."""
    rows = [
        (
            printable(entry.session, 40),
            size(entry.freed),
            _takes(entry),
            printable(entry.text, 1000),
        )
        for entry in found
    ]
    table = common.plain_table(_COLUMNS, rows, left={"session", "result"})
    verb = "would leave" if dry_run else "left"
    freed = size(sum(entry.freed for entry in found))
    many = count(len(found), "session")
    gained = sum(entry.gained for entry in found)
    told = f", {_freed(gained, dry_run=dry_run)}" if found else ""
    away = f"{common.PUT_AWAY}\n" if dry_run and any(entry.freed for entry in found) else ""
    return f"{table}{away}{many}; {freed} {verb} the client's folder{told}.\n"


def _freed(gained: int, *, dry_run: bool) -> str:
    """Say what the disk gains."""
    if gained <= 0:
        return "which frees nothing on disk" if dry_run else "which freed nothing on disk"
    return (
        f"which frees about {size(gained)} on disk" if dry_run else f"{size(gained)} freed on disk"
    )


def _takes(entry: Outcome) -> str:
    """Return how much of the disk the archived session takes; in a plan, about how much."""
    if entry.error is not None:
        return "-"
    about = "~" if entry.result == "planned" else ""
    return f"{about}{size(max(0, entry.disk - entry.gained))}"


def as_json(found: Sequence[Outcome], *, dry_run: bool) -> str:
    """Return the same for programs."""
    document = {
        "sessions": [
            common.outcome(
                entry,
                bytes_moved=entry.freed,
                bytes_stored=entry.size,
                disk_bytes_gained=entry.gained,
            )
            for entry in found
        ],
        "bytes_moved": sum(entry.freed for entry in found),
        "disk_bytes_gained": sum(entry.gained for entry in found),
        "dry_run": dry_run,
    }
    return common.as_json(document)
