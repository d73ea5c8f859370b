"""Whether an interrupted swap took place, and what the next run does about it: a table. Pure.

Rule: decided by what the files hold, never by a number or a time. The first row that fits counts.
`scripts/docs` writes the table into docs/internals/protocol.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from sessrotate.archive.intent import Operation

Standing = Literal["before", "after", "unknown"]

Match = Literal["new", "old", "pack", "other", "absent"]
"""What the live file is: it begins like the new file, or like the old one; the file that the pack
names, too (told for a merge, whose two files begin alike); any other; or there is none."""

Sign = Literal["done", "none", "no pack"]
"""What else tells: something that happens only after the swap ("done": a segment is sealed, or the
pack is shortened; of a merge, the draft has gone), or nothing, with a pack or without one."""

Deed = Literal["undo", "finish", "refuse"]
"""What the next run does: remove what was made for the swap; do the rest; or touch nothing."""

MATCHES: Final[dict[Match, str]] = {
    "new": "the new file",
    "old": "the old file",
    "pack": "the pack itself",
    "other": "neither",
    "absent": "gone",
}

SIGNS: Final[dict[Sign, str]] = {
    "done": "a sign that it was done",
    "none": "nothing",
    "no pack": "no pack",
}


@dataclass(frozen=True, slots=True)
class Row:
    """What is decided where one of these operations was interrupted; None stands for anything."""

    operations: tuple[Operation, ...]
    live: Match | None
    sign: Sign | None
    standing: Standing
    deed: Deed
    why: str

    def fits(self, operation: Operation, live: Match, sign: Sign) -> bool:
        """Tell whether this row is about such a case."""
        return (
            operation in self.operations and self.live in {None, live} and self.sign in {None, sign}
        )


_SWAPS: Final[tuple[Operation, ...]] = ("rotate", "restore")

ROWS: Final = (
    Row(_SWAPS, "new", None, "after", "finish", "The rename took place."),
    Row(
        _SWAPS, None, "done", "after", "finish", "The live file is not ours any more: told as such."
    ),
    Row(_SWAPS, "old", None, "before", "undo", "The rename did not take place."),
    Row(("restore",), "absent", None, "before", "undo", "A session that was gone has no old file."),
    Row(_SWAPS, "other", "no pack", "unknown", "undo", "Without a pack no rename follows."),
    Row(_SWAPS, None, None, "unknown", "refuse", "The pack has everything."),
    Row(("insert",), "absent", None, "before", "finish", "The pack becomes the live file again."),
    Row(("insert",), "pack", None, "before", "finish", "The rename did not take place."),
    Row(("insert",), None, "done", "after", "finish", "Nobody but us moves the draft away."),
    Row(("insert",), "new", None, "after", "finish", "The lines are in their place."),
    Row(("insert",), "old", None, "before", "finish", "The lines are not in their place."),
    Row(("insert",), None, "no pack", "unknown", "finish", "Without a pack no rename follows."),
    Row(("insert",), None, None, "unknown", "refuse", "The pack has everything."),
    Row(("late",), None, None, "before", "finish", "A merge that has yet to begin."),
)


def decided(operation: Operation, live: Match, sign: Sign) -> Row:
    """Return what counts for an interrupted operation."""
    return next(row for row in ROWS if row.fits(operation, live, sign))


def table() -> str:
    """Return the rows as a table of Markdown."""
    lines = ["| interrupted | the live file is | else | so the swap | the next run | because |"]
    lines.append("|---|---|---|---|---|---|")
    for row in ROWS:
        live = "anything" if row.live is None else MATCHES[row.live]
        sign = "" if row.sign is None else SIGNS[row.sign]
        done = {"before": "was not done", "after": "was done", "unknown": "is in doubt"}
        deeds = {"undo": "undoes", "finish": "finishes", "refuse": "touches nothing: exit 74"}
        operations = ", ".join(f"`{operation}`" for operation in row.operations)
        cells = (operations, live, sign, done[row.standing], deeds[row.deed], row.why)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
