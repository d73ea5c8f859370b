"""What `sessrotate run` does, as a table: a row for each step, in the order in which they are done.

Rule: one session's failure is no other's, and no other step's: what became of each is yielded and
the next one comes. A session that could not be recovered is left alone by the steps after that. A
dry run goes through the same rows and changes nothing.

To add a step, write one row: its names, which settings turn it on, and a deed. For what is done
session by session, `_each` makes the deed of a function that lists them and two that return bytes,
0 for nothing to do: what it would be, and doing it. `compress` belongs before `prune`, with
`compress.compress(where, wait, progress, level=…, chosen=…)`, and `archive` behind that, with
`cold.wanted(older_than, before_cleanup, now)`, `cold.plan(where)` and `cold.archive(where, wait,
progress)`; ages are in seconds, and None where a rule is off. Import them inside the deeds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from sessrotate import fleet, in_place, place, prune, recover, retention, shelf, state
from sessrotate.errors import InUseError, SessrotateError, storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.config import Settings
    from sessrotate.place import Place
    from sessrotate.prune import PrunePlan
    from sessrotate.state import State

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
    progress: in_place.Progress
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
        strays = _strays(found)
    if not todo.sentence and not strays:
        return ""
    if job.dry_run:
        return todo.sentence or "A pruning was interrupted: the next run finishes it."
    if todo.sentence:
        todo = in_place.recover_session(where, job.wait, job.progress)
    if strays:
        with shelf.changing(where, job.wait):
            pass  # nothing but what is done first: moving them to the trash
    return todo.past or "Finished a pruning that was interrupted."


def _strays(found: State) -> bool:
    """Tell whether a segment with a tombstone is still where it was."""
    return found.manifest is not None and any(
        entry.pruned is not None and shelf.file_of(found.manifest, entry) in found.listing
        for entry in found.manifest.segments
    )


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

    def action(where: Place) -> in_place.Rotated:
        if job.dry_run:
            return in_place.plan_session(where, job.progress, live=rule.live)
        return in_place.rotate_session(where, job.wait, job.progress, live=rule.live)

    for outcome in fleet.rotate(wanted, action, live=rule.live):
        said = outcome.result if outcome.error is None else str(outcome.error)
        became = _BECAME[outcome.result]
        yield Item(outcome.where.session, became, outcome.freed, said, outcome.error)


# ── prune ────────────────────────────────────────────────────────────────────────────────────


def _prune(job: Job) -> Iterator[Item]:
    with storage("look at the archives"), job.progress("Verifying", 0) as verifying:
        planned = prune.prepare(job.archives(), job.settings.prune, job.now, verifying)
    job.planned = planned
    goes = {
        holding.key: (len(gone), sum(_bytes(planned, holding.key)))
        for holding in planned.holdings
        if (gone := planned.removed(holding))
    }
    outcomes = (
        ((holding, None) for holding in planned.holdings if holding.key in goes)
        if job.dry_run
        else prune.execute(planned, job.wait)
    )
    for holding, error in outcomes:
        many, size = goes[holding.key]
        if error is not None:
            yield failure(holding.where.session, error)
        else:
            said = f"{many} segment{'s' if many > 1 else ''} to the trash"
            yield Item(holding.where.session, "done", size, said)


def _bytes(planned: PrunePlan, key: str) -> Iterator[int]:
    for entry in planned.decisions:
        if entry.segment.session == key and not entry.keep:
            yield entry.segment.bytes


# ── the trash ────────────────────────────────────────────────────────────────────────────────


def _overdue(job: Job, where: Place) -> int:
    """Return how many bytes `_empty` would free."""
    until = job.now - _grace(job)
    with state.opened(where) as found:
        if found.manifest is None:
            return 0
        files = [
            shelf.trash(where) / shelf.file_of(found.manifest, entry)
            for entry in found.manifest.segments
            if entry.pruned is not None
            and (at := retention.seconds(entry.pruned.at)) is not None
            and at <= until
        ]
    return sum(file.lstat().st_size for file in files if file.is_file())


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
    Step("prune", "prune", "pruned", lambda settings: not settings.prune.is_empty, _prune),
    Step(
        "trash",
        "empty the trash of",
        "emptied the trash of",
        lambda settings: settings.trash.grace is not None,
        _each(Job.archives, _overdue, _empty, "from the trash"),
    ),
)
"""In this order: what is unfinished first, and what frees bytes for good last."""
