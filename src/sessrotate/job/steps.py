"""What `sessrotate run` does, as a table: one row a step, in the order in which they are done.

Rule: the failure of one session stops neither the other sessions nor the other steps. A session
that could not be recovered is left alone by all later steps. A dry run goes through the same rows
and changes nothing.

To add a step, write one row: its names, which settings turn it on, and a deed. Where a step works
session by session, `_each` makes the deed from three functions: one lists the sessions, one returns
what would be done (nothing moved is nothing to do) with what the disk gains and needs, and one does
it and returns its bytes; that gain is measured.

Sessions of Codex that nobody uses are compressed, but nothing by itself as long as a client that
may not find it then was used within 90 days; what somebody names is, and the plan says why that may
be wrong. What a resume made plain again, or its owner, stays so for 30 days.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients, names, units
from sessrotate.archive import away_file, state
from sessrotate.archive.place import Place
from sessrotate.archive.state import State
from sessrotate.errors import InUseError, SessrotateError, storage
from sessrotate.in_place import fleet, gain, obstacles, operations, recover, waiting
from sessrotate.in_place.gain import Forecast
from sessrotate.in_place.obstacles import Need, NoRoomError
from sessrotate.in_place.outcome import Outcome, Result, each, failure
from sessrotate.job import run_log
from sessrotate.retention import bring_back, prune, put_away, rollouts, sizes, trash
from sessrotate.system import disk_use, in_use
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from sessrotate.job.config import Settings
    from sessrotate.job.job import Act, Job, Sized

    Deed = Callable[[Job], Iterator[Outcome]]


# ── compressing rollouts ──────────────────────────────────────────────────────────────────────────

_OPEN: Final = "A process has it open for writing: end that, then try again."

_COMPRESSED: Final = "its client reads it as before"


def _compress(job: Job) -> Iterator[Outcome]:
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

    def planned(asked: Sized) -> Iterator[Outcome]:
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
        outcomes = _as_its_client_lets(found, act)
    yield from (each for each in outcomes if each.result != "nothing to do")


def _as_its_client_lets(found: list[Place], act: Callable[[Place], Outcome]) -> Iterator[Outcome]:
    """Compress rollouts; if their client works on them meanwhile, that is waited for once."""
    try:
        if found:
            rollouts.wait_for_client()
    except SessrotateError as error:
        yield failure(None, error)
    else:
        yield from fleet.as_room_comes(found, act, "compress the session")


def _written(found: Iterable[Place]) -> list[Place]:
    """Return those that a process is known to have open for writing."""
    files = dict[tuple[int, int], Place]()
    for where in found:
        with suppress(OSError):  # it has gone, and is none to plan for
            status = where.live.stat()
            files[status.st_dev, status.st_ino] = where
    return [files[each] for each in in_use.written({*files})]


def _leftovers(job: Job) -> Iterator[Outcome]:
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
    said = "left by a Codex resume or a run that was killed"
    return Outcome(where, result, freed, gained=gained, detail=said, disk=gained)


# ── the steps ─────────────────────────────────────────────────────────────────────────────────────


class Step(Struct, frozen=True):
    """One row: its name in settings and JSON, its verb before and after, when it is on, its deed.

    A number of sessions follows `would` and `done`.
    """

    name: str
    would: str
    done: str
    is_on: Callable[[Settings], bool]
    deed: Deed


def _each(
    which: Callable[[Job], list[Place]],
    would: Callable[[Job, Place], Forecast],
    does: Callable[[Job, Place], int],
    detail: str,
    measured: Callable[[Job, Place], int],
) -> Deed:
    """Return the deed that does something to one session after the other.

    `measured` returns how many bytes of the disk what it changes takes.
    """

    def act(job: Job, where: Place) -> Outcome:
        disk = measured(job, where)
        if job.dry_run:
            expected = would(job, where)
            if not expected.moved:
                return Outcome(where, "nothing to do")
            return job.would(where, expected, disk)
        try:
            freed = does(job, where)
        except put_away.NotCompressedError as error:
            return replace(failure(where, error), freed=error.moved)
        gained = disk - measured(job, where)
        if not freed:
            return Outcome(where, "nothing to do")
        return Outcome(where, "done", freed, gained=gained, detail=detail, disk=disk)

    def deed(job: Job) -> Iterator[Outcome]:
        found = each(which(job), partial(act, job))
        return (outcome for outcome in found if outcome.result != "nothing to do")

    return deed


def _recover(job: Job) -> Iterator[Outcome]:
    """Finish or undo what interrupted runs left, and yield what became of it.

    Later steps leave those archives alone for which that failed.
    """

    def act(wanted: Sized) -> Iterator[Outcome]:
        return each((where for where, _ in wanted), partial(_recovered, job), "look at the archive")

    for outcome in job.recall("recover", [(where, 0) for where in job.archives()], act):
        if outcome.where is not None and outcome.error is not None:
            job.left.add(outcome.where)
        if outcome.result != "nothing to do":
            yield outcome
    yield from _leftovers(job)


_WAITS: Final = (
    "Replaced live files wait: the next run moves their late lines to the live files, and removes "
    "each replaced file that no program writes to any more."
)
_SETTLED: Final = (
    "Moved late lines of replaced live files to the live files, and removed each replaced file "
    "that no program writes to any more."
)


def _recovered(job: Job, where: Place) -> Outcome:
    """Finish or undo what an interrupted run left in one archive."""
    away_file.check_single(where)
    note = away_file.note(where)
    if note is not None and note.standing != "archived":
        job.left.add(where)
        return _moved_away(job, where) if note.standing == "archiving" else _moved_back(job, where)
    plain = sizes.left_plain(where)
    if plain.gained:
        return _compressed_away(job, where, plain)
    with state.opened(where) as found:
        todo, listed = recover.plan(found), found.manifest
        there = trash.in_trash(where)
        left = listed and trash.unsettled(where, listed, found.listing, there)
        if job.dry_run:
            return _would_recover(job, found, todo.sentence or str(left or ""))
    was = waiting.packs(where)
    held, disk = sum(each.size for each in was), gain.measured(where)
    if todo.sentence or was:
        todo = operations.recover_session(where, job.wait)
    waits = waiting.packs(where)
    freed = max(0, held - sum(each.size for each in waits))
    if left:
        with trash.begin(where, job.wait):
            pass  # beginning settles what is left
    past = todo.past or ("Finished an interrupted change of the trash." if left else _SETTLED)
    if not left and not todo.past and waits == was:
        return Outcome(where, "nothing to do")
    gained = disk - gain.measured(where)
    return Outcome(where, "done", freed, gained=gained, detail=past, disk=disk)


def _would_recover(job: Job, found: State, said: str) -> Outcome:
    """Return what would be done with an archive; `said` is what an interrupted run left of it."""
    where, expected = found.place, Forecast()
    if said:
        expected = gain.of_finishing(found)
    elif names.WAITING in found.listing:
        expected = Forecast(gained=disk_use.of(*waiting.free(found)))
        late = () if found.is_away else found.late
        ends = (source.read_at(span.end - 1, 1) for source, span in late if span.size)
        said = _WAITS if expected.gained or b"\n" in ends else ""
    if not said:
        return Outcome(where, "nothing to do")
    return job.would(where, expected, gain.measured(where), said)


def _moved_away(job: Job, where: Place) -> Outcome:
    """Finish putting a session away that was interrupted."""
    if job.dry_run:
        said = "putting it away was interrupted"
        return job.would(where, put_away.expected(where), put_away.measured(where), said)
    before = put_away.measured(where)
    freed = _archive(job, where)
    gained = before - put_away.measured(where)
    said = "Finished putting it away, which was interrupted."
    return Outcome(where, "done", freed, gained=gained, detail=said, disk=before)


def _moved_back(job: Job, where: Place) -> Outcome:
    """Finish bringing a session back that was interrupted."""
    if job.dry_run:
        said = "bringing it back was interrupted"
        return job.would(where, Forecast(), put_away.measured(where), said)
    with job.progress("Unpacking", 0) as unpacking:
        bring_back.bring_back(where, job.wait, unpacking)
    return Outcome(where, "done", detail="Finished bringing it back, which was interrupted.")


def _compressed_away(job: Job, where: Place, expected: Forecast) -> Outcome:
    """Compress a session that was put away when the disk had no room for that."""
    if job.dry_run:
        expected = replace(expected, moved=expected.gained)
        detail = "put away, and not compressed yet"
        return job.would(where, expected, put_away.measured(where), detail)
    before = put_away.measured(where)
    with job.progress("Compressing", 0) as compressing:
        put_away.put_away(where, job.wait, compressing)
    gained = before - put_away.measured(where)
    freed = max(0, gained)
    return Outcome(where, "done", freed, gained=gained, detail="Compressed what was put away.")


def _heal(job: Job) -> Iterator[Outcome]:
    def healing(wanted: Sized) -> Iterator[Outcome]:
        due = fleet.to_heal(wanted)
        sound = [(where, size) for where, size in wanted if (where, size) not in due]
        yield from (Outcome(where, "nothing to do", size=size) for where, size in sound)
        yield from _rotating(job, fleet.owned(due))

    for outcome in _recalled(job, "heal", fleet.not_plain(job.known), healing):
        if outcome.result != "nothing to do" or outcome.detail:
            yield replace(outcome, freed=abs(outcome.freed))  # how much came back


def _rotate(job: Job) -> Iterator[Outcome]:
    least = job.settings.rotate.min_gain or 0
    found = fleet.sessions(least, job.known)  # no session gains more than it has
    return _recalled(job, f"rotate for {least}", found, partial(_rotating, job, least=least))


def _recalled(job: Job, asked: str, found: Sized, act: Act) -> Iterator[Outcome]:
    # What a plan heals is rotated by that.
    wanted = [each for each in found if job.wants(each[0]) and each[0] not in job.rotating]
    for outcome in job.recall(asked, wanted, act, live=job.settings.rotate.live):
        if outcome.result == "planned" and outcome.where is not None:
            job.rotating[outcome.where] = outcome
        yield outcome


def _rotating(job: Job, wanted: Sized, least: int = 0) -> Iterator[Outcome]:
    live = job.settings.rotate.live
    leads = fleet.leads(wanted)

    def action(where: Place) -> operations.Rotated:
        def shown(what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
            return job.progress(f"{leads[where]} · {what}", total)

        if job.dry_run:
            return operations.plan_session(where, shown, live=live, by_itself=True, least=least)
        return operations.rotate_session(
            where, job.wait, shown, live=live, by_itself=True, least=least
        )

    return fleet.rotate(wanted, action, live=live, to_come=job.gained)


def _due_for_archive(job: Job) -> list[Place]:
    rule = job.settings.archive
    # Whoever used a session within a day would look for it.
    older_than = None if rule.older_than is None else max(rule.older_than, units.DAY)
    found = put_away.wanted(older_than, rule.before_cleanup, job.now, job.swept_at)
    return [where for where in found if job.may("archive", where)]


def _archivable(job: Job, where: Place) -> Forecast:
    """Return what putting away would move, gain and need, behind a rotation."""
    expected, rotated = put_away.expected(where, job.near), job.rotating.get(where)
    if obstacles.lacking(where.config, expected.need, job.gained) and _is_saved(job, where):
        return Forecast(expected.moved)  # it stays plain until there is room
    if rotated is None:
        return expected
    return Forecast(
        max(expected.moved - rotated.freed, 1),
        max(expected.gained - rotated.gained, 0),
        replace(expected.need, size=min(expected.need.size, rotated.size)),
    )


def _is_saved(job: Job, where: Place) -> bool:
    return put_away.is_saved(where, job.settings.archive.before_cleanup, job.swept_at)


def _archive(job: Job, where: Place) -> int:
    size = put_away.plan(where)
    try:
        put_away.check_room(where, size)
    except NoRoomError:
        if not _is_saved(job, where):
            raise
    with job.progress("Archiving", size) as moving:
        return put_away.put_away(where, job.wait, moving)


def _prune(job: Job) -> Iterator[Outcome]:
    if job.doubt:
        return
    if job.scope.agreed is not None:
        planned = job.scope.agreed.pruning.of(job.archives())
    else:
        wanted = [each for each in job.archives() if not (job.scope.asks and each in job.moved)]
        with storage("look at the archives"), job.progress("Verifying", 0) as verifying:
            planned = prune.prepare(wanted, job.settings.prune, job.now, verifying)
    job.planned = planned
    yield from planned.failures
    if not job.dry_run:
        yield from prune.execute(planned, job.wait)
        return
    trashed = planned.trashed()
    for outcome in planned.expected():
        if outcome.where is not None and outcome.result == "planned":
            job.pruned[outcome.where] = trashed[outcome.where]
        yield outcome


def _trashes(job: Job) -> list[Place]:
    return [each for each in job.archives() if job.may("trash", each)]


def _due(job: Job, where: Place) -> Forecast:
    grace = job.settings.trash.grace or 0.0
    due = trash.due(where, grace, job.now, job.copied)
    # Without a grace period, what is pruned in this run is deleted in it.
    due = trash.together(due, None if grace else job.pruned.get(where))
    job.dues[where] = due
    return Forecast(due.bytes, due.disk)


def _empty(job: Job, where: Place) -> int:
    shown = None if job.scope.agreed is None else job.scope.agreed.dues[where]
    grace = job.settings.trash.grace or 0.0
    return trash.empty(where, grace, job.now, job.wait, job.copied, shown=shown)


STEPS: Final = (
    Step("recover", "recover", "recovered", lambda _: True, _recover),
    Step("heal", "heal", "healed", lambda _: True, _heal),
    Step("rotate", "rotate", "rotated", lambda given: given.rotate.min_gain is not None, _rotate),
    Step(
        "archive",
        "archive",
        "archived",
        lambda given: (given.archive.older_than, given.archive.before_cleanup) != (None, None),
        _each(
            _due_for_archive,
            _archivable,
            _archive,
            "out of the client's folder",
            lambda job, where: put_away.measured(where, job.near),
        ),
    ),
    Step(
        "compress",
        "compress",
        "compressed",
        lambda given: given.codex.compress_after is not None,
        _compress,
    ),
    Step("prune", "prune", "pruned", lambda given: not given.prune.is_empty, _prune),
    Step(
        "trash",
        "empty the trash of",
        "emptied the trash of",
        lambda given: given.trash.grace is not None,
        _each(
            _trashes,
            _due,
            _empty,
            "freed from the trash",
            lambda _, where: trash.measured([where]),
        ),
    ),
)
"""In this order: unfinished work first, and what deletes for good last."""
