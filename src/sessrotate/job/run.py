"""The scheduled job: all steps once, one after the other, and a line in the log.

Rule: one run at a time, and a failure ends neither the run nor its step. The exit code is that of
the worst failure. A session in use is not a failure: the next run comes back to it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from sessrotate import __version__, clients, find
from sessrotate.archive import clock, place
from sessrotate.archive.place import Place
from sessrotate.clients.common import is_folder
from sessrotate.errors import INTERRUPTED, SessrotateError, storage
from sessrotate.in_place import outcome
from sessrotate.in_place.outcome import Outcome, Result
from sessrotate.job import run_log
from sessrotate.job.job import CLOCKLESS, EVERYTHING, Job, Recall, Scope, anew
from sessrotate.job.run_log import Journal
from sessrotate.job.steps import STEPS, Step
from sessrotate.retention.prune import PrunePlan
from sessrotate.retention.trash import Due
from sessrotate.system import inside, locks, user_folders

if TYPE_CHECKING:
    from sessrotate.in_place.fleet import Known
    from sessrotate.in_place.operations import Progress
    from sessrotate.job.config import Settings

WAIT: Final = 10.0
"""Seconds to wait for each session that another process changes."""

_MOVING: Final = frozenset({"heal", "rotate", "archive"})
"""Steps that bring something to an archive."""

_MOST_FAILURES: Final = 20
"""Failures that a line of the log names at most."""


class Stage(Struct, frozen=True):
    """A step and what became of each session in it; no outcomes where the step is off."""

    step: Step
    is_on: bool
    outcomes: tuple[Outcome, ...] = ()

    def count(self, *results: Result) -> int:
        """Return how many sessions have one of these results."""
        return sum(each.result in results for each in self.outcomes)

    @property
    def bytes(self) -> int:
        """How many bytes were moved or freed, or would be."""
        return sum(each.freed for each in self.outcomes if each.error is None)

    @property
    def gained(self) -> int:
        """How many bytes the disk has more by what was moved, or would have."""
        return sum(each.gained for each in self.outcomes)


class Report(Struct, frozen=True):
    """What a run did, or would do.

    `dues` are what a plan deletes of each trash. `doubt` is why nothing goes by age in it: the
    clock is not believed. `saving` says in a plan
    which sessions are saved from the client's clean-up, if any. `unlogged` is why a line of it in
    the log could not be written. `hidden` is what may hide sessions from it,
    as `find.hidden` returns it.
    """

    dry_run: bool
    stages: tuple[Stage, ...]
    planned: PrunePlan | None
    dues: dict[Place, Due]
    doubt: str = ""
    saving: str = ""
    unlogged: SessrotateError | None = None
    hidden: dict[str, str] = field(default_factory=dict)

    @property
    def outcomes(self) -> list[tuple[str, Outcome]]:
        """What became of each session, each with the name of the step that it was in."""
        return [(stage.step.name, each) for stage in self.stages for each in stage.outcomes]

    def count(self, *results: Result) -> int:
        """Return how many outcomes have one of these results, in all steps."""
        return sum(stage.count(*results) for stage in self.stages)

    @property
    def changing(self) -> frozenset[str]:
        """The names of the steps that changed a session, or would."""
        return frozenset(each.step.name for each in self.stages if each.count("planned", "done"))

    def passed_over(self, *, or_usual: bool = False) -> list[Outcome]:
        """Return those of sessions that stay for a reason of their own, `or_usual` for any."""
        found = (each for _, each in self.outcomes if each.result == "nothing to do")
        return [each for each in found if each.detail and (or_usual or not each.usual)]

    @property
    def code(self) -> int:
        """The exit code of the worst failure; 1 if all that failed is to look everywhere."""
        found = (each for _, each in self.outcomes)
        return outcome.exit_code(found, in_use_counts=False) or int(bool(self.hidden))


def plan(
    settings: Settings,
    now: float,
    progress: Progress,
    scope: Scope = EVERYTHING,
    *,
    recall: Recall = anew,
    known: Known | None = None,
) -> Report:
    """Return what a run would do now; change nothing. `now` is in seconds since 1970.

    Whoever only shows its figures may `recall` those of before, and what is `known` of this machine
    is not looked at again.
    """
    job = replace(
        _job(settings, now, progress, scope, dry_run=True), recall=recall, known=known, near={}
    )
    stages = [*_stages(job, Journal("run", is_kept=False))]
    return replace(_report(job, stages), saving=_saving(settings))


def execute(
    settings: Settings,
    now: float,
    progress: Progress,
    scope: Scope = EVERYTHING,
    *,
    command: str = "run",
) -> Report:
    """Do all steps and log the run; `now` is in seconds since 1970.

    The log names it by its `command`.

    Raises InUseError, and logs nothing, if another run is in progress.
    """
    stages: list[Stage] = []
    begun, kept = time.monotonic(), Journal(command)
    with _alone():
        job = _job(settings, now, progress, scope, dry_run=False)
        log = partial(_log, now, stages, by_hand=command != "run" or os.isatty(0))
        try:
            for stage in _stages(job, kept):
                stages.append(stage)  # noqa: PERF402 - an interrupt logs those that are done
        except BaseException as ending:
            if not isinstance(ending, Exception):
                log(time.monotonic() - begun, INTERRUPTED)
            raise
        report = _report(job, stages)
        unlogged = log(time.monotonic() - begun, report.code) or kept.failure
    return replace(report, unlogged=unlogged)


def _job(settings: Settings, now: float, progress: Progress, scope: Scope, *, dry_run: bool) -> Job:
    # Asked before a run writes anything, which would be a sign.
    doubt = clock.doubt(now)
    aged_by = CLOCKLESS if doubt else now
    return Job(settings, aged_by, now, WAIT, progress, dry_run=dry_run, doubt=doubt, scope=scope)


def _saving(settings: Settings) -> str:
    margin, age = settings.archive.before_cleanup, settings.archive.older_than
    if margin is None:
        return ""
    return clients.in_place().cleanup.in_force().saving(margin, older_than=age)


def _report(job: Job, stages: list[Stage]) -> Report:
    hidden = find.hidden() if job.scope.only is None else {}  # or somebody knows which they are
    return Report(job.dry_run, tuple(stages), job.planned, job.dues, job.doubt, hidden=hidden)


def _alone() -> AbstractContextManager[None]:
    """Hold the lock of runs, unless there is no client's folder to hold it in."""
    inside.check_owner(user_folders.log_file())
    there = is_folder(place.root().parent)
    return locks.only_run(place.run_lock()) if there else nullcontext()


def _stages(job: Job, kept: Journal) -> Iterator[Stage]:
    for step in STEPS:
        is_on = step.is_on(job.settings)
        is_done = is_on and not job.has_enough
        outcomes = kept.noting(step.name, _outcomes(step, job)) if is_done else ()
        yield Stage(step, is_on, tuple(outcomes))


def _outcomes(step: Step, job: Job) -> Iterator[Outcome]:
    try:
        with storage(f"{step.would} sessions"):
            for each in step.deed(job):
                job.gained += max(0, each.gained)
                if step.name in _MOVING and each.where and each.result == "planned":
                    job.moved.add(each.where)
                yield each
                if job.has_enough:
                    break
    except SessrotateError as error:
        yield outcome.failure(None, error)


def _log(
    now: float, stages: list[Stage], seconds: float, code: int, *, by_hand: bool
) -> SessrotateError | None:
    """Add the line of a run to the log; return why that could not be done."""
    failures = [
        {"step": stage.step.name, "session": each.session, "code": each.error.exit_code}
        for stage in stages
        for each in stage.outcomes
        if each.result == "failed" and each.error is not None
    ]
    steps = {
        stage.step.name: {
            "done": stage.count("done"),
            "in_use": stage.count("in use"),
            "failed": stage.count("failed"),
            "bytes": stage.bytes,
        }
        for stage in stages
        if stage.is_on
    }
    try:
        run_log.add(
            {
                "at": datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
                "seconds": round(seconds, 3),
                "by_hand": by_hand,
                "folder": str(clients.in_place().files.config_folder()),
                "version": __version__,
                "code": code,
                "steps": steps,
                "failures": failures[:_MOST_FAILURES],
            }
        )
    except SessrotateError as error:
        return error
    return None
