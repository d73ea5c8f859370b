"""Bringing a session back, whatever happened to it: pruned, put away, rotated, or all of these.

Promise: a `Place` and what is wanted → `prepare` → a `WayBack` → `execute` → the session as it was.

Rule: each part is a change of its own that loses nothing, in this order: pruned segments, what was
put away, and last the live file, whole. A crash in between leaves
a session of which the next `restore` brings back the rest. What keeps a part from being done is
looked for, and the room for all of them, before the first. What a `WayBack` says of itself is said
of the plan as of what was done by it.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients, fs, units
from sessrotate.archive import away_file, owner, restored, state
from sessrotate.archive.place import Place
from sessrotate.archive.state import State
from sessrotate.clients.preview import EDGE, edges_of
from sessrotate.errors import (
    DamagedError,
    InUseError,
    RefusedError,
    SessrotateError,
    StorageError,
    printable,
    storage,
)
from sessrotate.in_place import obstacles, operations, recover, sealed_segments
from sessrotate.in_place import restore as whole_again
from sessrotate.in_place.obstacles import Need
from sessrotate.in_place.outcome import Outcome, Result
from sessrotate.in_place.recover import Recovery
from sessrotate.in_place.restore import RestorePlan
from sessrotate.retention import away_files, bring_back, rollouts, trash
from sessrotate.retention.bring_back import Away
from sessrotate.segments import body, load
from sessrotate.segments.manifest import Manifest
from sessrotate.system import in_use, locks

if TYPE_CHECKING:
    from sessrotate.in_place.operations import Progress


class WantedBack(Struct, frozen=True):
    """What is to be brought back: what was put away, these pruned segments (None: all), the whole.

    Where the session is to be whole, all pruned segments come back. `is_placed`: its owner said in
    which project it is to be. `touch` is what the files are dated that were put away, and a live
    file that its client would delete, in seconds since 1970; None leaves their dates.
    """

    away: bool = True
    pruned: frozenset[int] | None = None
    whole: bool = True
    is_placed: bool = False
    touch: float | None = None

    def of(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return which of these pruned segments are wanted."""
        is_every = self.whole or self.pruned is None
        return tuple(number for number in numbers if is_every or number in (self.pruned or ()))


_SOON: Final = units.DAY
"""Seconds before the client deletes a session: what it would delete by then counts as used now."""

ALL: Final = WantedBack()
"""Whatever happened."""


_PLAIN: Final = "plain again; nothing compresses it automatically for 30 days"


class WayBack(Struct, frozen=True):
    """What brings a session back, decided and not yet done.

    * `pruned`: the numbers of the segments that come back from the archive's trash; `lost` are
      those that were freed for good, because of which the session stays rotated; as it does where
      its client cut a part of the history out (`is_cut`).
    * `away`: what comes back from having been put away, None if nothing was.
    * `whole`: the plan for the live file, None if it stays as it is.
    * `touch`: what files are dated, in seconds since 1970, None if they keep their dates.
    * `unused`: for how many seconds the live file has not been used, if the client's clean-up
      deletes such a file, and it is dated; None otherwise.
    * `before`, `after`: bytes of the live file.
    * `finished`: what an interrupted run had begun, and is, or was, finished first.
    """

    where: Place
    pruned: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    is_cut: bool = False
    away: Away | None = None
    whole: RestorePlan | None = None
    touch: float | None = None
    unused: float | None = None
    before: int = 0
    after: int = 0
    finished: str = ""

    @property
    def is_anything(self) -> bool:
        """Whether anything is to be done."""
        return self.away is not None or any((self.pruned, self.whole))

    @property
    def is_rollout(self) -> bool:
        """Whether it is a session of Codex, which was only compressed."""
        return rollouts.is_one(self.where)

    @property
    def is_back(self) -> bool:
        """Whether the session is one again that its client deletes, and rules apply to."""
        return not self.is_rollout and (self.away is not None or self.whole is not None)

    @property
    def need(self) -> Need:
        """What has to be free."""
        unpacked = 0 if self.away is None else self.away.unpacked
        if self.whole is None:
            return Need(unpacked, away_files.UNPACKED)
        if not unpacked:
            return self.whole.need
        what = f"{away_files.UNPACKED}, and the whole history (less with --keep-rotated)"
        return Need(self.whole.need.size + unpacked, what)

    @property
    def takes(self) -> int:
        """How many bytes the disk has less afterwards."""
        return self.need.size - (0 if self.away is None else self.away.packed)

    @property
    def parts(self) -> tuple[object, ...]:
        """What must be the same when it is done as when it was shown."""
        digests = self.whole and tuple(entry.digest for entry in self.whole.manifest.segments)
        return self.pruned, self.lost, self.away is not None, digests

    def words(self) -> str:
        """Return what that is in a few words, as the detail of an outcome."""
        parts = []
        if self.pruned:
            parts.append(f"{_segments(len(self.pruned))} back from the trash")
        if self.away is not None:
            parts.append(_PLAIN if self.is_rollout else "back where its client looks")
        if self.whole is not None:
            there = _segments(len(self.whole.manifest.segments))
            parts.append(f"whole, {there} back in the live file")
            if self.whole.tail is None:
                parts.append("everything after the last rotation is gone with the old live file")
            if self.unused is not None:
                parts.append("it counts as used now, or its client would delete it")
            if self.whole.pending is not None:
                parts.append(f"a later run does the rest: {self.whole.pending}")
        return "; ".join(filter(None, [*parts, self.missing]))

    @property
    def missing(self) -> str:
        """What keeps the session from being whole, in a few words; empty where nothing does."""
        said = []
        if self.lost:
            some = units.some([f"{number:,}" for number in self.lost], 5)
            named = f"segments {some} were" if self.lost[1:] else f"segment {some} was"
            said.append(f"{named} deleted for good")
        if self.is_cut:
            said.append("its client cut a part of the history out")
        return ", and ".join(said)

    @property
    def refusal(self) -> RefusedError | None:
        """Why nothing can come back although something is gone; None if it can, or is not."""
        if self.is_anything or not self.missing:
            return None
        name = printable(self.where.session)
        return RefusedError(
            f"{name} cannot be whole again: {self.missing}. `sessrotate export --allow-gaps "
            f"{name}` gives everything else."
        )

    def outcome(self, result: Result) -> Outcome:
        """Return what became of the session, or would."""
        if not self.is_anything:
            return Outcome(self.where, "nothing to do", size=self.after, detail=self.words())
        grown = self.before - self.after
        return Outcome(self.where, result, grown, self.after, detail=self.words())


def _segments(number: int) -> str:
    return f"{number:,} segment{'' if number == 1 else 's'}"


# ── deciding ─────────────────────────────────────────────────────────────────────────────────


def prepare(where: Place, wanted: WantedBack = ALL) -> WayBack:
    """Return what brings a session back; change nothing.

    Raises RefusedError where the live file does not go on from its archive or must not be replaced,
    or a name of what was put away is taken; InUseError if a client runs a session that is to be
    whole; DamagedError and StorageError for what cannot be read.
    """
    if rollouts.is_one(where):
        return _of_rollout(where)
    away = bring_back.plan(where) if wanted.away else None
    with storage("read the session"), state.opened(where) as there:
        planned = _planned(there, wanted, away)
        return replace(planned, finished="" if away is not None else recover.plan(there).sentence)


def _of_rollout(where: Place) -> WayBack:
    """Return the same of a session of Codex, which was only compressed, or is plain."""
    away = rollouts.packed(where)
    if away is not None:
        return WayBack(where, away=away, before=away.packed, after=away.size)
    size = where.live.stat().st_size
    return WayBack(where, before=size, after=size)


def _planned(there: State, wanted: WantedBack, away: Away | None = None) -> WayBack:
    """Return the same of a session that is open; `away` is what was put away of it."""
    where = there.place
    if not there.is_away:
        owner.check_unmoved(where)
    found = (
        sealed_segments.as_if_rebuilt(there) if sealed_segments.is_manifest_lost(there) else there
    )
    in_trash, gone = pruned(found, found.listed)
    is_here = away is not None or not found.is_away
    is_coming = is_here and (found.is_away or (found.is_gone and found.is_rotated))
    is_known = wanted.is_placed or _is_known(where) or found.problem is not None
    if is_coming and not is_known:
        raise RefusedError(_nowhere(found))
    if (is_wanted := wanted.whole and is_here) and found.kept:
        raise RefusedError(found.cuts[-1].detail)
    whole = _whole(found) if is_wanted and not gone and not found.cuts else None
    size = found.live.size() if found.live is not None and not found.is_gone else 0
    return WayBack(
        where,
        pruned=wanted.of(in_trash),
        lost=wanted.of(gone),
        is_cut=is_wanted and bool(found.cuts),
        away=away,
        whole=whole,
        touch=wanted.touch,
        unused=_unused(found) if wanted.touch and whole is not None and away is None else None,
        before=0 if found.is_away else size,
        after=whole.size if whole is not None else size if is_here else 0,
    )


def _is_known(where: Place) -> bool:
    """Tell whether the project is known to which a live file is to come back, and is there."""
    return bool(where.project) and where.live.parent.is_dir()


def _nowhere(found: State) -> str:
    """Say that the project to which a live file is to come back is not there, and what to do."""
    where = found.place
    folder, session = printable(str(where.live.parent)), printable(where.session)
    told = "FOLDER" if (own := _ran_in(found)) is None else printable(shlex.quote(own))
    gone = f"{folder}, which held {session}, no longer exists."
    gone = gone if where.project else f"No record says in which project {session} was."
    return (
        f"{gone} `sessrotate restore {session} --project {told}` puts it where a client that runs "
        "in that folder looks for it; if the project was moved, name its present folder."
    )


def _ran_in(found: State) -> str | None:
    """Return the folder that a session's client ran in, None if nothing in sight says it."""
    look = clients.reader(clients.in_place().files).sight
    if found.live is not None:
        size = found.live.size()
        return look(*edges_of(found.live, size), is_whole=size <= EDGE).folder
    with suppress(DamagedError, StorageError):
        if found.manifest is not None:
            there = load.of_manifest(found.place.archive, found.listing, found.manifest)
            head = next(body(there, there.parts[0]), b"")
            return look(bytes(head[:EDGE]), b"", is_whole=False).folder
    return None


def _unused(found: State) -> float | None:
    """Return for how long a live file was not used that its client deletes; None if it stays."""
    if found.live is None or found.is_gone:
        return None
    status, now = os.fstat(found.live.fd), time.time()
    cleanup = found.place.client.cleanup
    rule = cleanup.in_force()
    at = rule.deletes_at(status, is_desktop=cleanup.is_desktop(found.place.live))
    return now - status.st_mtime if at is not None and at < now + _SOON else None


def pruned(found: State, listed: Manifest | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the numbers of pruned segments that are still there, and of those that are not.

    One that an interrupted restoration left in the trash, without its tombstone, is there too.
    """
    if listed is None:
        return (), ()
    trashed = trash.in_trash(found.place)
    there = found.listing | trashed.keys()
    risen = trash.unsettled(found.place, listed, found.listing, trashed).risen
    gone = [each for each in listed.segments if each.pruned or listed.file_of(each) in risen]
    back = {entry.segment.index for entry in gone if listed.file_of(entry) in there}
    numbers = [entry.segment.index for entry in gone]
    return tuple(sorted(back)), tuple(number for number in numbers if number not in back)


def _whole(found: State) -> RestorePlan | None:
    """Return the plan of a live file that is whole, as if all else had come back already.

    None if none of the history is archived.
    """
    if (listed := found.listed) is None:
        return whole_again.prepare(found)
    if found.live is not None and not found.is_gone:
        users = [*in_use.clients(found.place)]
        if users:
            raise in_use.busy(users, or_live=False)
    segments = tuple(replace(entry, pruned=None) for entry in listed.segments)
    return whole_again.prepare(replace(found, listed=replace(listed, segments=segments)))


# ── doing ────────────────────────────────────────────────────────────────────────────────────


def restore(
    where: Place,
    wanted: WantedBack,
    wait: float,
    progress: Progress,
    shown: WayBack | None = None,
) -> WayBack:
    """Bring a session back and return what was done; what a crash left is dealt with first.

    `wait` is as in `execute`. Raises as `prepare` and `execute` do; InUseError if a plan was
    `shown` and another one would be carried out by now.
    """
    if rollouts.is_one(where) or away_file.note(where) is not None:
        return execute(_as_shown(prepare(where, wanted), shown), wait, progress)
    planned = WayBack(where)

    def decide(found: State, recovered: Recovery) -> RestorePlan | None:
        nonlocal planned
        planned = replace(_planned(found, wanted), finished=recovered.past)
        if not planned.is_anything and (lacks := restored.lacking(found)) is not None:
            raise RefusedError(lacks)
        return None if _as_shown(planned, shown).pruned else planned.whole  # they come back first

    with storage("restore the session"):
        whole = operations.restore_session(where, wait, progress, decide)
    if whole is None:
        return execute(planned, wait, progress)
    return _dated(replace(planned, whole=whole))


def _as_shown(planned: WayBack, shown: WayBack | None) -> WayBack:
    """Return a plan; raise InUseError if another one was shown."""
    if shown is not None and planned.parts != shown.parts:
        name = printable(planned.where.session)
        raise InUseError(f"{name} changed after the plan was shown: try again.")
    return planned


def _dated(done: WayBack) -> WayBack:
    """Date a live file that its client would delete at its next start: a restoration does not."""
    if done.unused is not None and done.touch is not None:
        with storage("restore the session"):
            fs.set_time(done.where.live, int(done.touch * 1e9))
    return done


def execute(planned: WayBack, wait: float, progress: Progress) -> WayBack:
    """Carry out a plan; return it as it was done.

    `wait` is how many seconds to wait for the session's lock. Raises as `undelete`, `bring_back`
    and `restore_session` do, and says what was done before that.
    """
    where, whole = planned.where, planned.whole
    check_room(planned)
    done = WayBack(where)
    if rollouts.is_one(where) and planned.away is not None:
        with progress("Unpacking", planned.after) as unpacking:
            size = rollouts.decompress(where, unpacking)
        return replace(planned, after=size)
    if planned.pruned:
        with _after(done):
            trash.undelete(where, wait, planned.pruned)
        done = replace(done, pruned=planned.pruned)
    if planned.away is not None:
        with _after(done), locks.alone(where, wait), storage("restore the session"):
            if not restored.is_marked(where):  # a rule might put it away again at once
                whole_again.mark(where)
        with _after(done), progress("Unpacking", planned.away.size) as unpacking:
            size = bring_back.bring_back(where, wait, unpacking, touch=planned.touch)
        away = replace(planned.away, size=size)
        planned = replace(planned, away=away)
        done = replace(done, away=away)
    if whole is not None:
        with _after(done), storage("restore the session"):
            whole = operations.restore_session(where, wait, progress)
    return _dated(replace(planned, whole=whole))


def check_room(planned: WayBack, taken: int = 0) -> None:
    """Raise NoRoomError unless the disk has room for the whole history and what is unpacked.

    `taken` is how many bytes others take before.
    """
    obstacles.check_room(planned.where.config, planned.need, -taken)


@contextmanager
def _after(done: WayBack) -> Iterator[None]:
    """Say with a failure what was done before it, and stays."""
    try:
        yield
    except SessrotateError as error:
        if not done.is_anything:
            raise
        raise type(error)(f"{error} Done before that: {done.words()}.") from error
