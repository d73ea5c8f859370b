"""Where this machine stands, in a handful of figures: what `sessrotate` alone shows. Only reads.

Promise: the gain is that of `tidy`, to the byte, because it is the same plan; what is on the disk
is the sum of what `list` says. In come the settings; out comes a `Status`.

Rule: what cannot be read counts nothing here: `doctor` and `tidy` say what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sessrotate.archive import restored
from sessrotate.clients.claude import cleanup
from sessrotate.errors import SessrotateError
from sessrotate.hook import installation
from sessrotate.job import run, run_log, schedule
from sessrotate.reports import on_disk

if TYPE_CHECKING:
    from sessrotate.in_place.operations import Progress
    from sessrotate.job.config.parse import Settings
    from sessrotate.job.run_log import LastRun
    from sessrotate.reports.on_disk import OnDisk


@dataclass(frozen=True, slots=True)
class Status:
    """The figures: what is on the disk, what tidying would gain, and what is done by itself.

    `gain` is in bytes, of `worth` sessions; `failing` are the ids of those that it would fail for,
    `kept` is how many stay whole because their owner restored them. `has_hook` and `has_schedule`
    are what runs by itself; a line that somebody added to cron is not seen. `last` is the last run,
    None if there was none.
    """

    clients: tuple[OnDisk, ...]
    gain: int
    worth: int
    failing: tuple[str, ...]
    kept: int
    has_hook: bool
    has_schedule: bool
    last: LastRun | None


def of_machine(settings: Settings, now: float, progress: Progress) -> Status:
    """Return the status; `now` is in seconds since 1970."""
    planned = run.plan(settings.for_tidying, now, progress)
    found = [each for stage in planned.stages for each in stage.outcomes]
    outcomes = [each for each in found if each.result == "planned" and each.gained > 0]
    failing = dict.fromkeys(each.session for each in found if each.result == "failed")
    return Status(
        clients=tuple(on_disk.of_clients()),
        gain=sum(each.gained for each in outcomes),
        worth=len({each.where for each in outcomes}),
        failing=tuple(filter(None, failing)),
        kept=sum(1 for where in restored.marked() if where.live.exists()),
        has_hook=_has_hook(),
        has_schedule=schedule.found() is not None,
        last=_last(),
    )


def _has_hook() -> bool:
    try:
        found = installation.installed()
    except SessrotateError:
        return False
    return bool(found.commands) and not found.missing and not cleanup.silenced(cleanup.settings())


def _last() -> LastRun | None:
    try:
        return run_log.last()
    except SessrotateError:
        return None
