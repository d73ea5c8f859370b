"""Putting whole sessions away: they move out of their client's folder, until `restore`.

Promise: a session put away is out of the reach of its client's lists and clean-up, is found by
its id, and comes back as it was. After a crash, the next `archive` goes on and the next
`restore` undoes it.

Of a session that was never written only agents' transcripts are there: it is put away, and comes
back, with an empty live file, as 2.0.x leaves one.

Rule: files are moved by renames within one file system, so that each keeps everything it has, and
never over another. A note in the archive says what is being done, from before the first move until
after the last. The live file leaves last, under a lease, while nobody writes to it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate import clients, fs, names
from sessrotate.archive import away_file, live_tail, owner, place, restored, state
from sessrotate.archive.place import Place
from sessrotate.archive.record import PutAway
from sessrotate.archive.state import State
from sessrotate.clients.in_place import Cleanup
from sessrotate.clients.preview import EDGE, Sight, edges_of
from sessrotate.errors import (
    InUseError,
    RefusedError,
    SessrotateError,
    StorageError,
    printable,
    storage,
)
from sessrotate.in_place import gain, obstacles, operations, recover, second_names
from sessrotate.in_place.gain import Forecast
from sessrotate.in_place.obstacles import Need, disk, disk_of, elsewhere
from sessrotate.retention import away_files, sizes, trash
from sessrotate.retention.bring_back import listing, move_back
from sessrotate.segments import beginning_of
from sessrotate.system import disk_use, in_use, locks
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from sessrotate.clients.in_place import Near


class NotCompressedError(StorageError):
    """The session is put away, and stays plain; `moved` is how many bytes left its folder."""

    def __init__(self, message: str, moved: int = 0) -> None:
        super().__init__(message)
        self.moved: Final = moved


def put_away(
    where: Place, wait: float, progress: Callable[[int], None] = lambda _done: None
) -> int:
    """Put a session away; return how many bytes left its client's folder.

    `wait` is how many seconds to wait for the lock, and for a moment without a writer; `progress`
    is given how many bytes are compressed. A session that was put away already is compressed
    further, if that was interrupted. Raises InUseError if somebody uses it and RefusedError if it
    cannot be moved safely; then everything is as it was. Raises StorageError as the system
    reports, and says so if the session is put away and only compressing it failed.
    """
    with operations.alone(where, wait), storage("put the session away"):
        with state.opened(where) as found:
            _check_no_restoration(found)
        recover.recover(where, wait)
        note = away_file.note(where)
        freed = 0
        if note is None or note.standing != "archived":
            with (
                obstacles.told("put the session away", where.archive, lambda: expected(where).need),
                storage("put the session away"),
            ):
                if _unwritten(where):
                    with suppress(FileExistsError):  # its client has just begun it
                        fs.create_file(where.live, b"")
                freed, note = _move_all(where, wait)
        away_files.folder(where)
        away_file.check_away(where)
        try:
            _compress(where, note, progress)
        except SessrotateError as error:
            raise NotCompressedError(
                f"{error} The session is put away and nothing is lost: run `archive` again to "
                "compress it.",
                freed,
            ) from error
    return freed


def _compress(where: Place, note: PutAway, progress: Callable[[int], None]) -> None:
    def need() -> Need:
        return sizes.rest(where).need

    what = "compress the session"
    with obstacles.told(what, where.archive, need), storage(what):
        away_files.compress(where, note, progress)


def plan(where: Place) -> int:
    """Return how many bytes `put_away` would move out of the client's folder; change nothing.

    Raises as it does.
    """
    return _bytes(where, _to_move(where)[0])


def _to_move(where: Place, near: Near | None = None) -> tuple[Collection[str], Forecast]:
    """Return the names of what `put_away` would move; none if it was put away before.

    And what the disk gains before by finishing what was interrupted.
    """
    with storage("look at the session"), state.opened(where) as found:
        note = away_file.note(where)
        if note is not None and note.standing == "archived":
            away_files.folder(where)
            away_file.check_away(where)
            return (), Forecast()
        if unwritten := _unwritten(where, near):
            return unwritten, Forecast()
        return _checked(found, is_planned=True, near=near)[1], gain.of_finishing(found)


def expected(where: Place, near: Near | None = None) -> Forecast:
    """Return what `put_away` would move, and the disk would gain; `near` is as for `agents.beside`.

    What was put away already is compressed, if that was left. Raises as `plan` does.
    """
    items, finishing = _to_move(where, near)
    moved = _bytes(where, items)
    if not moved:
        return sizes.left_plain(where)
    with storage("look at the session"):
        paths = [where.live.parent / name for name in items]
        files = away_files.sizes(paths)
        wanted = {
            path: size
            for path, size in files.items()
            if path == where.live or size >= away_files.LEAST
        }
        after = files | sizes.compressed(wanted)
        gained = disk_use.of(*paths) - sum(map(gain.blocks, after.values()))
        # The live file comes first.
        first = sorted(wanted, key=lambda path: path != where.live)
        need = sizes.need((wanted[path], after[path]) for path in first)
        gained += finishing.gained - sizes.NEW * gain.BLOCK
        need = max(need, finishing.need, key=lambda each: each.size)
        return Forecast(moved, gained, need)


def measured(where: Place, near: Near | None = None) -> int:
    """Return how many bytes of the disk a session takes, and what lies beside (`agents.beside`)."""
    with storage("look at the session"):
        found = where.client.beside.beside(where.live, where.session, near)
        beside = (where.live.parent / name for name in found)
        return disk_use.of(where.live, where.archive, *beside)


def check_room(where: Place, size: int) -> None:
    """Raise NoRoomError where a session of so many bytes cannot be compressed once it is put away.

    It would be out of sight, and free nothing.
    """
    free = fs.free_bytes(where.config)
    # Compressed it is no larger, but for its last blocks: else samples need not be read.
    if free is not None and free < size + 2 * sizes.NEW * gain.BLOCK:
        obstacles.check_room(where.config, expected(where).need)


def stored(where: Place) -> int:
    """Return how many bytes the files of a session put away take."""
    with storage("look at the session"):
        return away_files.size(away_files.folder(where))


def _bytes(where: Place, items: Iterable[str]) -> int:
    return sum(away_files.size(where.live.parent / name) for name in items)


def _checked(
    found: State, wait: float = 0, *, is_planned: bool = False, near: Near | None = None
) -> tuple[Source, dict[str, os.stat_result]]:
    """Return the live file, and by its name what is to be moved, the live file last.

    `wait` is how many seconds to wait for those who have it open for writing. Raises InUseError if
    somebody uses the session, RefusedError if it cannot be moved safely; in a plan, what was
    interrupted will be finished by then, and DamagedError says if it cannot.
    """
    where, source = found.place, found.live
    if is_planned:
        _check_no_restoration(found)
        recover.plan(found)  # which is done before
    else:
        trash.check_finished(found)
    if source is None:
        raise RefusedError(
            f"{printable(str(where.live))} is gone: `restore` brings it back from its archive."
        )
    away_file.check_single(where)
    if kept := where.client.trims.replaced(where.live, where.session):
        raise RefusedError(live_tail.trimmed(kept, where.session).detail)
    in_use.check_unused(where, source.identity(), wait=wait, or_live=False, fd=source.fd)
    beside = where.client.beside.beside(where.live, where.session, near)
    items = {name: (where.live.parent / name).lstat() for name in beside}
    if reasons := [*_obstacles(where, source, items)]:
        raise RefusedError(" ".join(reasons))
    if os.path.lexists(where.live):  # or a crash came right after the last move
        items[where.live.name] = os.fstat(source.fd)
    return source, items


def _unwritten(where: Place, near: Near | None = None) -> list[str]:
    """Return the names of what agents left of a session that was never written; else nothing."""
    if os.path.lexists(where.live) or place.holds_something(where.archive):
        return []
    return where.client.beside.beside(where.live, where.session, near)


def _check_no_restoration(found: State) -> None:
    """Raise InUseError if a restoration is not finished: `restore` does that."""
    if found.intent is not None and found.intent.operation == "restore":
        trash.check_finished(found)


def _obstacles(where: Place, source: Source, items: Mapping[str, os.stat_result]) -> Iterator[str]:
    """Yield the reasons why a session cannot be moved, and moved back, safely."""
    folder, away = away_files.folder(where), away_file.away(where)
    given = int(away is not None and os.path.lexists(where.live))
    given += fs.same_as(os.fstat(source.fd))(where.pack)  # which goes first, where this is a plan
    yield from obstacles.of(where, source, given)
    for name, status in items.items():
        path, moved = where.live.parent / name, folder / name
        shown = printable(str(path))
        if stat.S_ISLNK(status.st_mode):
            yield f"{shown} is a symbolic link: put the folder itself in its place."
        elif disk(path) != disk_of(source.fd, where.live.parent):
            yield (
                f"{shown} is on a different file system from its session, or in another mount of "
                "it."
            )
        elif reason := obstacles.of_another(path, status.st_uid):
            yield reason
        elif os.path.lexists(moved) and not os.path.samestat(status, moved.lstat()):
            yield f"{shown} and {printable(str(moved))} both exist: merge them into the first."
        elif reason := _taken_for_ours(path) or _protected(path):
            yield reason
    if away_file.note(where) is None and (strangers := listing(folder)):
        yield (
            f"{printable(str(folder))} has {printable(strangers[0])}, which does not belong to a "
            "session that was put away: move it away."
        )


def _taken_for_ours(top: Path) -> str:
    """Return why what is moved would come back as another file: its name says we compressed it."""
    found = next((path for path in _with_all_in(top) if path.name.endswith(names.PACKED)), None)
    return "" if found is None else f"{printable(str(found))} ends in {names.PACKED}: rename it."


def _protected(top: Path) -> str:
    """Return why what is moved could not be compressed, nor come back; of a folder one reason."""
    return next(filter(None, map(obstacles.protected, _with_all_in(top))), "")


def _with_all_in(top: Path) -> Iterator[Path]:
    inside = (Path(at, name) for at, *found in os.walk(top) for name in chain(*found))
    return chain([top], inside)


def _move_all(where: Place, wait: float) -> tuple[int, PutAway]:
    """Move everything of a session that is still where its client looks.

    Returns how many bytes that is, and the note that says so.
    """
    with state.opened(where) as found:
        source, items = _checked(found, wait)
        source.thaw()
        here = source.identity()
        second_names.forget(where, os.fstat(source.fd))  # it goes where no client trims it
        freed, used = _bytes(where, items), _seen(where, source).ended
        try:
            fs.create_folder(where.archive)
            away_files.write_standing(where, "archiving")
            fs.create_folder(away_files.folder(where))
            answer = in_use.lease_from_writers(source, wait)
            is_same = source.identity() == here
            for name, status in items.items() if is_same else ():
                _move(where.live.parent / name, away_files.folder(where) / name, status)
            # Somebody who came by the old name may still write to the live file.
            if not (is_same and locks.settled(source.fd, answer) and source.identity() == here):
                raise InUseError("A client is writing to the session: close it, then try again.")
            if os.path.lexists(where.live):
                raise _saved(where)
            return freed, away_files.write_standing(where, "archived", used)
        except BaseException as error:
            kept = None
            with suppress(OSError, SessrotateError):
                kept = move_back(where, keeps=True)
            if kept is not None or isinstance(error, fs.ReplacedError):
                raise _saved(where, kept) from error
            if isinstance(error, OSError) and error.errno == errno.EXDEV:
                raise RefusedError(elsewhere(where)) from error
            raise


def _move(path: Path, to: Path, status: os.stat_result) -> None:
    """Move what was identified, and nothing else, to the archive."""
    if fs.same_as(status)(to):
        fs.remove_files(to.parent, [to.name])  # a power loss kept both names
    fs.take_away(path, to, fs.same_as(status))


def _saved(where: Place, kept: Path | None = None) -> InUseError:
    """Return the error that another program saved a file of the session just now."""
    name = printable(where.session)
    if kept is None:
        return InUseError(f"Another program has just saved a file of {name}: try again.")
    return InUseError(
        f"Another program saved {printable(str(where.live))} while it was put away, and that file "
        f"stays. {printable(str(kept))} holds the earlier one: compare the two, then remove "
        "the earlier one."
    )


# ── which ────────────────────────────────────────────────────────────────────────────────────


def wanted(
    older_than: float | None, before_cleanup: float | None, now: float, swept_at: float
) -> list[Place]:
    """Return the sessions to put away, those first of which that is not finished.

    These are sessions that a list shows as unused for `older_than` seconds at `now` (in seconds
    since 1970), and those that their client deletes within `before_cleanup` seconds of `swept_at`,
    what the clock says that it goes by.
    Sessions that a client runs and empty files are left out, and so are those that their owner
    restored, unless their client would delete them.
    """
    archives = [*place.archives()]
    begun = [where for where in archives if _is_begun(where)]
    rule = clients.in_place().cleanup.in_force()
    marked = {*restored.marked()}
    due, places = [], owner.Places(archives)
    near: Near = {}
    # What no list shows grows old for its client only; each transcript is opened for it.
    alone = clients.in_place().beside.alone() if before_cleanup is not None else ()
    unwritten = dict.fromkeys(live for live, _ in alone)
    for path in (*clients.in_place().files.sessions(), *unwritten):
        where = owner.of(path, places)
        if where is None or away_file.away(where) is not None:
            continue
        if where not in begun and not any(in_use.clients(where)):
            age = None if where.session in marked else older_than
            with suppress(SessrotateError, OSError):
                is_swept = _is_swept(where, before_cleanup, swept_at, rule, near)
                if is_swept or _is_older(where, age, now):
                    due.append(where)
    return begun + due


def _is_begun(where: Place) -> bool:
    with suppress(SessrotateError):
        note = away_file.note(where)
        if note is not None and note.standing == "archived":
            return away_files.is_due(where, note)
        return note is not None and note.standing == "archiving"
    return False


def is_saved(where: Place, before_cleanup: float | None, now: float) -> bool:
    """Tell whether its client would delete a session within so many seconds: it is saved then."""
    return _is_swept(where, before_cleanup, now, clients.in_place().cleanup.in_force(), {})


def _is_swept(
    where: Place, before_cleanup: float | None, now: float, rule: Cleanup, near: Near
) -> bool:
    """Tell whether it is time to save a session, also one that cannot be read: that is said.

    One without words of its own is saved for what its agents said: 2.0.x leaves an empty file for
    each agent.
    """
    if before_cleanup is None:
        return False
    statuses = [where.live.lstat()] if os.path.lexists(where.live) else []
    if not any(status.st_size for status in statuses):
        beside = where.client.beside.beside(where.live, where.session, near)
        paths = away_files.sizes(where.live.parent / name for name in beside)
        statuses = [path.lstat() for path in paths]
    is_desktop = rule.ceiling != rule.period and where.client.cleanup.is_desktop(where.live)
    times = (rule.saved_at(each, before_cleanup, is_desktop=is_desktop) for each in statuses)
    return any(at is not None and at <= now for at in times)


def _is_older(where: Place, older_than: float | None, now: float) -> bool:
    """Tell whether a list shows a session as unused for so long."""
    if older_than is None:
        return False
    with Source.itself(where.live) as source:
        seen = _seen(where, source)  # what a list does not show, nobody saw go
        last_used = seen.last_used(source.identity().modified_ns / 1e9)
        return seen.standing == "session" and last_used < now - older_than


def _seen(where: Place, source: Source) -> Sight:
    """Return what is in sight of a session, as a list says it."""
    size, older = source.size(), b""
    head, tail = edges_of(source, size)
    if head.startswith(names.ROTATED):
        with state.opened(where) as found:
            if (listed := found.manifest) is not None:
                older = beginning_of(where.archive, where.session, listed, EDGE)
    return where.client.edges.of_live(where.session, head, tail, older, is_whole=size <= EDGE)
