"""What `sessrotate run` does, as a table: a row for each step, in the order in which they are done.

Rule: one session's failure is no other's, and no other step's: what became of each is yielded and
the next one comes. A session that could not be recovered is left alone by the steps after that. A
dry run goes through the same rows and changes nothing.

To add a step, write one row: its names, which settings turn it on, and a deed. For what is done
session by session, `_each` makes the deed of a function that lists them and two that return bytes,
0 for nothing to do: what it would be, and doing it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from sessrotate.archive import place, state
from sessrotate.errors import DamagedError, InUseError, SessrotateError, storage
from sessrotate.in_place import fleet, operations, recover
from sessrotate.retention import archive, policy, prune, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.archive.place import Place
    from sessrotate.job.config.parse import Settings
    from sessrotate.model import SealedSegment
    from sessrotate.retention.prune import PrunePlan

    Deed = Callable[["Job"], Iterator["Item"]]

Became = Literal["done", "nothing", "in use", "failed"]


@dataclass(frozen=True, slots=True)
class Item:
    """What became, or would become, of one session in one step; `said` is for a person.

    `bytes` is what left the client's folder, the archive or the trash; `session` is empty where
    a step failed as a whole.
    """

    session: str
    became: Became
    bytes: int = 0
    said: str = ""
    error: SessrotateError | None = None


@dataclass(slots=True)
class Job:
    """What the steps of one run share; `now` is in seconds since 1970, `wait` in seconds.

    `failed` and `planned` are filled in on the way: sessions to be left alone, and the plan of
    the pruning.
    """

    settings: Settings
    now: float
    wait: float
    progress: operations.Progress
    dry_run: bool
    failed: set[Place] = field(default_factory=set)
    planned: PrunePlan | None = None

    def archives(self) -> list[Place]:
        """Return the archives of sessions that did not fail."""
        return [where for where in place.archives() if where not in self.failed]


@dataclass(frozen=True, slots=True)
class Step:
    """One row: what programs call it, how that is said before and after, when it is on, its deed.

    `would` and `done` are followed by a number of sessions.
    """

    name: str
    would: str
    done: str
    is_on: Callable[[Settings], bool]
    deed: Deed


def failure(session: str, error: SessrotateError) -> Item:
    """Return what became of a session by an error."""
    became: Became = "in use" if isinstance(error, InUseError) else "failed"
    return Item(session, became, said=str(error), error=error)


def _each(
    which: Callable[[Job], list[Place]],
    would: Callable[[Job, Place], int],
    does: Callable[[Job, Place], int],
    said: str,
) -> Deed:
    """Return the deed that does something to one session after the other."""

    def deed(job: Job) -> Iterator[Item]:
        for where in which(job):
            try:
                with storage("change the archive"):
                    size = would(job, where) if job.dry_run else does(job, where)
            except SessrotateError as error:
                yield failure(where.session, error)
            else:
                if size:
                    yield Item(where.session, "done", size, said)

    return deed


# ── recover ──────────────────────────────────────────────────────────────────────────────────


def _recover(job: Job) -> Iterator[Item]:
    for where in place.archives():
        try:
            with storage("look at the archive"):
                said = _recovered(job, where)
        except SessrotateError as error:
            job.failed.add(where)
            yield failure(where.session, error)
        else:
            if said:
                yield Item(where.session, "done", said=said)


def _recovered(job: Job, where: Place) -> str:
    """Have one archive without leftovers; return a sentence about that if it had any."""
    with state.opened(where) as found:
        todo = recover.plan(found)
        listed, listing = found.manifest, found.listing
    left = listed is not None and bool(
        transaction.unsettled(listed, listing, transaction.in_trash(where))
    )
    if not todo.sentence and not left:
        return ""
    if job.dry_run:
        return todo.sentence or "Pruning or compressing was interrupted: the next run finishes it."
    if todo.sentence:
        todo = operations.recover_session(where, job.wait, job.progress)
    if left:
        with transaction.changing(where, job.wait):
            pass  # nothing but what is done first: putting that right
    return todo.past or "Finished a pruning or compression that was interrupted."


# ── rotate ───────────────────────────────────────────────────────────────────────────────────

_BECAME: Final[dict[fleet.Result, Became]] = {
    "rotated": "done",
    "planned": "done",
    "nothing to cut": "nothing",
    "running": "in use",
    "failed": "failed",
}


def _rotate(job: Job) -> Iterator[Item]:
    rule = job.settings.rotate
    wanted = [each for each in fleet.sessions(rule.min_size or 0) if each[0] not in job.failed]

    def action(where: Place) -> operations.Rotated:
        if job.dry_run:
            return operations.plan_session(where, job.progress, live=rule.live)
        return operations.rotate_session(where, job.wait, job.progress, live=rule.live)

    for outcome in fleet.rotate(wanted, action, live=rule.live):
        said = outcome.result if outcome.error is None else str(outcome.error)
        became = _BECAME[outcome.result]
        yield Item(outcome.where.session, became, outcome.freed, said, outcome.error)


# ── compress ─────────────────────────────────────────────────────────────────────────────────


def _is_old(job: Job, entry: SealedSegment) -> bool:
    """Tell whether a segment is to be compressed, as far as its age goes; undated ones are not."""
    at = policy.last_written(entry.segment)
    return at is not None and at < job.now - (job.settings.compress.older_than or 0.0)


def _plain(job: Job, where: Place) -> int:
    with state.opened(where) as found:
        segments = () if found.manifest is None else found.manifest.segments
    return sum(
        entry.segment.span.size
        for entry in segments
        if entry.codec == "plain" and entry.pruned is None and _is_old(job, entry)
    )


def _compress(job: Job, where: Place) -> int:
    from sessrotate.retention import compress  # noqa: PLC0415 - zstd, wanted only where there is anything

    total = _plain(job, where)
    if not total:
        return 0
    with job.progress("Compressing", total) as compressing:
        done = compress.compress(
            where,
            job.wait,
            compressing,
            level=job.settings.compress.level,
            chosen=lambda entry: _is_old(job, entry),
        )
    if done.problems:
        raise DamagedError(" ".join(done.problems))
    return done.before - done.after


# ── archive ──────────────────────────────────────────────────────────────────────────────────


def _cold(job: Job) -> list[Place]:
    rule = job.settings.archive
    found = archive.wanted(rule.older_than, rule.before_cleanup, job.now)
    return [where for where in found if where not in job.failed]


def _would_archive(_job: Job, where: Place) -> int:
    return archive.plan(where)


def _archive(job: Job, where: Place) -> int:
    with job.progress("Putting away", archive.plan(where)) as moving:
        return archive.archive(where, job.wait, moving)


# ── prune ────────────────────────────────────────────────────────────────────────────────────


def _prune(job: Job) -> Iterator[Item]:
    with storage("look at the archives"), job.progress("Verifying", 0) as verifying:
        planned = prune.prepare(job.archives(), job.settings.prune, job.now, verifying)
    job.planned = planned
    for where, error in planned.failures:
        yield failure(where.session, error)
    would = ((holding, None) for holding in planned.holdings)
    for holding, problem in would if job.dry_run else prune.execute(planned, job.wait):
        many = len(planned.removed(holding))
        if problem is not None:
            yield failure(holding.where.session, problem)
        elif many:
            said = f"{many} segment{'s' if many > 1 else ''} to the trash"
            yield Item(holding.where.session, "done", planned.bytes_of(holding), said)


# ── the trash ────────────────────────────────────────────────────────────────────────────────


def _due(job: Job, where: Place) -> int:
    return prune.due(where, _grace(job), job.now).bytes


def _empty(job: Job, where: Place) -> int:
    return prune.empty_trash(where, _grace(job), job.now, job.wait)


def _grace(job: Job) -> float:
    return job.settings.trash.grace or 0.0


STEPS: Final = (
    Step("recover", "recover", "recovered", lambda _: True, _recover),
    Step(
        "rotate",
        "rotate",
        "rotated",
        lambda settings: settings.rotate.min_size is not None,
        _rotate,
    ),
    Step(
        "compress",
        "compress",
        "compressed",
        lambda settings: settings.compress.older_than is not None,
        _each(Job.archives, _plain, _compress, "compressed"),
    ),
    Step(
        "archive",
        "put away",
        "put away",
        lambda settings: (
            (settings.archive.older_than, settings.archive.before_cleanup) != (None, None)
        ),
        _each(_cold, _would_archive, _archive, "put away"),
    ),
    Step("prune", "prune", "pruned", lambda settings: not settings.prune.is_empty, _prune),
    Step(
        "trash",
        "empty the trash of",
        "emptied the trash of",
        lambda settings: settings.trash.grace is not None,
        _each(Job.archives, _due, _empty, "from the trash"),
    ),
)
"""In this order: what is unfinished first, and what frees bytes for good last."""
