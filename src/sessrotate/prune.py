"""Pruning: what a policy does to archives, seen before it happens, and undone while it can be.

Rule: nothing goes that was not shown. A segment gets its tombstone first and is then moved to the
archive's trash; its bytes are freed only by `empty_trash`, after the grace time. What does not
verify, and whatever is in use, stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sessrotate import archive, fs, inuse, retention, shelf, state
from sessrotate.errors import (
    DamagedError,
    InUseError,
    RefusedError,
    SessrotateError,
    WrongUsageError,
    printable,
)
from sessrotate.manifest import MAX_NOTE
from sessrotate.model import Pruned
from sessrotate.segments import body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sessrotate.manifest import Manifest
    from sessrotate.model import SealedSegment
    from sessrotate.place import Place
    from sessrotate.retention import Candidate, Decision, Policy


@dataclass(frozen=True, slots=True)
class Holding:
    """One archive as it was planned on; `held` says why nothing of it may go."""

    where: Place
    listed: Manifest
    held: str | None = None

    @property
    def key(self) -> str:
        """What tells it from all others."""
        return f"{self.where.project}/{self.where.session}"


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """A whole pruning, decided and not yet done; `now` is in seconds since 1970."""

    policy: Policy
    now: float
    holdings: tuple[Holding, ...]
    decisions: tuple[Decision, ...]

    @property
    def bytes_trashed(self) -> int:
        """How many bytes go to the trash."""
        return sum(entry.segment.bytes for entry in self.decisions if not entry.keep)

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
    verify is held, and the rest decided anew. Raises WrongUsageError for an empty policy.
    """
    if policy.is_empty:
        raise WrongUsageError("No rule says what to keep or remove: give one, --keep-last 5 say.")
    holdings = tuple(holding for where in wanted if (holding := _look(where)) is not None)
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
                problem = _problem(by_key[entry.segment.session], entry.segment.index)
                whole.add(key)
                if problem is not None:
                    candidates[key] = replace(candidates[key], held=problem)
                    damaged = True
                done += entry.segment.bytes
                progress(done)
        if not damaged:
            return PrunePlan(policy, now, holdings, decisions)


def execute(planned: PrunePlan, wait: float) -> Iterator[tuple[Holding, SessrotateError | None]]:
    """Carry out a plan, archive by archive; yield what keeps one from being pruned, or None.

    `wait` is how many seconds to wait for each lock. What was planned is what is done: an archive
    that changed since, or a client that came, is an InUseError and nothing of it goes.
    """
    at = datetime.fromtimestamp(planned.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for holding in planned.holdings:
        gone = planned.removed(holding)
        if not gone:
            continue
        try:
            _prune(holding, gone, at, wait)
        except SessrotateError as error:
            yield holding, error
        else:
            yield holding, None


def _prune(holding: Holding, gone: dict[int, str], at: str, wait: float) -> None:
    where = holding.where
    with shelf.changing(where, wait) as listed:
        if listed != holding.listed or any(inuse.clients(where)):
            name = printable(where.session)
            raise InUseError(f"The archive of {name} changed since the plan was made: try again.")
        buried = {
            entry.segment.index: replace(
                entry, pruned=Pruned(at, gone[entry.segment.index][:MAX_NOTE])
            )
            for entry in listed.segments
            if entry.segment.index in gone
        }
        shelf.replace_segments(where, listed, buried)
        files = [shelf.file_of(listed, entry) for entry in buried.values()]
        fs.move_files(where.archive, files, shelf.trash(where))


def _look(where: Place) -> Holding | None:
    """Return an archive to plan on; None if nothing is archived, or nobody can tell."""
    with state.opened(where) as found:
        if found.manifest is None:
            return None
        held = None
        try:
            shelf.check_finished(found)
        except InUseError:
            held = "a run on its session is not finished"
        if any(inuse.clients(where)):
            held = "a client runs its session"
        return Holding(where, found.manifest, held)


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
                time=retention.seconds(segment.last_timestamp or segment.first_timestamp),
                held=pinned or holding.held or missing,
            )


def _size(holding: Holding, entry: SealedSegment) -> tuple[int, str | None]:
    path = holding.where.archive / shelf.file_of(holding.listed, entry)
    try:
        return path.lstat().st_size, None
    except OSError:
        return 0, "its file is missing"


def _problem(holding: Holding, index: int) -> str | None:
    """Return why a segment does not verify, None if it does."""
    listing = frozenset(entry.name for entry in holding.where.archive.iterdir())
    segments = archive.of_manifest(holding.where.archive, listing, holding.listed)
    try:
        for _ in body(segments, segments.parts[index]):
            pass
    except (DamagedError, OSError) as error:
        return f"it does not verify: {error}"
    return None


# ── undoing, and emptying the trash ──────────────────────────────────────────────────────────


def undelete(where: Place, index: int | None, wait: float) -> list[int]:
    """Bring a pruned segment back from the trash, or all of them; return their numbers.

    Raises RefusedError if what is asked for is not in the trash any more.
    """
    with shelf.changing(where, wait) as listed:
        there = _listing(where)
        graves = [entry for entry in listed.segments if entry.pruned is not None]
        back = [
            entry
            for entry in graves
            if shelf.file_of(listed, entry) in there and index in {None, entry.segment.index}
        ]
        if not back:
            what = "No pruned segment" if index is None else f"Segment {index}"
            raise RefusedError(f"{what} of {printable(where.session)} is in the trash.")
        files = [shelf.file_of(listed, entry) for entry in back]
        fs.move_files(shelf.trash(where), files, where.archive)
        risen = {entry.segment.index: replace(entry, pruned=None) for entry in back}
        shelf.replace_segments(where, listed, risen)
        fs.remove_folder(shelf.trash(where))
    return sorted(risen)


def empty_trash(where: Place, grace: float, now: float, wait: float) -> int:
    """Free what was pruned at least `grace` seconds before `now`; return how many bytes that are.

    What no tombstone lists stays in the trash.
    """
    if not shelf.trash(where).is_dir():
        return 0
    freed = 0
    with shelf.changing(where, wait) as listed:
        there = _listing(where)
        files = []
        for entry in listed.segments:
            name = shelf.file_of(listed, entry)
            if entry.pruned is not None and name in there and _is_over(entry, now - grace):
                files.append(name)
                freed += there[name]
        fs.remove_files(shelf.trash(where), files)
        fs.remove_folder(shelf.trash(where))
    return freed


def _is_over(entry: SealedSegment, until: float) -> bool:
    at = retention.seconds(entry.pruned.at) if entry.pruned is not None else None
    return at is not None and at <= until


def _listing(where: Place) -> dict[str, int]:
    """Return the plain files in an archive's trash and their sizes, in bytes."""
    folder = shelf.trash(where)
    if not folder.is_dir():
        return {}
    return {
        path.name: path.lstat().st_size
        for path in folder.iterdir()
        if path.is_file() and not path.is_symlink()
    }


def pin(where: Place, index: int, note: str | None, wait: float) -> None:
    """Keep a segment whatever a policy says, with a note; or, with None, as the policy says.

    Raises WrongUsageError if there is no such segment, or the note is too long.
    """
    if note is not None and len(note) > MAX_NOTE:
        raise WrongUsageError(f"A note may have {MAX_NOTE} characters.")
    with shelf.changing(where, wait) as listed:
        entry = next((each for each in listed.segments if each.segment.index == index), None)
        if entry is None or entry.pruned is not None:
            raise WrongUsageError(f"{printable(where.session)} has no sealed segment {index}.")
        shelf.replace_segments(where, listed, {index: replace(entry, pin=note)})
