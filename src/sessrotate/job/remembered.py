"""What plans came to, remembered for the figures that `sessrotate` alone shows.

Promise: a session of which nothing changed is not read again, and its figures are those of its
plan. Nothing that is carried out goes by them. Whoever deletes the file costs the next status time,
and whoever changes a figure in it changes what is shown, and no more.

Rule: figures are found by a digest of all that they follow from: our version, what was asked for,
and the path, size, times, device and inode of the live file, and of all in the archive. So nothing
is found of what changed, and neither names nor content are in the file. What more than that
decides (who uses a session, a full disk, what was interrupted or failed) is asked each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct

from sessrotate import __version__, fs
from sessrotate.archive.place import Place
from sessrotate.clients.claude import trim
from sessrotate.errors import SessrotateError
from sessrotate.in_place import gain
from sessrotate.in_place.outcome import Outcome, Usual
from sessrotate.model import Count, Digest
from sessrotate.retention import rollouts
from sessrotate.segments import load, one_line
from sessrotate.system import disk_use, in_use, ownership, user_folders
from sessrotate.system.digest import Fingerprint

if TYPE_CHECKING:
    from sessrotate.job.job import Act, Wanted

_MOST_BYTES: Final = 16 << 20
"""Bytes of the file that are read: 80,000 sessions."""

_Change = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""Bytes more or fewer."""


class _Figures(Struct, frozen=True):
    """What the plan of a session came to, as in an `Outcome`, in bytes; `usual` too.

    Where `room` or more are free, the plan does not depend on it.
    """

    result: Literal["planned", "nothing to do"]
    freed: _Change
    size: Count
    gained: _Change
    room: Count
    usual: Usual = ""


class _Known(Struct, frozen=True):
    """The file: the figures of each session, by the digest of what they follow from."""

    figures: dict[Digest, _Figures]


class Memory:
    """What is remembered when a status begins, and what it finds out.

    `outcomes` are those of the sessions that were asked for so far.
    """

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self._before = _read()
        self._now: dict[str, _Figures] = {}

    def recall(
        self,
        asked: str,
        wanted: Wanted,
        act: Act,
        *,
        live: bool = True,
    ) -> Iterator[Outcome]:
        """Yield what is known of sessions first, then what planning all others comes to."""
        asked = f"{asked} {live}"
        keys = {where: _key(asked, where) for where, _ in wanted}
        known = {
            where: self._before[key]
            for where, key in keys.items()
            if key in self._before and _has_room(where, self._before[key])
        }
        if not live:
            known = {where: known[where] for where in _unused(known)}
        for where, found in known.items():
            self._now[keys[where]] = found
            outcome = Outcome(
                where, found.result, found.freed, found.size, found.gained, usual=found.usual
            )
            self.outcomes.append(outcome)
            yield outcome
        for outcome in act([each for each in wanted if each[0] not in known]):
            self.outcomes.append(outcome)
            if outcome.where is not None:
                self._learn(asked, outcome.where, keys[outcome.where], outcome)
            yield outcome

    def _learn(self, asked: str, where: Place, key: str, outcome: Outcome) -> None:
        figures = _figures(where, outcome)
        # What changed while it was read is not what was found.
        if figures is not None and _key(asked, where) == key:
            self._now[key] = figures

    def keep(self, *, forgets: bool = True) -> None:
        """Write down what was found out, where that can be done, and no failure is told.

        It `forgets` what nobody asked for: all was asked for.
        """
        found = self._now if forgets else {**self._before, **self._now}
        if found == self._before:
            return
        with suppress(SessrotateError, OSError):
            path = user_folders.cache_file()
            user_folders.check_home(path)
            ownership.check(path)
            fs.create_folder(path.parent)
            fs.create_file_at_once(path, one_line.dump(_Known(found)))


def _read() -> dict[str, _Figures]:
    with suppress(SessrotateError, OSError):
        path = user_folders.cache_file()
        known = one_line.parse(load.read_small(path.parent, path.name, _MOST_BYTES), _Known)
        return {} if known is None else known.figures
    return {}


def _key(asked: str, where: Place) -> str:
    """Return the digest of all that the plan of a session follows from."""
    kept = trim.replaced(where.live, where.session)
    looks = [
        (each.st_size, each.st_mtime_ns, each.st_ctime_ns, each.st_dev, each.st_ino)
        for each in disk_use.seen(where.live, where.archive, *kept)
    ]
    digest = Fingerprint()
    digest.update(repr((__version__, asked, str(where.live), looks)).encode())
    return digest.digest


def _figures(where: Place, outcome: Outcome) -> _Figures | None:
    """Return what to remember of an outcome; None if more than the session's files decided it.

    Of what is planned, that is only what goes to the archive: the rest is rare, or must be seen.
    """
    if where.pack.exists() or where.waiting.exists():
        return None  # these go by time
    if outcome.result == "planned" and outcome.segments:
        # More than the new live file and its segments take at once, with what is beside them.
        room = outcome.size + outcome.before + 2 * gain.BLOCK * (len(outcome.segments) + 16)
    elif outcome.result == "planned" and rollouts.is_one(where):
        room = outcome.size + rollouts.SPARE
    elif outcome.result == "nothing to do":
        room = 0
    else:
        return None
    found = _Figures(
        outcome.result, outcome.freed, outcome.size, outcome.gained, room, outcome.usual
    )
    return found if _has_room(where, found) else None


def _has_room(where: Place, figures: _Figures) -> bool:
    free = fs.free_bytes(where.config)
    return free is None or free >= figures.room


def _unused(places: dict[Place, _Figures]) -> Iterator[Place]:
    """Yield those of these sessions that nobody is known to use."""
    files = {}
    for where in places:
        with suppress(OSError):
            status = where.live.stat()
            files[where] = (status.st_dev, status.st_ino)
    written = in_use.written(frozenset(files.values())) if files else ()
    for where, file in files.items():
        if file not in written and not any(in_use.clients(where)):
            yield where
