"""Pruning: what a policy does to archives, seen before it happens, and undone while it can be.

Rule: nothing goes that was not shown. A segment gets its tombstone first and is then moved to the
archive's trash; its bytes are freed only by `empty_trash`, after the grace time. What does not
verify, and whatever is in use, stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sessrotate import fs, units
from sessrotate.archive import state
from sessrotate.errors import (
    InputError,
    InUseError,
    RefusedError,
    SessrotateError,
    WrongUsageError,
    printable,
    storage,
)
from sessrotate.model import Pruned
from sessrotate.retention import policy as retention
from sessrotate.retention import transaction
from sessrotate.retention.transaction import Unsettled
from sessrotate.segments import load
from sessrotate.segments.files import check
from sessrotate.segments.manifest import MAX_NOTE
from sessrotate.system import in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sessrotate.archive.place import Place
    from sessrotate.model import SealedSegment
    from sessrotate.retention.policy import Candidate, Decision, Policy
    from sessrotate.segments.files import SegmentSet
    from sessrotate.segments.manifest import Manifest


GRACE: Final = 7 * retention.DAY
"""Seconds that what was pruned stays in the trash, unless another time is asked for."""


@dataclass(frozen=True, slots=True)
class Holding:
    """One archive as it was planned on; `held` says why nothing of it may go.

    `is_unsettled` says that an interrupted run left something to be put right.
    """

    where: Place
    listed: Manifest
    segments: SegmentSet
    held: str | None = None
    is_unsettled: bool = False

    @property
    def key(self) -> str:
        """What tells it from all others."""
        return f"{self.where.project}/{self.where.session}"


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """A whole pruning, decided and not yet done; `now` is in seconds since 1970.

    `failures` are the archives that could not be looked at, and why: nothing of them goes.
    """

    policy: Policy
    now: float
    holdings: tuple[Holding, ...]
    decisions: tuple[Decision, ...]
    failures: tuple[tuple[Place, SessrotateError], ...] = ()

    @property
    def count(self) -> int:
        """How many segments go to the trash."""
        return sum(not entry.keep for entry in self.decisions)

    @property
    def bytes_trashed(self) -> int:
        """How many bytes go to the trash."""
        return sum(entry.segment.bytes for entry in self.decisions if not entry.keep)

    def bytes_of(self, holding: Holding) -> int:
        """Return how many bytes of one archive go to the trash."""
        of_it = (entry for entry in self.decisions if entry.segment.session == holding.key)
        return sum(entry.segment.bytes for entry in of_it if not entry.keep)

    def removed(self, holding: Holding) -> dict[int, str]:
        """Return what goes of one archive: number and reason."""
        return {
            entry.segment.index: entry.reasons[0]
            for entry in self.decisions
            if entry.segment.session == holding.key and not entry.keep
        }


def prepare(
    wanted: Iterable[Place], policy: Policy, now: float, progress: Callable[[int], None]
) -> PrunePlan:
    """Return what a policy does to these archives; nothing is changed.

    What is to go is read and verified, and `progress` told how many bytes are done; what does not
    verify is held, and the rest decided anew. An archive that cannot be looked at is no other's
    failure. Raises WrongUsageError for an empty policy.
    """
    if policy.is_empty:
        raise WrongUsageError("No rule says what to keep or remove: give one, --keep-last 5 say.")
    holdings: list[Holding] = []
    failures: list[tuple[Place, SessrotateError]] = []
    for where in dict.fromkeys(wanted):
        try:
            holdings += _look(where)
        except SessrotateError as error:
            failures.append((where, error))
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


def execute(planned: PrunePlan, wait: float) -> Iterator[tuple[Holding, SessrotateError | None]]:
    """Carry out a plan, archive by archive; yield what keeps one from being pruned, or None.

    `wait` is how many seconds to wait for each lock. What was planned is what is done: an archive
    that changed since, or a client that came, is an InUseError and nothing of it goes. Archives
    of which nothing goes are passed over, unless an interrupted run has to be finished there.
    """
    at = datetime.fromtimestamp(planned.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for holding in planned.holdings:
        gone = planned.removed(holding)
        if not gone and not holding.is_unsettled:
            continue
        try:
            _prune(holding, gone, at, wait)
        except SessrotateError as error:
            yield holding, error
        else:
            yield holding, None


def _prune(holding: Holding, gone: dict[int, str], at: str, wait: float) -> None:
    where = holding.where
    with transaction.changing(where, wait) as listed:
        name = printable(where.session)
        if listed != holding.listed:
            raise InUseError(f"The archive of {name} changed since the plan was made: try again.")
        if not gone:
            return
        if any(in_use.clients(where)):
            raise InUseError(f"A client runs {name} by now: end it, then try again.")
        buried = {
            entry.segment.index: replace(
                entry, pruned=Pruned(at, gone[entry.segment.index][:MAX_NOTE])
            )
            for entry in listed.segments
            if entry.segment.index in gone
        }
        fs.create_folder(transaction.trash(where))  # before anything says that it is in use
        transaction.replace_segments(where, listed, buried)
        files = [transaction.file_of(listed, entry) for entry in buried.values()]
        fs.move_files(where.archive, files, transaction.trash(where))


def _look(where: Place) -> Iterator[Holding]:
    """Yield an archive to plan on; nothing if nothing is archived, or nobody can tell."""
    with state.opened(where) as found:
        listed, listing = found.manifest, found.listing
        if listed is None:
            return
        held = None
        try:
            transaction.check_finished(found)
        except InUseError:
            held = "a run on its session is not finished"
        if any(in_use.clients(where)):
            held = "a client runs its session"
    with storage("look into the trash"):
        left = transaction.unsettled(listed, listing, transaction.in_trash(where))
    segments = load.of_manifest(where.archive, listing, listed)
    yield Holding(where, listed, segments, held, bool(left) and held is None)


def _candidates(holding: Holding) -> Iterator[Candidate]:
    for entry in holding.listed.segments:
        if entry.pruned is None:
            pinned = None if entry.pin is None else f"pinned{entry.pin and ': '}{entry.pin}"
            size, missing = _size(holding, entry)
            segment = entry.segment
            yield retention.Candidate(
                session=holding.key,
                index=segment.index,
                bytes=size,
                time=retention.last_written(segment),
                held=pinned or holding.held or missing,
            )


def _size(holding: Holding, entry: SealedSegment) -> tuple[int, str | None]:
    path = holding.where.archive / transaction.file_of(holding.listed, entry)
    try:
        return path.lstat().st_size, None
    except OSError:
        return 0, "its file is missing"


def _problem(segments: SegmentSet, index: int) -> str | None:
    """Return why a segment does not verify, None if it does."""
    try:
        check(segments, index)
    except InputError as error:
        return f"it does not verify: {error}"
    return None


# ── undoing, and emptying the trash ──────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Due:
    """What of an archive's trash may be freed by now.

    `strangers` are the files there that nobody pruned; `left` is what an interrupted run left.
    """

    where: Place
    files: tuple[str, ...]
    bytes: int
    strangers: tuple[str, ...]
    left: Unsettled


def undelete(where: Place, index: int | None, wait: float) -> list[int]:
    """Bring a pruned segment back from the trash, or all of them; return their numbers.

    Raises RefusedError if what is asked for is not in the trash any more.
    """
    with transaction.changing(where, wait) as listed:
        there = transaction.in_trash(where)
        back = [
            entry
            for entry in listed.segments
            if entry.pruned is not None
            and transaction.file_of(listed, entry) in there
            and index in {None, entry.segment.index}
        ]
        if not back:
            what = "No pruned segment" if index is None else f"Segment {index}"
            raise RefusedError(f"{what} of {printable(where.session)} is in the trash.")
        files = [transaction.file_of(listed, entry) for entry in back]
        fs.move_files(transaction.trash(where), files, where.archive)
        risen = {entry.segment.index: replace(entry, pruned=None) for entry in back}
        transaction.replace_segments(where, listed, risen)
        fs.remove_folder(transaction.trash(where))
    return sorted(risen)


def due(where: Place, grace: float, now: float) -> Due:
    """Return what `empty_trash` would free; nothing is changed.

    Raises DamagedError if the manifest or the trash cannot be read.
    """
    with state.opened(where) as found, storage("look into the trash"):
        there = transaction.in_trash(where)
        if found.manifest is None:
            return Due(where, (), 0, tuple(sorted(there)), Unsettled())
        listed = found.manifest
        left = transaction.unsettled(listed, found.listing, there)
    graves = {
        transaction.file_of(listed, entry): entry.pruned.at
        for entry in listed.segments
        if entry.pruned is not None
    }
    files = tuple(
        name for name, at in graves.items() if name in there and _is_over(at, now - grace)
    )
    strangers = tuple(sorted(there.keys() - graves.keys() - set(left.risen)))
    return Due(where, files, sum(there[name] for name in files), strangers, left)


def empty_trash(where: Place, grace: float, now: float, wait: float) -> int:
    """Free what was pruned at least `grace` seconds before `now`; return how many bytes that are.

    What no tombstone lists stays in the trash, and so does what an interrupted run has yet to put
    there. Raises as `shelf.changing` does.
    """
    before = due(where, grace, now)
    if not before.files and not before.left:
        return 0
    with transaction.changing(where, wait) as listed:
        there = transaction.in_trash(where)
        graves = {
            transaction.file_of(listed, entry)
            for entry in listed.segments
            if entry.pruned is not None
        }
        files = [name for name in before.files if name in there and name in graves]
        fs.remove_files(transaction.trash(where), files)
        fs.remove_folder(transaction.trash(where))
    return sum(there[name] for name in files)


def _is_over(at: str, until: float) -> bool:
    time = units.seconds(at)
    return time is not None and time <= until


# ── keeping for ever ─────────────────────────────────────────────────────────────────────────


def pin(where: Place, index: int, note: str | None, wait: float) -> None:
    """Keep a segment whatever a policy says, with a note; or, with None, as the policy says.

    Raises WrongUsageError if there is no such segment, or the note is too long.
    """
    if note is not None and len(note) > MAX_NOTE:
        raise WrongUsageError(f"A note may have {MAX_NOTE} characters.")
    with transaction.changing(where, wait) as listed:
        entry = next((each for each in listed.segments if each.segment.index == index), None)
        if entry is None or entry.pruned is not None:
            raise WrongUsageError(f"{printable(where.session)} has no sealed segment {index}.")
        transaction.replace_segments(where, listed, {index: replace(entry, pin=note)})
