"""What a rotation of a session would gain the disk, by the plan that it would make; and tidying.

Rule: the plan is asked, never guessed at; what it refuses gains nothing. Only reads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sessrotate.archive import owner, state
from sessrotate.archive.state import State
from sessrotate.errors import storage
from sessrotate.in_place import gain, rotate
from sessrotate.in_place.gain import Forecast
from sessrotate.in_place.rotate import RotationPlan
from sessrotate.system.source import Source


def planned(
    found: State, progress: Callable[[int], None]
) -> tuple[RotationPlan, Source, Forecast] | None:
    """Return the plan of a rotation, the live file, and about what that gains the disk.

    None if no plan can be made now: that needs a live file that continues its archive, and no
    unfinished operation. `progress` is told how many bytes of the live file were read.
    """
    if found.live is None or found.is_gone or found.is_away:
        return None
    if found.intent is not None or found.pack is not None or found.problem is not None:
        return None
    plan = rotate.prepare(found, progress, heal=False, proves=False)  # no healing frees
    if plan.refusals or plan.live is None:
        return plan, found.live, Forecast()
    gained, need = max(0, gain.expected(plan, found.live)), gain.needed(plan, found.live)
    return plan, found.live, Forecast(gained=gained, need=need)


def to_tidy(found: State) -> int:
    """Return about how many bytes of the disk `tidy` gains besides rotating a session.

    That is by finishing a rotation that was interrupted, and by compressing what a full disk left
    plain of a session that was put away. What cannot be read gains nothing.
    """
    gains = gain.of_finishing(found).gained
    if found.is_away:
        from sessrotate.retention import sizes  # noqa: PLC0415 - few sessions are put away

        gains += sizes.left_plain(found.place).gained
    return max(0, gains)


def of(path: Path) -> int | None:
    """Return about how many bytes rotating a live file gains the disk; None if no plan can be made.

    Raises as `rotate.prepare` does.
    """
    where = owner.of(path)
    if where is None:
        return 0
    with storage("read the session"), state.opened(where) as found:
        told = planned(found, lambda _done: None)
        return None if told is None else told[2].gained
