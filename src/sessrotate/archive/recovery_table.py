"""Whether an interrupted swap took place, and what the next run does about it: a table. Pure.

Rule: decided by what the files hold, never by a number or a time. The first row that fits counts.
`scripts/docs.py` writes the table into docs/internals/protocol.md.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from sessrotate.archive.record import Operation

Standing = Literal["before", "after", "unknown"]

Match = Literal["new", "kept", "old", "pack", "other", "absent"]
"""What the live file is: it begins like the new file; its client trimmed the new file, and kept it;
it begins like the old one; it is the file that the pack names, too; any other; or there is none."""

Drafted = Literal["absent", "old", "live", "new", "stranger", "unread"]
"""What has the draft's name: nothing; the file that the pack names, too; the live file; all that
the new file is to hold; or any other file, which another program saved while names were exchanged.
"unread" is one of the last two, and only whoever holds the lock looks which."""

Deed = Literal["undo", "finish", "refuse", "put back"]
"""What the next run does: remove what was made for the swap; do the rest; touch nothing; or give
the live file's name back to the stranger, and decide again."""

MATCHES: Final[dict[Match, str]] = {
    "new": "the new file",
    "kept": "trimmed from the new file, which was kept",
    "old": "the old file",
    "pack": "the pack itself",
    "other": "neither",
    "absent": "gone",
}

DRAFTED: Final[dict[Drafted, str]] = {
    "absent": "gone",
    "old": "the pack itself",
    "live": "the live file itself",
    "new": "all of the new file",
    "stranger": "another program's",
    "unread": "not looked into",
}


class Row(Struct, frozen=True):
    """What is decided where a rotation or restoration was interrupted; None stands for anything."""

    live: Match | None
    drafted: Drafted | None
    standing: Standing
    deed: Deed
    why: str
    only: Operation | None = None
    has_pack: bool | None = None

    def fits(self, operation: Operation, live: Match, drafted: Drafted, *, has_pack: bool) -> bool:
        """Tell whether this row is about such a case."""
        return (
            self.only in {None, operation}
            and self.live in {None, live}
            and self.drafted in {None, drafted}
            and self.has_pack in {None, has_pack}
        )


ROWS: Final = (
    Row("pack", None, "before", "undo", "The names were not exchanged."),
    Row(None, "old", "after", "finish", "The old file came out of the exchange."),
    Row(None, "live", "after", "finish", "The draft has its new name as well."),
    Row("new", "stranger", "unknown", "put back", "It was saved last."),
    Row("new", None, "after", "finish", "The names were exchanged."),
    Row("old", "absent", "after", "finish", "A copy was put back.", only="rotate", has_pack=True),
    Row("old", None, "before", "undo", "The exchange did not last."),
    Row("absent", None, "before", "undo", "There was no old file.", only="restore"),
    Row("other", "absent", "after", "finish", "Its name went after the exchange.", has_pack=True),
    Row(None, "new", "before", "undo", "The new file has no other name."),
    Row(None, "stranger", "before", "undo", "The live file was saved last."),
    Row("kept", None, "after", "finish", "The new file had the live file's name."),
    Row(None, None, "unknown", "undo", "Without a pack nothing follows.", has_pack=False),
    Row(None, None, "unknown", "refuse", "The pack has everything."),
)


def decided(operation: Operation, live: Match, drafted: Drafted, *, has_pack: bool) -> Row:
    """Return what counts for an interrupted operation."""
    return next(row for row in ROWS if row.fits(operation, live, drafted, has_pack=has_pack))


def table() -> str:
    """Return the rows as a table of Markdown."""
    heads = ("the live file is", "`live.partial` is", "the pack is")
    lines = [f"| {' | '.join(heads)} | so the swap | the next run | because |"]
    lines.append("|---|---|---|---|---|---|")
    for row in ROWS:
        live = "anything" if row.live is None else MATCHES[row.live]
        drafted = "" if row.drafted is None else DRAFTED[row.drafted]
        pack = "" if row.has_pack is None else "there" if row.has_pack else "gone"
        done = {"before": "was not done", "after": "was done", "unknown": "is in doubt"}
        deeds = {
            "undo": "undoes",
            "finish": "finishes",
            "refuse": "touches nothing: exit 74",
            "put back": "puts it back",
        }
        live += "" if row.only is None else f" (`{row.only}`)"
        cells = (live, drafted, pack, done[row.standing], deeds[row.deed], row.why)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
