"""Whether the clock can be believed, before anything goes by its age.

Rule: no rule of age applies while the clock is behind the newest of what we wrote, or more than a
year ahead of it. Our folders and the log of runs date that; what others wrote says nothing.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from sessrotate import units
from sessrotate.archive import place
from sessrotate.errors import printable
from sessrotate.system import user_folders
from sessrotate.units import DAY

YEAR: Final = 366 * DAY

_NAMED: Final = 5
"""Files from the future that are named at most."""

_LATEST: Final = 253_402_300_799.0
"""The last second of the calendar."""


def doubt(now: float) -> str:
    """Say why the clock is not believed at `now`, in seconds since 1970; empty if it is."""
    return judged(_written(), now)


def judged(written: Mapping[str, float], now: float) -> str:
    """Say the same by what we wrote, and when: both times in seconds since 1970."""
    paths = sorted(written, key=written.__getitem__, reverse=True)
    newest = written[paths[0]] if paths else now
    # A clock that is behind by less than a day frees nothing early, and servers have their own.
    if now - YEAR <= newest <= now + DAY:
        return ""
    said = (
        f"The clock says {units.written(now)}, and {printable(paths[0], 1000)}, which "
        f"sessrotate wrote, is from {units.written(newest)}. Age rules are suspended until"
    )
    if newest < now:
        return f"{said} the next rotation or `sessrotate run`: run that if the clock is right."
    ahead = [path for path in paths if written[path] > now + DAY]
    touch = printable(shlex.join(["touch", *ahead[:_NAMED]]), 9999)
    return f"{said} then. If the clock is right, wait until then, or run `{touch}`."


def stamp(now: float | None = None) -> float:
    """Return the time to note, in seconds since 1970: now, or that of the newest that we wrote.

    So what is noted while the clock is behind keeps its grace period.
    """
    return max(time.time() if now is None else now, *_written().values(), 0.0)


def _written() -> dict[str, float]:
    """Return when each of our archives, and the log of runs, was last changed, by their paths."""
    found, log = dict[str, float](), user_folders.log_file()
    with suppress(OSError):
        found[str(log)] = min(log.stat().st_mtime, _LATEST)
    with suppress(OSError), os.scandir(place.root() / place.ARCHIVES) as entries:
        for entry in entries:  # whoever restores thousands asks for each of all of these
            with suppress(OSError):
                found[entry.path] = min(entry.stat().st_mtime, _LATEST)
    return found
