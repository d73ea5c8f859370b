"""What a rotation of a session would gain the disk, by the plan that a rotation would make.

Rule: the plan is asked, never guessed at; what it refuses gains nothing. Only reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.archive import place, state
from sessrotate.errors import storage
from sessrotate.in_place import gain, rotate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sessrotate.archive.state import State
    from sessrotate.in_place.rotate import RotationPlan
    from sessrotate.system.source import Source


def planned(
    found: State, progress: Callable[[int], None]
) -> tuple[RotationPlan, Source, int] | None:
    """Return the plan of a rotation, the live file, and about how many bytes that gains the disk.

    None if no plan can be made now: that needs a live file that continues its archive, and no
    unfinished operation. `progress` is told how many bytes of the live file were read.
    """
    if found.live is None or found.is_gone or found.is_archived:
        return None
    if found.intent is not None or found.pack is not None or found.problem is not None:
        return None
    plan = rotate.prepare(found, progress, heal=False)  # which would free nothing
    gains = 0 if plan.refusals else max(0, gain.expected(plan, found.live))
    return plan, found.live, gains


def of(path: Path) -> int | None:
    """Return about how many bytes rotating a live file gains the disk; None if no plan can be made.

    Raises as `rotate.prepare` does.
    """
    where = place.of(path)
    if where is None:
        return 0
    with storage("read the session"), state.opened(where) as found:
        told = planned(found, lambda _done: None)
        return None if told is None else told[2]
