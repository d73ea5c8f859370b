"""The scheduled job as a line for cron. Pure.

Rule: one line that `crontab -e` accepts as it is.
"""

from __future__ import annotations

import shlex
from typing import Final

from sessrotate.job.schedule.work import HOUR, MINUTE, Every, Work

_FIELDS: Final = 5
"""Words of a line that say when."""

_QUIET: Final = " >/dev/null"

_WHEN: Final[dict[Every, str]] = {
    "hourly": f"{MINUTE} * * * *",
    "daily": f"{MINUTE} {HOUR} * * *",
    "weekly": f"{MINUTE} {HOUR} * * 0",
}


def line(work: Work) -> str:
    """Return the line."""
    words = [
        *(f"{name}={shlex.quote(value)}" for name, value in sorted(work.environment.items())),
        shlex.quote(work.program),
        "run",
    ]
    # What fails is on standard error, and mailed.
    return f"{_WHEN[work.every]} {' '.join(words)}{_QUIET}"


def program(line: str) -> str | None:
    """Return the program that a line of a crontab starts, None if that cannot be told."""
    command = _words(line)[_FIELDS:]
    at = command.index("run") if "run" in command else 0
    return command[at - 1] if at else None


def variable(line: str, name: str) -> str | None:
    """Return what a line of a crontab sets a variable to, for itself or for those below it."""
    found = [word.removeprefix(f"{name}=") for word in _words(line) if word.startswith(f"{name}=")]
    return found[-1] if found else None


def every(line: str) -> Every | None:
    """Return how often a line of a crontab starts, None if that is not written as we do."""
    fields = " ".join(line.split()[:_FIELDS])
    return next((each for each, when in _WHEN.items() if when == fields), None)


def _words(line: str) -> list[str]:
    """Return the words of a line as the shell has them, its times first."""
    try:
        return shlex.split(line)
    except ValueError:
        return []
