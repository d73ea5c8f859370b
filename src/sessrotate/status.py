"""Where this machine stands, in a handful of figures: what `sessrotate` alone shows. Only reads.

Promise: the gain is that of `tidy`, to the byte, because it is the same plan; what is on the disk
is the sum of what `list` says. In come the settings; out comes a `Status`.

Rule: what cannot be read counts nothing here: `doctor` and `tidy` say what is wrong.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, field

from sessrotate.archive import place, restored
from sessrotate.automation import findings
from sessrotate.clients.claude import cleanup
from sessrotate.clients.claude import client as claude
from sessrotate.clients.common import is_file
from sessrotate.errors import SessrotateError
from sessrotate.hook import installation
from sessrotate.job import run, run_log
from sessrotate.job.schedule.installed import installed
from sessrotate.reports import on_disk
from sessrotate.system import locks

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.in_place.operations import Progress
    from sessrotate.job.config.parse import Settings
    from sessrotate.job.run_log import LastRun
    from sessrotate.reports.on_disk import OnDisk


class Status(Struct, frozen=True):
    """The figures: what is on the disk, what tidying would gain, and what is done by itself.

    `gain` is in bytes, of `worth` sessions; `failing` are the ids of those that it would fail for,
    `kept` is how many stay whole because their owner restored them. `has_hook` and `has_schedule`
    are what runs by itself. `wrong` says what keeps it from running, the worst first. `doomed` is
    how many sessions the client deletes within a week that nothing saves. `others` are folders of
    the client that were not looked at. `last` is the last run, None if there was none.
    `hidden` is what may hide sessions (`find.hidden`).
    """

    clients: tuple[OnDisk, ...]
    gain: int
    worth: int
    failing: tuple[str, ...]
    kept: int
    has_hook: bool
    has_schedule: bool
    last: LastRun | None
    wrong: tuple[str, ...] = ()
    doomed: int = 0
    others: tuple[Path, ...] = ()
    hidden: dict[str, str] = field(default_factory=dict)


def of_machine(settings: Settings, now: float, progress: Progress) -> Status:
    """Return the status; `now` is in seconds since 1970."""
    planned = run.plan(settings.for_tidying, now, progress)
    found = [each for stage in planned.stages for each in stage.outcomes]
    outcomes = [each for each in found if each.result == "planned" and each.gained > 0]
    failing = dict.fromkeys(each.session for each in found if each.result == "failed")
    wrong = [*findings.not_running()]
    is_saved = findings.is_saved() and all(each.kind != "schedule" for each in wrong)
    return Status(
        clients=tuple(on_disk.of_clients()),
        gain=sum(each.gained for each in outcomes),
        worth=len({each.where for each in outcomes}),
        failing=tuple(filter(None, failing)),
        kept=sum(is_file(place.of_session(each).live) for each in restored.marked()),
        has_hook=_has_hook(),
        has_schedule=installed() is not None,
        last=_last(),
        wrong=tuple(each.detail for each in wrong),
        doomed=0 if is_saved else len(cleanup.doomed(cleanup.in_force(), findings.WEEK, now)),
        others=tuple(claude.other_folders()),
        hidden=planned.hidden,
    )


def _has_hook() -> bool:
    try:
        found = installation.installed()
    except SessrotateError:
        return False
    return bool(found.commands) and not found.missing and not cleanup.silenced(cleanup.settings())


def _last() -> LastRun | None:
    """Return the last run, also one that was killed; not one that goes on, and may end well."""
    with suppress(SessrotateError):
        return run_log.last(or_killed=not locks.is_held(place.run_lock()))
    return None
