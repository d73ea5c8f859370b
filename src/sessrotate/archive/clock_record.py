"""What is remembered of the clock, and the time that goes on what is put into a trash.

Rule: only reads. What goes to the trash never seems to have been there for longer than it was: a
clock that is behind does not shorten a grace time.
"""

from __future__ import annotations

import time
from typing import Final

from sessrotate.archive import clock, place
from sessrotate.errors import SessrotateError
from sessrotate.segments import load

_LARGEST: Final = 4096


def read() -> clock.Seen | None:
    """Return what is remembered; None if that is nothing, or cannot be read."""
    try:
        name = f"{place.LOCKS}/{place.clock_file().name}"
        return clock.parse(load.read_small(place.root(), name, _LARGEST))
    except (SessrotateError, OSError):
        return None


def stamp(now: float | None = None) -> float:
    """Return the time to note, in seconds since 1970: now, or the latest that was believed."""
    seen = read()
    now = time.time() if now is None else now
    return now if seen is None else max(now, seen.highest)
