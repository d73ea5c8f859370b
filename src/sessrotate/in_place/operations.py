"""What the commands do to a session where it lives, each from its lock to the last byte sealed.

Rule: lock, recover, look, plan, execute, finish, always in this order. What a crash left is dealt
with before anything new begins.

Beside the archives a text is left for whoever looks there for what may be deleted. It is a
courtesy: it appears whole or not at all, stands in for nothing, is never written over what is
there, and nothing fails because it could not be written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import fs, names
from sessrotate.archive import away_file, found_files, owner, place, restored, state
from sessrotate.archive.place import Place
from sessrotate.archive.state import State
from sessrotate.errors import (
    DamagedError,
    RefusedError,
    RequestError,
    SessrotateError,
    StorageError,
    printable,
    storage,
)
from sessrotate.in_place import (
    aside,
    gain,
    obstacles,
    recover,
    restore,
    rotate,
    seal,
    sealed_segments,
    swap,
)
from sessrotate.in_place.gain import DiskUse
from sessrotate.in_place.obstacles import NOTHING, Need
from sessrotate.in_place.recover import Recovery
from sessrotate.in_place.restore import RestorePlan
from sessrotate.in_place.rotate import RotationPlan
from sessrotate.in_place.seal import NotQuietError
from sessrotate.system import locks

if TYPE_CHECKING:
    Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
    """Given what is being done and how many bytes there are, shows how many are done."""


class RestoredError(RefusedError):
    """The owner restored the session: only a rotation by its name moves its history away again."""


class Rotated(Struct, frozen=True):
    """What a rotation came to: its plan, what was recovered before, and how it went.

    `seconds` is how long a client would have had to wait, None if nothing was done: there was
    nothing to cut, too little to gain, or the `refusal`. `pending` says why nothing is freed
    yet. `together` is how many bytes were, or are to be, put together first that its client had
    trimmed. `need` is what has to be free for a planned one. `disk` is what the session takes
    of the disk, None where nothing was, or is to be, done. `gains_too_little`: less than was
    wanted.
    """

    plan: RotationPlan
    recovered: Recovery
    seconds: float | None = None
    refusal: RequestError | None = None
    pending: str | None = None
    disk: DiskUse | None = None
    gains_too_little: bool = False
    together: int = 0
    need: Need = NOTHING


@contextmanager
def alone(where: Place, wait: float, *, adopt: bool = False) -> Iterator[None]:
    """Hold a session's lock in the block, and leave the text beside its archive behind it.

    `wait` is how many seconds to wait for the lock. Raises as `owner.check` and `locks.alone` do.
    """
    obstacles.check_name(where)
    with locks.alone(where, wait):
        with storage("look for the archive"):
            owner.check(where, adopt=adopt)
        yield
        leave_readme(where)


def plan_session(
    where: Place,
    progress: Progress,
    *,
    live: bool = False,
    adopt: bool = False,
    by_itself: bool = False,
    least: int = 0,
) -> Rotated:
    """Return what `rotate_session` would do, and what would keep it from that; change nothing.

    `recovered` says what it would do first. Raises as `rotate.prepare` and `recover.plan` do, and
    RestoredError as `rotate_session` does.
    """
    with storage("read the session"):
        owner.check(where, adopt=adopt)
    _check_wanted(where, by_itself=by_itself)
    with storage("read the session"), state.opened(where) as there, ExitStack() as stack:
        _check_here(there)
        kept = restore.kept_of(there, stack)
        together, gained = (0, 0) if kept is None else (kept.size, gain.of_kept(kept.parts))
        finishing = gain.of_finishing(there)
        recovery = replace(recover.plan(there), gained=finishing.gained)
        if there.intent is not None and there.intent.operation == "restore" and recovery.sentence:
            command = f"sessrotate restore {printable(where.session)}"
            how = RestoredError if by_itself else RefusedError
            raise how(f"{recovery.sentence} `{command}` does that now.")
        found = sealed_segments.as_if_rebuilt(there) if recovery.deed == "rebuild" else there
        size = found.live.size() if found.live is not None else 0
        with progress("Reading", size) as reading:
            planned = rotate.prepare(found, reading, adopt=adopt)
        try:
            rotate.check(planned, where, live=live)
        except RequestError as error:
            return Rotated(planned, recovery, refusal=error)
        if found.live is None or (planned.live is None and not together):
            return Rotated(planned, recovery)
        before = gain.measured(where) - gain.put_aside(planned, where)
        after = before - gained - gain.expected(planned, found.live)
        need = gain.needed(planned, found.live)
        need = replace(need, size=together + need.size)
        need = max(need, finishing.need, key=lambda each: each.size)
    disk = DiskUse(before, after, is_estimated=True)
    too_little = not together and _is_too_little(planned, disk.gain, least)
    return Rotated(
        planned,
        recovery,
        disk=disk,
        gains_too_little=too_little,
        together=together,
        need=need,
    )


def rotate_session(
    where: Place,
    wait: float,
    progress: Progress,
    *,
    live: bool = False,
    adopt: bool = False,
    by_itself: bool = False,
    least: int = 0,
) -> Rotated:
    """Move a session's history to its archive.

    `wait` is how many seconds to wait for another sessrotate, and for a moment without a writer;
    `live` is as in `rotate.check`, `adopt` as in `rotate.prepare`; `by_itself` is whether nobody
    named this session. With `least`, nothing is done that would gain the disk fewer bytes; a
    healing gains none, and is done. Raises as `rotate.prepare`, `rotate.execute` and `recover` do,
    but for what keeps the plan from being carried out, which is returned with it; RestoredError if
    it rotates `by_itself` what its owner restored.
    """
    with alone(where, wait, adopt=adopt):
        with ExitStack() as stack:
            recovered, found = stack.enter_context(_settled(where, wait))
            _check_wanted(where, by_itself=by_itself)
            before, together = gain.measured(where), 0
            if restore.is_trimmed(where.live, where.session):
                stack.close()
                with progress("Putting together", 0) as writing:
                    together = restore.put_together(where, wait, writing, live=live)
                found = stack.enter_context(state.opened(where))
            _check_here(found)
            size = found.live.size() if found.live is not None else 0
            with progress("Reading", size) as reading:
                planned = rotate.prepare(found, reading, adopt=adopt)
            if planned.live is None and not planned.refusals:
                is_short = found.header is not None or not restored.is_left(found)
                if not by_itself and is_short and restored.is_marked(where):  # as its owner wants
                    with storage("rotate the session"):
                        swap.change_record(where, restored=None)
                return Rotated(planned, recovered, together=together)
            before -= gain.put_aside(planned, where)
            try:
                rotate.check(planned, where, wait, live=live)
                # Without a limit, no samples are read.
                wanted = 0 if together else least
                if wanted and _is_too_little(planned, gain.expected(planned, found.live), wanted):
                    return Rotated(planned, recovered, gains_too_little=True)
                with (
                    _aside(where, planned),
                    obstacles.told(
                        "rotate the session",
                        where.archive,
                        lambda: gain.needed(planned, rotate.live_source(found)),
                    ),
                    progress("Archiving", planned.moved) as archiving,
                ):
                    seconds = rotate.execute(planned, found, wait, archiving, live=live)
            except RequestError as error:
                return Rotated(planned, recovered, refusal=error, together=together)
        try:
            with _after_the_swap(where), _told_of_room(where):
                pending = seal.finish(where, wait)
        except NotQuietError as error:
            pending = str(error)
        disk = DiskUse(before, gain.measured(where))
        return Rotated(planned, recovered, seconds, pending=pending, disk=disk, together=together)


def restore_session(
    where: Place,
    wait: float,
    progress: Progress,
    decide: Callable[[State, Recovery], RestorePlan | None] | None = None,
) -> RestorePlan | None:
    """Put a session's full history back; return None if none of it is archived.

    `decide` returns the plan, or None, of what was found when what a crash left had been dealt
    with. Raises as it, `restore.execute` and `recover` do.
    """
    with alone(where, wait):
        with _settled(where, wait) as (recovered, found):
            _check_here(found)
            planned = decide(found, recovered) if decide else restore.prepare(found)
            if planned is None:
                return None
            with progress("Restoring", planned.manifest.source_bytes) as writing:
                restore.execute(planned, found, wait, writing)
        try:
            with _after_the_swap(where):
                pending = seal.finish(where, wait)
        except NotQuietError as error:
            pending = str(error)
        return replace(planned, pending=pending)


def recover_session(where: Place, wait: float) -> Recovery:
    """Finish or undo what an interrupted run left of a session; return what that was.

    Raises as `recover` does.
    """
    with alone(where, wait), _settled(where, wait) as (done, _):
        return done


def _is_too_little(planned: RotationPlan, gained: int, least: int) -> bool:
    """Tell whether less is gained than was wanted; 0 wants any rotation, a healing gains none."""
    return bool(least) and not planned.heals and gained < least


def finish_interrupted(places: Iterable[Place], wait: float) -> None:
    """Finish or undo what interrupted runs left of these sessions, before anybody plans for them.

    `wait` is in seconds. What cannot be finished is passed over: whoever plans finds it again.
    """
    for where in places:
        if not where.archive.exists():
            continue
        with suppress(SessrotateError, OSError):
            with state.opened(where) as found:
                is_left = bool(recover.plan(found).sentence)
            if is_left:
                recover_session(where, wait)


def _check_wanted(where: Place, *, by_itself: bool) -> None:
    if by_itself and restored.is_marked(where):
        name = printable(where.session)
        raise RestoredError(
            f"You restored this session. To rotate it again: `sessrotate rotate {name}`."
        )


def _check_here(found: State) -> None:
    """Raise RefusedError if the session was put away: nothing of it is where its client looks."""
    if found.is_away:
        away_file.check_single(found.place)
        name = printable(found.place.session)
        back = f"{name} was put away: bring it back with `sessrotate restore {name}`."
        raise RefusedError(found.problem or back)
    owner.check_unmoved(found.place)


@contextmanager
def _aside(where: Place, planned: RotationPlan) -> Iterator[None]:
    """Have the archive out of the way in the block, and back if that fails before the swap."""
    folder = aside.put_aside(where) if planned.puts_aside else None
    try:
        yield
    except BaseException:
        if folder is not None:
            with suppress(SessrotateError):
                aside.put_back(where, folder)
        raise


@contextmanager
def _settled(where: Place, wait: float) -> Iterator[tuple[Recovery, State]]:
    """Finish or undo what is left, then hold the session open in the block."""
    with ExitStack() as stack:
        with _told_of_room(where):
            try:
                found = stack.enter_context(recover.settled(where, wait))
            except DamagedError as error:
                raise found_files.with_way_out(where, error) from error
        yield found


@contextmanager
def _told_of_room(where: Place) -> Iterator[None]:
    """Say of a full disk how much room is missing to finish what is begun."""
    what = "finish what was begun"
    with obstacles.told(what, where.config, lambda: _needed_to_finish(where)), storage(what):
        yield


def _needed_to_finish(where: Place) -> Need:
    with state.opened(where) as found:
        need = gain.of_finishing(found).need
    return need if need.size else Need(gain.ASIDE, "what is left to be done")


@contextmanager
def _after_the_swap(where: Place) -> Iterator[None]:
    """Say with every failure that the session is safe, and who goes on."""
    try:
        with storage("put the history away"):
            yield
    except NotQuietError:
        raise
    except DamagedError as error:  # no next run can do more
        error = DamagedError(f"{error} The session itself is complete, and nothing is lost.")
        raise found_files.with_way_out(where, error) from error
    except SessrotateError as error:
        raise StorageError(
            f"{error} The session itself is complete, and nothing is lost: the next run finishes."
        ) from error


# ── the text beside the archives ──────────────────────────────────────────────────────────────────

README: Final = b"""\
This folder is the history of your coding-agent sessions. Do not delete it by hand.

sessrotate keeps the live files small, and the rest of each session is here, compressed. If you
delete a session's folder, the beginning of that session is lost for good.

To see what takes space:    sessrotate list
To free space:              sessrotate prune --all --keep-within 90d --dry-run
To get a session back:      sessrotate restore SESSION
To check that all is there: sessrotate verify --all

If it was deleted already: put it back from the trash or from a backup, under this name.
"""


def leave_readme(where: Place) -> None:
    """Write the text into the folder of all archives, if the session has an archive and it lacks.

    Where it cannot be written, as on a full disk, nothing is raised and nothing stays of it: a next
    time will do. What a kill left of it goes the next time too, whichever session that is for.
    """
    path = where.config / place.FOLDER / place.README
    _clear(path)
    is_any = os.path.lexists(where.archive / names.MANIFEST) or away_file.away(where)
    if os.path.lexists(path) or not is_any:
        return
    try:
        fs.create_file_at_once(path, README)
    except OSError:
        _clear(path)


def _clear(path: Path) -> None:
    """Remove the draft of the text. Another process that is writing it will do without."""
    draft = path.with_name(path.name + names.PARTIAL)
    if os.path.lexists(draft):
        with suppress(OSError):
            fs.remove_files(draft.parent, [draft.name])
