"""Whether the clock can be believed, before anything goes by age. Pure.

Rule: nothing is pruned or freed in the run that first sees the clock somewhere else than time can
have taken it. From then on the clock must run on steadily for a day. What counts as seen is a run
of ours; what others wrote (the times of files) only shows that time went by since the last one.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import astuple, replace

from sessrotate.segments import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

DAY: Final = 86_400.0
"""Seconds. So long must a clock run on steadily to be believed again; within so much of what is
known, it is neither ahead nor behind."""

_LIMIT: Final = 2 * DAY
"""Seconds without a sign of time going by that are never too many, however short the grace is."""


class Seen(Struct, frozen=True):
    """What is remembered of the clock; all times are its own, in seconds since 1970.

    `first` is since when it has run on steadily, `last` when it was seen last, `newest` the newest
    time that a file had then, and `highest` the latest time at which it was believed.
    """

    first: float
    last: float
    newest: float
    highest: float


class Verdict(Struct, frozen=True):
    """What is to be remembered now, and why the clock is not believed: empty if it is."""

    seen: Seen
    doubt: str = ""


def judge(
    seen: Seen | None, known: Iterable[float], trashed: float | None, now: float, grace: float
) -> Verdict:
    """Return whether the clock is believed at `now`.

    `seen` is what was remembered, None if nothing is; `known` are the times of files and of the
    last logged run, `trashed` is when the oldest thing in the trash came there. A step of more
    than `grace` seconds without any sign of time going by is a jump. All times are in seconds
    since 1970.
    """
    times = sorted(known)
    newest = times[-1] if times else now
    if seen is None:
        start = min(trashed, newest) if trashed is not None else min(newest, now)
        seen = Seen(first=now - DAY, last=start, newest=start, highest=start)
        is_behind = newest > now + DAY
    else:
        is_behind = now < seen.last - DAY or newest > max(seen.newest, now + DAY)
    limit = max(grace, _LIMIT)
    # Files that were newer than the last run already say nothing about the time since.
    between = [time for time in times if max(seen.last, seen.newest) < time <= now]
    signs = [seen.last, *between, now]
    step = max(later - earlier for earlier, later in pairwise(signs))
    if is_behind or step > limit:
        first, doubt = now, _jumped(max(newest, seen.last) if is_behind else seen.last, now)
    else:
        first, doubt = seen.first, ""
    found = Seen(first, now, max(newest, now), seen.highest)
    if now - first < DAY:
        again = _said(first + DAY)
        wait = f"Nothing goes by age before {again} by this clock: if it is right, wait for that."
        return Verdict(found, f"{doubt or _unsteady(first)} {wait}")
    return Verdict(replace(found, highest=max(seen.highest, now)))


def _jumped(known: float, now: float) -> str:
    days = abs(now - known) / DAY
    where = "behind" if now < known else "ahead of"
    return (
        f"The clock says {_said(now)}, {days:,.0f} days {where} what was last known "
        f"({_said(known)})."
    )


def _unsteady(first: float) -> str:
    return f"The clock stepped at {_said(first)}: it was set, or nothing ran for long."


def _said(time: float) -> str:
    """Return a time as it is written, at most 9999."""
    return f"{datetime.fromtimestamp(min(max(time, 0.0), _LATEST), UTC):%Y-%m-%d %H:%M} UTC"


_LATEST: Final = 253_402_300_799.0


def parse(data: bytes) -> Seen | None:
    """Return what was remembered; None if these bytes are none of ours."""
    seen = one_line.parse(data, Seen)
    return seen if seen is not None and all(map(math.isfinite, astuple(seen))) else None
