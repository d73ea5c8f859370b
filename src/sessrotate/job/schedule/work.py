"""What to start, and how often. Pure.

Rule: no text has a character that one of the systems would need an escape for: it is refused here.
What only needs quotes (a space, or a sign of the shell's) is quoted by each system.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from sessrotate.errors import RefusedError, printable
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


_ESCAPED: Final = frozenset("\"'\\%$")
"""Characters that a unit of systemd, or a line of cron, takes for something else."""


class Work(Struct, frozen=True):
    """`sessrotate run` by its absolute path; `environment` has the variables that say where.

    `name` is what its files are called: another one for each folder of the client, so that all of
    them can be scheduled. `spread` is a number of the machine and the folder, always the same, by
    which their starts are spread. Raises RefusedError for text that no schedule is written with.
    """

    program: str
    environment: Mapping[str, str]
    every: Every
    name: str = NAME
    spread: int = 0

    def __post_init__(self) -> None:
        for text in (self.program, *self.environment.values()):
            if not text.isprintable() or _ESCAPED & {*text}:
                raise RefusedError(
                    f"{printable(text, 1000)} cannot be written in a schedule: use a path without "
                    "quotes, backslashes, %, $ and characters that cannot be printed, such as a "
                    "symbolic link to it."
                )
