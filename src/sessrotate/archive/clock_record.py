"""What is remembered of the clock, and the time that goes on what is put into a trash.

Rule: only reads. What goes to the trash never seems to have been there for longer than it was: a
clock that is behind does not shorten a grace time.
"""

from __future__ import annotations

import time
from typing import Final

from sessrotate.archive import clock, place

_LARGEST: Final = 4096


def read() -> clock.Seen | None:
    """Return what is remembered; None if that is nothing, or cannot be read."""
    try:
        with place.clock_file().open("rb") as file:
            return clock.parse(file.read(_LARGEST))
    except OSError:
        return None


def stamp(now: float | None = None) -> float:
    """Return the time to note, in seconds since 1970: now, or the latest that was believed."""
    seen = read()
    now = time.time() if now is None else now
    return now if seen is None else max(now, seen.highest)
