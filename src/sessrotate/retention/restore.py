"""Bringing a session back, whatever happened to it: pruned, put away, rotated, or all of these.

Promise: a `Place` and what is wanted → `prepare` → a `WayBack` → `execute` → the session as it was.

Rule: each part is a change of its own that loses nothing, in this order: the archive from its
trash, pruned segments, what was put away, and last the live file, whole. A crash in between leaves
a session of which the next `restore` brings back the rest. What keeps a part from being done is
looked for, and the room for all of them, before the first.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sessrotate import fs
from sessrotate.archive import archived_file, copies, place, restored, state
from sessrotate.clients.claude import cleanup
from sessrotate.clients.common import names_in
from sessrotate.errors import (
    InUseError,
    RefusedError,
    SessrotateError,
    StorageError,
    printable,
    storage,
)
from sessrotate.in_place import operations, rebuild_manifest, retire
from sessrotate.in_place import restore as whole_again
from sessrotate.in_place.outcome import Outcome
from sessrotate.retention import transaction, trash, unarchive
from sessrotate.system import in_use

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sessrotate.archive.place import Place
    from sessrotate.archive.restored import Trashed
    from sessrotate.archive.state import State
    from sessrotate.in_place.operations import Progress
    from sessrotate.in_place.outcome import Result
    from sessrotate.in_place.restore import RestorePlan
    from sessrotate.segments.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be brought back: what was put away, these pruned segments (None: all), the whole.

    Where the session is to be whole, all pruned segments come back.
    """

    away: bool = True
    pruned: frozenset[int] | None = None
    whole: bool = True

    def of(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return which of these pruned segments are wanted."""
        is_every = self.whole or self.pruned is None
        return tuple(number for number in numbers if is_every or number in (self.pruned or ()))


_SOON: Final = 86_400.0
"""Seconds before the client deletes a session: what it would delete by then counts as used now."""

ALL: Final = Wanted()
"""Whatever happened."""

SHORT: Final = Wanted(whole=False)
"""All of it, but the live file stays as short as it is."""


@dataclass(frozen=True, slots=True)
class WayBack:
    """What brings a session back, decided and not yet done.

    * `retired`: the archive in the trash of restored sessions that the live file goes on from,
      which is to be its archive again; None if there is none.
    * `pruned`: the numbers of the segments that come back from the archive's trash; `lost` are
      those that were freed for good, because of which the session stays rotated; as it does where
      its client cut a part of the history out (`is_cut`).
    * `away`: how many bytes come back from having been put away, None if none were.
    * `whole`: the plan for the live file, None if it stays as it is.
    * `unused`: for how many seconds the live file has not been used, if the client's clean-up
      deletes such a file; None if it does not, or the file is new.
    * `before`, `after`: bytes of the live file.
    """

    where: Place
    retired: Trashed | None = None
    pruned: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    is_cut: bool = False
    away: int | None = None
    whole: RestorePlan | None = None
    unused: float | None = None
    before: int = 0
    after: int = 0

    @property
    def is_anything(self) -> bool:
        """Whether anything is to be done."""
        return self.away is not None or any((self.retired, self.pruned, self.whole))

    @property
    def parts(self) -> tuple[object, ...]:
        """What must be the same when it is done as when it was shown."""
        digests = self.whole and tuple(entry.digest for entry in self.whole.manifest.segments)
        return self.retired, self.pruned, self.lost, self.away is not None, digests

    def words(self) -> str:
        """Return what that is in a few words, as the detail of an outcome."""
        parts = []
        if self.retired is not None and self.whole is None:
            parts.append("its archive back from the trash")
        if self.pruned:
            parts.append(f"{_segments(len(self.pruned))} back from the trash")
        if self.away is not None:
            parts.append("back where its client looks")
        if self.whole is not None:
            there = _segments(len(self.whole.manifest.segments))
            parts.append(f"whole, {there} back in the live file")
            if self.whole.tail is None:
                parts.append("what came after the last rotation is gone with the old live file")
            if self.unused is not None:
                parts.append("it counts as used now, or its client would delete it")
            if self.whole.pending is not None:
                parts.append(f"its archive goes to the trash later: {self.whole.pending}")
        return "; ".join(filter(None, [*parts, self.missing]))

    @property
    def missing(self) -> str:
        """What keeps the session from being whole, in a few words; empty where nothing does."""
        said = []
        if self.lost:
            listed = ", ".join(f"{number:,}" for number in self.lost[:5])
            more = f"{listed} and {len(self.lost) - 5:,} more" if self.lost[5:] else listed
            said.append(f"segment{'s' if self.lost[1:] else ''} {more} left the trash for good")
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


def prepare(where: Place, wanted: Wanted = ALL) -> WayBack:
    """Return what brings a session back; change nothing.

    Raises RefusedError where the live file does not go on from its archive or must not be replaced,
    or a name of what was put away is taken; InUseError if a client runs a session that is to be
    whole; DamagedError and StorageError for what cannot be read.
    """
    away = unarchive.plan(where) if wanted.away else None
    with storage("read the session"), state.opened(where) as there:
        if not there.is_archived:
            copies.check_unmoved(where)
        found = rebuild_manifest.as_if(there) if rebuild_manifest.is_lost(there) else there
        retired = found.trashed
        if retired is not None:
            _check_free(where)
        listed = found.listed if retired is None else restored.manifest_of(retired)
        in_trash, gone = pruned(found, listed) if retired is None else ((), ())
        is_here = away is not None or not found.is_archived
        if (is_wanted := wanted.whole and is_here) and found.kept:
            raise RefusedError(found.cuts[-1].detail)
        whole = _whole(found, listed) if is_wanted and not gone and not found.cuts else None
        size = found.live.size() if found.live is not None and not found.is_gone else 0
        return WayBack(
            where,
            retired=retired,
            pruned=wanted.of(in_trash),
            lost=wanted.of(gone),
            is_cut=is_wanted and bool(found.cuts),
            away=away,
            whole=whole,
            unused=_unused(found) if whole is not None and away is None else None,
            before=0 if found.is_archived else size,
            after=whole.size if whole is not None else size if is_here else 0,
        )


def _check_free(where: Place) -> None:
    """Raise RefusedError if somebody's hidden files are where an archive is to come back to."""
    strange = names_in(where.archive)
    if strange:
        folder, told = printable(str(where.archive)), ", ".join(printable(each) for each in strange)
        raise RefusedError(
            f"The archive comes back to {folder}, and that has {told}, which sessrotate did not "
            "write: move or remove it, then try again."
        )


def _unused(found: State) -> float | None:
    """Return for how long a live file was not used that its client deletes; None if it stays."""
    if found.live is None or found.is_gone:
        return None
    status, now = os.fstat(found.live.fd), time.time()
    rule = cleanup.in_force()
    at = rule.deletes_at(status, is_desktop=cleanup.is_desktop(found.place.live))
    return now - status.st_mtime if at is not None and at < now + _SOON else None


def pruned(found: State, listed: Manifest | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the numbers of pruned segments that are still there, and of those that are not."""
    if listed is None:
        return (), ()
    there = found.listing | transaction.in_trash(found.place).keys()
    tombs = [entry for entry in listed.segments if entry.pruned is not None]
    back = {entry.segment.index for entry in tombs if transaction.file_of(listed, entry) in there}
    numbers = [entry.segment.index for entry in tombs]
    return tuple(sorted(back)), tuple(number for number in numbers if number not in back)


def _whole(found: State, listed: Manifest | None) -> RestorePlan | None:
    """Return the plan of a live file that is whole, as if all else had come back already.

    None if none of the history is archived.
    """
    if listed is None:
        return whole_again.prepare(found)
    restored.check_own(found.place)
    if found.live is not None and not found.is_gone:
        users = [*in_use.clients(found.place)]
        if users:
            raise in_use.busy(users, or_live=False)
    segments = tuple(replace(entry, pruned=None) for entry in listed.segments)
    problem = found.problem if found.trashed is None else None
    as_if = replace(found, listed=replace(listed, segments=segments), problem=problem)
    return whole_again.prepare(as_if)


# ── doing ────────────────────────────────────────────────────────────────────────────────────


def restore(
    where: Place,
    wanted: Wanted,
    wait: float,
    progress: Progress,
    *,
    touch: float | None = None,
    shown: WayBack | None = None,
) -> WayBack:
    """Bring a session back and return what was done; what a crash left is dealt with first.

    `wait` and `touch` are as in `execute`. Raises as `prepare` and `execute` do; InUseError if a
    plan was `shown` and another one would be carried out by now.
    """
    if archived_file.note(where) is None:  # or `unarchive` does that
        operations.recover_session(where, wait, progress)
        where = place.home(where)
    planned = prepare(where, wanted)
    _check_there(planned)
    if shown is not None and planned.parts != shown.parts:
        name = printable(where.session)
        raise InUseError(f"{name} changed after the plan was shown: try again.")
    return execute(planned, wait, progress, touch=touch)


def _check_there(planned: WayBack) -> None:
    """Raise RefusedError if nothing is to be done, and the trash has what the live file lacks."""
    lacks = None if planned.is_anything else restored.lacking(planned.where)
    if lacks is not None:
        raise RefusedError(restored.strange(planned.where, lacks))


def execute(
    planned: WayBack, wait: float, progress: Progress, *, touch: float | None = None
) -> WayBack:
    """Carry out a plan; return it as it was done.

    `wait` is how many seconds to wait for the session's lock. With `touch`, seconds since 1970,
    the files that were put away get that as the time of their last change, and so does a live file
    that the client's clean-up would delete. Raises as `undelete`,
    `unarchive` and `restore_session` do, and says what was done before that.
    """
    planned = planned if touch is not None else replace(planned, unused=None)
    where, whole = planned.where, planned.whole
    check_room(planned)
    done = WayBack(where)
    if planned.retired is not None:
        if retire.bring_back(where, wait) is None:
            raise InUseError(f"{printable(where.session)} was changed just now: try again.")
        done = replace(done, retired=planned.retired)
    if planned.pruned:
        with _after(done):
            trash.undelete(where, wait, planned.pruned)
        done = replace(done, pruned=planned.pruned)
    if planned.away is not None:
        with _after(done), progress("Unpacking", planned.away) as unpacking:
            away = unarchive.unarchive(where, wait, unpacking, touch=touch)
        planned = replace(planned, away=away)
        done = replace(done, away=away)
    if whole is not None:
        with _after(done), storage("restore the session"):
            whole = operations.restore_session(where, wait, progress)  # which keeps the time
            if planned.unused is not None and touch is not None:
                # Else the client deletes at its next start what its archive is in the trash of.
                fs.set_time(where.live, int(touch * 1e9))
    return replace(planned, whole=whole)


def check_room(planned: WayBack) -> None:
    """Raise StorageError unless the disk has room for the whole history and what is unpacked."""
    if planned.whole is None:
        return
    whole_again.check_room(planned.whole)
    room, needed = planned.whole.room, planned.whole.size + (planned.away or 0)
    if room is not None and room < needed:
        raise StorageError(
            f"The session needs {needed:,} bytes to be unpacked and made whole, and {room:,} are "
            "free: nothing was changed. With --keep-rotated it takes less."
        )


@contextmanager
def _after(done: WayBack) -> Iterator[None]:
    """Say with a failure what was done before it, and stays."""
    try:
        yield
    except SessrotateError as error:
        if not done.is_anything:
            raise
        raise type(error)(f"{error} Done before that: {done.words()}.") from error
