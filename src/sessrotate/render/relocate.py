"""What `relocate` moves, or would → what people and programs read.

Rule: as in `render`: pure text out, and what came from outside is made printable first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.errors import printable
from sessrotate.render import common

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessrotate.in_place.outcome import Outcome
    from sessrotate.in_place.relocate import Move


def text(moves: Sequence[Move], outcomes: Sequence[Outcome], *, dry_run: bool) -> str:
    """Return a line for each archive with what became of it, and the sum."""
    if not moves:
        return "There are no archives in OLD: nothing to move.\n"
    lines = [
        f"{printable(move.old.session)}: {printable(str(move.old.archive))} to "
        f"{printable(str(move.new.archive))}: {'would move' if dry_run else 'moved'}"
        if outcome.error is None
        else f"{printable(move.old.session)}: stays: {outcome.detail}"
        for move, outcome in zip(moves, outcomes, strict=True)
    ]
    done = sum(outcome.error is None for outcome in outcomes)
    verb = "Would move" if dry_run else "Moved"
    lines.append(f"{verb} {done:,} of {common.count(len(moves), 'archive')}.")
    return "\n".join(lines) + "\n"


def as_json(moves: Sequence[Move], outcomes: Sequence[Outcome], *, dry_run: bool) -> str:
    """Return the same for programs."""
    archives = [
        {
            "session": move.old.session,
            "from": str(move.old.archive),
            "to": str(move.new.archive),
            "result": outcome.result,
            "detail": outcome.detail,
        }
        for move, outcome in zip(moves, outcomes, strict=True)
    ]
    return common.as_json({"dry_run": dry_run, "archives": archives})
