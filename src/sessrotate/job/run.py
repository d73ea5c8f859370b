"""The scheduled job: all steps one after the other, once, and a line in the log.

Rule: one run at a time, and to its end: a failure ends neither the run nor the step it is in. The
exit code is that of the worst failure. What is in use is no failure: the next run finds it again.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sessrotate import __version__, errors
from sessrotate.archive import place
from sessrotate.errors import SessrotateError, StorageError, storage
from sessrotate.job import run_log
from sessrotate.job.steps import STEPS, Item, Job, Step, failure
from sessrotate.system import locks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from sessrotate.in_place.operations import Progress
    from sessrotate.job.config.parse import Settings
    from sessrotate.retention.prune import PrunePlan

WAIT: Final = 10.0
"""Seconds to wait for each session that another process changes."""

INTERRUPTED: Final = 130
"""What the log says of a run that was told to stop."""

_MOST_FAILURES: Final = 20
"""How many failures a line of the log names."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A step and what it came to; without items where it is not on."""

    step: Step
    is_on: bool
    items: tuple[Item, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        """How many sessions became what."""
        return Counter(item.became for item in self.items)

    @property
    def bytes(self) -> int:
        """How many bytes were moved or freed."""
        return sum(item.bytes for item in self.items if item.became == "done")


@dataclass(frozen=True, slots=True)
class Report:
    """What a run came to, or would; `unlogged` is why there is no line in the log, if there is."""

    dry_run: bool
    stages: tuple[Stage, ...]
    planned: PrunePlan | None
    unlogged: StorageError | None = None

    @property
    def code(self) -> int:
        """The exit code: that of the worst failure."""
        return _code(self.stages)


def plan(settings: Settings, now: float, progress: Progress) -> Report:
    """Return what a run would do now; change nothing."""
    job = Job(settings, now, WAIT, progress, dry_run=True)
    stages = tuple(_stages(job))
    return Report(dry_run=True, stages=stages, planned=job.planned)


def execute(settings: Settings, now: float, progress: Progress) -> Report:
    """Do all steps and log it; `now` is in seconds since 1970.

    Raises InUseError, and logs nothing, while another run goes on.
    """
    job = Job(settings, now, WAIT, progress, dry_run=False)
    stages: list[Stage] = []
    begun = time.monotonic()
    with _alone():
        try:
            for stage in _stages(job):
                stages.append(stage)  # noqa: PERF402 - an interrupt finds those that are done
        except BaseException as ending:
            if not isinstance(ending, Exception):
                _log(now, time.monotonic() - begun, INTERRUPTED, stages)
            raise
        unlogged = _log(now, time.monotonic() - begun, _code(stages), stages)
    return Report(dry_run=False, stages=tuple(stages), planned=job.planned, unlogged=unlogged)


def _alone() -> AbstractContextManager[None]:
    """Hold the lock of runs; without a client's folder there is nothing to be kept apart."""
    file = place.run_lock()
    return locks.only_run(file) if place.root().parent.is_dir() else nullcontext()


def _stages(job: Job) -> Iterator[Stage]:
    for step in STEPS:
        if step.is_on(job.settings):
            yield Stage(step, is_on=True, items=tuple(_items(step, job)))
        else:
            yield Stage(step, is_on=False)


def _items(step: Step, job: Job) -> Iterator[Item]:
    try:
        with storage(f"{step.would} sessions"):
            yield from step.deed(job)
    except SessrotateError as error:
        yield failure("", error)


def _code(stages: list[Stage] | tuple[Stage, ...]) -> int:
    return errors.exit_code(
        item.error
        for stage in stages
        for item in stage.items
        if item.became == "failed" and item.error is not None
    )


# ── the log ──────────────────────────────────────────────────────────────────────────────────


def _log(now: float, seconds: float, code: int, stages: list[Stage]) -> StorageError | None:
    try:
        run_log.add(_record(now, seconds, code, stages))
    except StorageError as error:
        return error
    return None


def _record(now: float, seconds: float, code: int, stages: list[Stage]) -> dict[str, Any]:
    failures = [
        {"step": stage.step.name, "session": item.session, "code": item.error.exit_code}
        for stage in stages
        for item in stage.items
        if item.became == "failed" and item.error is not None
    ]
    return {
        "at": datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "version": __version__,
        "code": code,
        "steps": {
            stage.step.name: {
                "done": stage.counts["done"],
                "in_use": stage.counts["in use"],
                "failed": stage.counts["failed"],
                "bytes": stage.bytes,
            }
            for stage in stages
            if stage.is_on
        },
        "failures": failures[:_MOST_FAILURES],
    }
