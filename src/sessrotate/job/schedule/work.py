"""What to start, and how often. Pure.

Rule: nothing here is quoted for a shell. Each system quotes for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from sessrotate.units import DAY

Every = Literal["hourly", "daily", "weekly"]

MARK: Final = "Written by `sessrotate schedule install`; `sessrotate schedule remove` removes it."
"""In each of our files, so that no other file is taken for one."""

MINUTE: Final = 17
HOUR: Final = 3
"""When it starts if the system does not choose a time itself: at night, off the full hour."""

NAME: Final = "sessrotate"
"""What a schedule's files are called, where the client has its usual folder."""

PERIODS: Final[dict[Every, float]] = {"hourly": 3600, "daily": DAY, "weekly": 7 * DAY}
"""Seconds between two starts."""

TIMES: Final[dict[Every, str]] = {
    "hourly": f"{MINUTE} minutes past every hour",
    "daily": f"every day at {HOUR}:{MINUTE}",
    "weekly": f"on Sundays at {HOUR}:{MINUTE}",
}
"""The same in words, by the machine's own time."""


class Work(Struct, frozen=True):
    """`sessrotate run` by its absolute path; `environment` has the variables that say where.

    `name` is what its files are called: another one for each folder of the client, so that all of
    them can be scheduled. `spread` is a number of the machine and the folder, always the same, by
    which their starts are spread.
    """

    program: str
    environment: Mapping[str, str]
    every: Every
    name: str = NAME
    spread: int = 0
