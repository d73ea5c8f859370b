"""Where this machine stands, in a handful of figures: what `sessrotate` alone shows. Only reads.

Promise: the gain is that of `tidy`, to the byte, because it is the same plan, or what that was for
sessions of which nothing changed since; what is on the disk is the sum of what `list` says. In come
the settings; out comes a `Status`.

Rule: what cannot be read counts nothing here: `doctor` and `tidy` say what is wrong.

May import: `automation`, `hook`, `job`, `reports`, `retention`, `in_place`, `archive`, `segments`,
`clients`, `system`, `fs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from sessrotate.archive import place, restored
from sessrotate.archive.place import Place
from sessrotate.automation import findings
from sessrotate.clients import in_place
from sessrotate.errors import SessrotateError
from sessrotate.hook import installation
from sessrotate.in_place.fleet import Known
from sessrotate.in_place.outcome import Outcome
from sessrotate.job import run, run_log
from sessrotate.job.config.file import Settings
from sessrotate.job.job import Scope
from sessrotate.job.run_log import LastRun
from sessrotate.job.schedule.installed import installed
from sessrotate.reports import next_steps, on_disk
from sessrotate.reports.next_steps import NextStep
from sessrotate.reports.on_disk import OnDisk
from sessrotate.status import remembered
from sessrotate.system import locks

if TYPE_CHECKING:
    from sessrotate.in_place.operations import Progress


class Status(Struct, frozen=True):
    """The figures: what is on the disk, what tidying would gain, and what is done by itself.

    `gain` is in bytes, of `worth` sessions; `failing` are the ids of those that it would fail for,
    `kept` is how many stay whole because their owner restored them. `has_hook` and `has_schedule`
    are what runs by itself. `wrong` says what keeps it from running, the worst first. `doomed` is
    how many sessions the client deletes within a week that nothing saves. `others` are folders of
    the client that were not looked at. `last` is the last run, None if there was none.
    `hidden` is what may hide sessions (`find.hidden`), and `steps` say what else would free some.
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
    steps: tuple[NextStep, ...] = ()


class Look:
    """A look at this machine: at once what costs little, then what tidying would gain."""

    def __init__(self, settings: Settings, now: float) -> None:
        """Look at what costs little; `now` is in seconds since 1970."""
        self._settings, self._now = settings, now
        self._memory = remembered.Memory()
        self._marked = {*restored.marked()}
        archives = [*place.archives()]
        clients = tuple(on_disk.of_clients(archives, self._memory.sessions))
        self._known = _known(archives, clients)
        self._first = _without_gain(now, clients, self._known, self._marked)

    @property
    def so_far(self) -> Status:
        """The status with the gain of the sessions that were looked at until now."""
        return _with(self._first, self._memory.outcomes)

    def whole(self, progress: Progress) -> Status:
        """Return the whole status. Sessions are read of which nothing is remembered."""
        settings, recall = self._settings.for_tidying, self._memory.recall
        try:
            planned = run.plan(
                settings, self._now, progress, Scope(asks=True), recall=recall, known=self._known
            )
        except BaseException:
            self._memory.keep(forgets=False)  # whoever does not wait asks again
            raise
        self._memory.keep()
        found = [each for _, each in planned.outcomes]
        left = on_disk.left_alone(self._marked)
        steps = next_steps.after(found, self._first.clients, self._now, left)
        return replace(_with(self._first, found), hidden=planned.hidden, steps=steps)


def _with(first: Status, found: list[Outcome]) -> Status:
    """Return a status with what these outcomes of a plan gain."""
    outcomes = [each for each in found if each.result == "planned" and each.gained > 0]
    failing = dict.fromkeys(each.session for each in found if each.result == "failed")
    return replace(
        first,
        gain=sum(each.gained for each in outcomes),
        worth=len({each.where for each in outcomes}),
        failing=tuple(filter(None, failing)),
    )


def _known(archives: Sequence[Place], clients: Iterable[OnDisk]) -> Known:
    claudes = [each for each in clients if each.client == in_place().files.NAME]
    live = (info for each in claudes for info in each.infos if info.is_live)
    plain = frozenset[Path]().union(*(each.plain for each in claudes))
    return Known(archives, {info.path: info.bytes for info in live}, plain)


def _without_gain(
    now: float, clients: tuple[OnDisk, ...], known: Known, marked: Iterable[str]
) -> Status:
    found = installed()
    wrong = [*findings.not_running(found)]
    has_margin = findings.saving_margin() is not None
    is_saved = has_margin and all(each.kind != "schedule" for each in wrong)
    doomed, cleanup = list[str](), in_place().cleanup
    if not is_saved:
        doomed = cleanup.doomed(cleanup.in_force(), findings.WEEK, now, known.sizes)
    return Status(
        clients=clients,
        gain=0,
        worth=0,
        failing=(),
        kept=restored.whole(marked),
        has_hook=_has_hook(),
        has_schedule=found is not None,
        last=_last(),
        wrong=tuple(each.detail for each in wrong),
        doomed=len(doomed),
        others=tuple(in_place().files.other_folders()),
    )


def _has_hook() -> bool:
    try:
        found = installation.installed()
    except SessrotateError:
        return False
    return bool(found.commands) and not found.missing and not in_place().calls.silenced()


def _last() -> LastRun | None:
    """Return the last run, also one that was killed; not one that goes on, and may end well."""
    with suppress(SessrotateError):
        return run_log.last(or_killed=not locks.is_held(place.run_lock()))
    return None
