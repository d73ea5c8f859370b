"""The clock, held against everything that is known, before anything is pruned or freed.

Rule: `archive.clock` decides; here is only where its evidence comes from, and what is remembered.
Whoever goes by age asks `look` first, and removes nothing if the clock is doubted. What goes to the
trash never seems to have been there for longer than it was: a clock that is behind shortens no
grace time.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sessrotate import fs, names, units
from sessrotate.archive import clock, place, record
from sessrotate.clients.claude import client as claude
from sessrotate.clients.common import is_folder
from sessrotate.errors import SessrotateError
from sessrotate.segments import load, manifest, one_line
from sessrotate.system import ownership

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from sessrotate.archive.clock import Verdict
    from sessrotate.archive.place import Place


_LARGEST: Final = 4096

_STEP: Final = 7 * 86_400.0
"""Seconds that the clock may go on by at once where nothing is freed by a grace time."""


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


def look(
    grace: float | None, now: float, last_run: str | None, archives: Sequence[Place]
) -> Verdict:
    """Return whether the clock is believed at `now`, in seconds since 1970; change nothing.

    `grace` is in seconds, None if nothing goes by it; `last_run` is when the last run was logged
    (ISO 8601), None if none was. `archives` are all of this machine.
    """
    seen, run = read(), units.seconds(last_run)
    trashed = min(_trashed(archives), default=None) if seen is None else None
    known = [] if run is None else [run]
    if archives or seen or known or trashed:  # else nothing of ours is there that could go
        known += _modified(*claude.sessions(), *(where.archive for where in archives))
    return clock.judge(seen, known, trashed, now, _STEP if grace is None else grace)


def remember(verdict: Verdict) -> None:
    """Write down what was seen of the clock. Where that cannot be done, nothing is remembered.

    Raises RefusedError if root would leave the file in another user's folder, or behind a link.
    """
    path = place.clock_file()
    if not is_folder(place.root().parent):
        return  # no client, so nothing that could go
    ownership.check(path, *path.parents[:3])  # the folder of archives, and the client's
    ownership.check_links([path.parent])
    with suppress(OSError):
        fs.create_folder(path.parent)
        fs.create_file_at_once(path, one_line.dump(verdict.seen))


def is_at_stake(archives: Iterable[Place]) -> bool:
    """Tell whether anything was ever put into a trash, or the clock was looked at before.

    `archives` are all of this machine.
    """
    return read() is not None or any(_trashed(archives))


def _modified(*paths: Path) -> Iterator[float]:
    """Yield when these files and folders were changed last, if they are there."""
    for path in paths:
        with suppress(OSError):
            yield path.stat().st_mtime


def _trashed(archives: Iterable[Place]) -> Iterator[float]:
    """Yield when segments of these archives were pruned, and sessions restored."""
    for where in archives:
        times = [record.told(where.archive).restored]
        with suppress(SessrotateError):
            data = load.read_small(where.archive, names.MANIFEST, manifest.MAX_BYTES)
            pruned = (sealed.pruned for sealed in manifest.parse(data).segments)
            times += [each.at for each in pruned if each is not None]
        yield from (at for at in map(units.seconds, times) if at is not None)
