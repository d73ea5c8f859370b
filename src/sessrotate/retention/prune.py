"""Pruning: what a policy removes from archives, shown before it happens; and pins against it.

Rule: only what the plan showed is removed. A segment gets a tombstone in the manifest first, then
moves to the archive's trash; `trash` frees it later. A segment that does not verify, whatever is
in use, and all of a restored session that is whole nowhere else, stays. A pin is an entry in the
manifest; it moves and changes no segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import fs, units
from sessrotate.archive import clock, restored, state
from sessrotate.archive.place import Place
from sessrotate.errors import (
    InputError,
    InUseError,
    SessrotateError,
    WrongUsageError,
    printable,
    storage,
)
from sessrotate.in_place import gain, obstacles, outcome
from sessrotate.in_place.obstacles import Need
from sessrotate.in_place.outcome import Outcome, Result, failure
from sessrotate.model import Pruned, SealedSegment
from sessrotate.retention import policy as retention
from sessrotate.retention import trash
from sessrotate.retention.policy import Candidate, Decision, Policy
from sessrotate.retention.trash import Due
from sessrotate.segments import SegmentSet, check, load
from sessrotate.segments.manifest import MAX_NOTE, Manifest
from sessrotate.system import disk_use, in_use

# ── pins ─────────────────────────────────────────────────────────────────────────────────────


def pin(where: Place, index: int | None, note: str | None, wait: float) -> None:
    """Pin a segment with a note, which may be empty; with None, unpin it.

    Without an `index`, that is done to all segments. `wait` is how many seconds to wait for the
    session's lock. Raises WrongUsageError if there is no such segment, or the note is too long.
    """
    if note is not None and len(note) > MAX_NOTE:
        raise WrongUsageError(f"The note is too long: it can have {MAX_NOTE} characters.")
    with trash.begin(where, wait) as listed:
        changed = {
            entry.segment.index: replace(entry, pin=note)
            for entry in listed.segments
            if entry.pruned is None and index in {None, entry.segment.index}
        }
        if index is not None and not changed:
            raise WrongUsageError(f"{printable(where.session)} has no sealed segment {index}.")
        trash.replace_segments(where, listed, changed)


# ── pruning ──────────────────────────────────────────────────────────────────────────────────


class Holding(Struct, frozen=True):
    """One archive as the plan saw it; `held` is why none of its segments may be removed.

    `is_unsettled`: an interrupted run left something to be settled.
    """

    where: Place
    listed: Manifest
    segments: SegmentSet
    held: str | None = None
    is_unsettled: bool = False

    @property
    def key(self) -> str:
        """The archive's name, unique on this machine."""
        return f"{self.where.project}/{self.where.session}"


class PrunePlan(Struct, frozen=True):
    """What a policy removes, decided and not yet done; `now` is in seconds since 1970.

    `failures` are the archives that could not be read: nothing of them is removed.
    """

    policy: Policy
    now: float
    holdings: tuple[Holding, ...]
    decisions: tuple[Decision, ...]
    failures: tuple[Outcome, ...] = ()

    @property
    def count(self) -> int:
        """How many segments move to the trash."""
        return sum(not entry.keep for entry in self.decisions)

    @property
    def bytes_trashed(self) -> int:
        """How long the files are that move to the trash, in bytes."""
        return sum(entry.segment.bytes for entry in self.decisions if not entry.keep)

    def of(self, wanted: Iterable[Place]) -> PrunePlan:
        """Return what is removed of these sessions alone, without what failed."""
        places = {*wanted}
        holdings = tuple(each for each in self.holdings if each.where in places)
        keys = {each.key for each in holdings}
        decisions = tuple(each for each in self.decisions if each.segment.session in keys)
        return replace(self, holdings=holdings, decisions=decisions, failures=())

    def removed(self) -> dict[Place, dict[int, Decision]]:
        """Return the decisions that remove a segment, by session and the segment's number."""
        found: dict[str, dict[int, Decision]] = {each.key: {} for each in self.holdings}
        for entry in self.decisions:
            if not entry.keep:
                found[entry.segment.session][entry.segment.index] = entry
        return {each.where: found[each.key] for each in self.holdings}

    def trashed(self) -> dict[Place, Due]:
        """Return what moves to the trash of each session, as what goes from there."""
        removed = self.removed()
        return {
            each.where: Due(
                each.where,
                tuple(
                    each.listed.file_of(entry)
                    for entry in each.listed.segments
                    if entry.segment.index in gone
                ),
                sum(entry.segment.bytes for entry in gone.values()),
                (),
                trash.Unsettled(),
                disk=sum(entry.segment.disk for entry in gone.values()),
            )
            for each in self.holdings
            if (gone := removed[each.where])
        }

    def expected(self) -> list[Outcome]:
        """Return what `execute` would yield if nothing changed in the meantime."""
        removed = {where: gone for where, gone in self.removed().items() if gone}

        def look(where: Place) -> Outcome:
            obstacles.check_room(where.config, Need(2 * gain.BLOCK, "the list of segments"))
            return _outcome(where, removed[where], is_done=False)

        return [*outcome.each(removed, look, "prune the archive")]


NOTHING: Final = PrunePlan(Policy(), 0.0, (), ())
"""A plan that removes nothing."""


def _outcome(where: Place, gone: dict[int, Decision], *, is_done: bool) -> Outcome:
    trashed = sum(entry.segment.bytes for entry in gone.values())
    detail = f"{len(gone):,} segment{'s' if len(gone) > 1 else ''} to the trash"
    result: Result = "done" if is_done else "planned"
    return Outcome(where, result, trashed, detail=detail, segments=tuple(sorted(gone)))


def prepare(
    wanted: Iterable[Place], policy: Policy, now: float, progress: Callable[[int], None]
) -> PrunePlan:
    """Return what a policy removes from these archives; change nothing.

    Segments that would be removed are verified first, and `progress` is given how many bytes were
    read so far. A segment that does not verify is kept, and the others are decided again. Raises
    WrongUsageError for an empty policy.
    """
    if policy.is_empty:
        raise WrongUsageError(
            "No rule says what to keep or remove: pass at least one, e.g. --keep-last 5."
        )
    holdings: list[Holding] = []
    failures: list[Outcome] = []
    for where in dict.fromkeys(wanted):
        try:
            holdings += _look(where)
        except SessrotateError as error:
            failures.append(failure(where, error))
    candidates = {entry.key: entry for holding in holdings for entry in _candidates(holding)}
    by_key = {holding.key: holding for holding in holdings}
    whole: set[tuple[str, int]] = set()
    done = 0
    while True:
        decisions = retention.plan(candidates.values(), policy, now)
        damaged = False
        for entry in decisions:
            key = entry.segment.key
            if not entry.keep and key not in whole:
                problem = _problem(by_key[entry.segment.session].segments, entry.segment.index)
                whole.add(key)
                if problem is not None:
                    candidates[key] = replace(candidates[key], held=problem)
                    damaged = True
                done += entry.segment.bytes
                progress(done)
        if not damaged:
            return PrunePlan(policy, now, tuple(holdings), decisions, tuple(failures))


def execute(planned: PrunePlan, wait: float) -> Iterator[Outcome]:
    """Carry out a plan, archive by archive; yield what became of each.

    `wait` is how many seconds to wait for each lock. An archive that changed since it was planned,
    or whose session a client runs by now, is in use, and nothing of it is removed.
    """
    at, removed = units.written(clock.stamp(planned.now)), planned.removed()
    for holding in planned.holdings:
        gone = removed[holding.where]
        if not gone and not holding.is_unsettled:
            continue
        try:
            _prune(holding, gone, at, wait)
        except SessrotateError as error:
            yield failure(holding.where, error)
        else:
            if gone:
                yield _outcome(holding.where, gone, is_done=True)


def _prune(holding: Holding, gone: dict[int, Decision], at: str, wait: float) -> None:
    where = holding.where
    with trash.begin(where, wait) as listed:
        name = printable(where.session)
        if listed != holding.listed:
            raise InUseError(f"The archive of {name} changed after the plan was shown: try again.")
        if not gone:
            return
        if any(in_use.clients(where)):
            raise InUseError(f"A client has started {name}: close it, then try again.")
        buried = {
            entry.segment.index: replace(entry, pruned=Pruned(at, reason[:MAX_NOTE]))
            for entry in listed.segments
            if entry.segment.index in gone
            for reason in gone[entry.segment.index].reasons[:1]
        }
        files = [listed.file_of(entry) for entry in buried.values()]
        twice = trash.there_twice(where, listed, files)
        fs.create_folder(trash.folder(where))  # before any tombstone: a full disk fails here
        trash.replace_segments(where, listed, buried)
        trash.bury(where, files, twice)


def _look(where: Place) -> Iterator[Holding]:
    """Yield an archive as it is now; nothing if it has no sealed segments."""
    with state.opened(where) as found:
        listed, listing = found.manifest, found.listing
        trash.check_listed(found)
        if listed is None:
            return
        held = None
        try:
            trash.check_finished(found)
        except InUseError:
            held = "a rotation of its session is unfinished"
        if any(in_use.clients(where)):
            held = "a client is running its session"
        if restored.is_owed(found):
            held = "it was restored, and is not whole any more (`sessrotate restore` mends that)"
        if found.problem is not None:  # what helps may need every segment
            held = "its session needs a repair first (`sessrotate doctor` says which)"
    with storage("look into the trash"):
        left = trash.unsettled(where, listed, listing, trash.in_trash(where))
    segments = load.of_manifest(where.archive, listing, listed)
    yield Holding(where, listed, segments, held, bool(left) and held is None)


def _candidates(holding: Holding) -> Iterator[Candidate]:
    for entry in holding.listed.segments:
        if entry.pruned is None:
            pinned = None if entry.pin is None else f"pinned{entry.pin and ': '}{entry.pin}"
            size, disk, missing = _size(holding, entry)
            segment = entry.segment
            yield retention.Candidate(
                session=holding.key,
                index=segment.index,
                bytes=size,
                time=retention.last_written(segment),
                held=pinned or holding.held or missing,
                disk=disk,
            )


def _size(holding: Holding, entry: SealedSegment) -> tuple[int, int, str | None]:
    path = holding.where.archive / holding.listed.file_of(entry)
    try:
        status = path.lstat()
    except OSError:
        return 0, 0, "its file is missing"
    return status.st_size, disk_use.allocated(status), None


def _problem(segments: SegmentSet, index: int) -> str | None:
    """Return why a segment does not verify; None if it does."""
    try:
        check(segments, index)
    except InputError as error:
        return f"it does not verify: {error}"
    return None
