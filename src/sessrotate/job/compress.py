"""Compressing the sessions of Codex that nobody uses: a step of a run.

Rule: nothing is compressed by itself as long as a client that may not find it then was used within
90 days; what somebody names is, and the plan says why that may be wrong. What a resume made plain
again, or its owner, stays so for 30 days.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessrotate import clients, units
from sessrotate.archive.place import Place
from sessrotate.errors import InUseError
from sessrotate.in_place import fleet, gain
from sessrotate.in_place.gain import Forecast
from sessrotate.in_place.outcome import Outcome, Result, each, failure
from sessrotate.in_place.room import Need
from sessrotate.job import run_log
from sessrotate.retention import rollouts, sizes
from sessrotate.system import disk_use, in_use
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from sessrotate.job.job import Job, Wanted

_OPEN: Final = "A process has it open for writing: end that, then try again."

_COMPRESSED: Final = "its client reads it as before"


def deed(job: Job) -> Iterator[Outcome]:
    """Compress the rollouts that nobody uses, and yield what became of each."""
    after = job.settings.codex.compress_after or 0.0
    is_named = job.scope.only is not None
    least = 0 if is_named else rollouts.WORTH
    idle, takes_few = after if is_named else max(after, units.DAY), job.scope.need is not None
    found = rollouts.wanted(idle, job.now, least, largest_first=takes_few)
    if found and not is_named:
        found = rollouts.rested(found, job.now, run_log.plain_since())
    found = [each for each in found if job.may("compress", each)]
    unread = clients.cold().unread_by(job.now) if found else ""
    if unread and not is_named:
        stay = "They stay as they are; `tidy SESSION` compresses one."
        yield Outcome(None, "nothing to do", detail=f"{unread} {stay}")
        return

    def planned(asked: Wanted) -> Iterator[Outcome]:
        disk = {where.live: rollouts.measured(where) for where, _ in asked}
        made = sizes.compressed(disk, clients.cold().WINDOW)

        def would(where: Place) -> Outcome:
            before, after = disk[where.live], made[where.live]
            with Source.itself(where.live) as source:
                if before - after < max(least, before // 10, 1):
                    return Outcome(where, "nothing to do")
                rollouts.check(source)
            rollouts.seconds(where)
            need = Need(after + rollouts.SPARE, "the compressed session, and what clients write")
            expected = Forecast(before - after, before - gain.blocks(after), need)
            return replace(job.would(where, expected, before, unread), size=after)

        return each((where for where, _ in asked), would, "compress the session")

    def act(where: Place) -> Outcome:
        before = rollouts.measured(where)
        with job.progress("Compressing", before) as compressing:
            freed = rollouts.compress(where, compressing, least=least)
        gained = before - rollouts.measured(where)
        if not freed:
            return Outcome(where, "nothing to do")
        return Outcome(where, "done", freed, gained=gained, detail=_COMPRESSED, disk=before)

    if job.dry_run:
        written = _written(found)
        yield from (failure(where, InUseError(_OPEN)) for where in written)
        asked = [(where, 0) for where in found if where not in written]
        outcomes = job.recall(f"compress for {least}", asked, planned)
    else:
        outcomes = fleet.as_room_comes(found, act, "compress the session")
    yield from (each for each in outcomes if each.result != "nothing to do")


def _written(found: Iterable[Place]) -> list[Place]:
    """Return those that a process is known to have open for writing."""
    files = dict[tuple[int, int], Place]()
    for where in found:
        with suppress(OSError):  # it has gone, and is none to plan for
            status = where.live.stat()
            files[status.st_dev, status.st_ino] = where
    return [files[each] for each in in_use.written({*files})]


def leftovers(job: Job) -> Iterator[Outcome]:
    """Remove what killed clients, and killed runs, left beside rollouts; yield what became of each.

    That is what was begun a day ago or earlier, and what is there besides the file of a session.
    """
    left = (Place(path.parent, "", path.name, path) for path in clients.cold().left_behind(job.now))
    found = (*left, *rollouts.doubled())
    outcomes = each(filter(job.wants, found), partial(_removed, job), "remove what was left")
    yield from (outcome for outcome in outcomes if outcome.result != "nothing to do")


def _removed(job: Job, where: Place) -> Outcome:
    is_one = rollouts.is_one(where)
    result: Result
    if job.dry_run:
        going = [each.goes for each in rollouts.seconds(where)] if is_one else [where.live]
        result, gained = "planned", disk_use.of(*going)
        freed = sum(status.st_size for status in disk_use.seen(*going))
    else:
        files = clients.cold().all_names(where.live) if is_one else (where.live,)
        result, before = "done", disk_use.of(*files)
        freed = rollouts.leave_one(where) if is_one else rollouts.remove_left(where.live)
        gained = before - disk_use.of(*files)
    if not freed:  # its client was faster
        return Outcome(where, "nothing to do")
    said = "left by a resume of Codex, or a run, that was killed"
    return Outcome(where, result, freed, gained=gained, detail=said, disk=gained)
