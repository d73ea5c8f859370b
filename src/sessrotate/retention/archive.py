"""Whole sessions put away, out of their client's folder, and put back as they were.

Rule: files are moved by renames on one file system, so that each keeps all it has, and never over
anything. A note in the archive says what is being done from before the first move until after the
last; what a crash left, the next `archive` or `unarchive` goes on with. The live file is the last
to leave, under a lease, with nobody writing to it, and the first to come back.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sessrotate import fs, units
from sessrotate.archive import archived_file, place, state
from sessrotate.archive.archived_note import Note
from sessrotate.clients.claude import client as claude
from sessrotate.clients.claude import companions
from sessrotate.errors import (
    DamagedError,
    InUseError,
    RefusedError,
    SessrotateError,
    StorageError,
    printable,
    storage,
)
from sessrotate.in_place import recover
from sessrotate.model import Span
from sessrotate.retention import archive_files, archive_moves, transaction
from sessrotate.segments import dating
from sessrotate.system import in_use, lease, locks
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessrotate.archive.archived_note import Standing
    from sessrotate.archive.place import Place
    from sessrotate.archive.state import State
    from sessrotate.model import FileIdentity

_GRACE: Final = 0.002
"""Seconds in which one who had found the live file's name before the rename comes to open it."""

_SETTLE: Final = 0.25
"""Seconds for a write under way to end where there are no leases."""


def _nothing(_done: int) -> None:
    """Take progress and show none."""


# ── putting away ─────────────────────────────────────────────────────────────────────────────


def archive(where: Place, wait: float, progress: Callable[[int], None] = _nothing) -> int:
    """Put a session away; return how many bytes its client's folder has less by that.

    `wait` is how many seconds to wait for the lock, and for a moment without a writer; `progress`
    is told how many bytes are compressed. A session that is away already is compressed further if
    that was interrupted. Raises InUseError if somebody uses it, RefusedError if it cannot be put
    away safely; then all is as it was. Raises StorageError as the system reports, also when the
    session is put away and only its compression failed; that it then says.
    """
    with locks.alone(where, wait), storage("put the session away"):
        recover.recover(where, wait, _nothing)
        note = archived_file.note(where)
        freed = 0
        if note is None or note.standing != "archived":
            freed, note = _put_away(where, wait)
        archive_moves.check_away(where)
        try:
            with storage("compress the session"):
                archive_files.pack(where, note, progress)
        except SessrotateError as error:
            raise StorageError(
                f"{error} The session is put away and nothing is lost: `archive` again "
                "compresses it."
            ) from error
    return freed


def _told(where: Place, standing: Standing, note: Note | None = None) -> Note:
    """Have the note of a session say where it stands, and otherwise what `note` does; return it."""
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    note = replace(note or Note(where.session, standing, at), standing=standing, at=at)
    archive_files.write_note(where, note)
    return note


def plan(where: Place) -> int:
    """Return how many bytes `archive` would take out of the client's folder; change nothing.

    Raises as it does.
    """
    with storage("look at the session"), state.opened(where) as found:
        note = archived_file.note(where)
        if note is not None and note.standing == "archived":
            archive_moves.check_away(where)
            return 0
        _, items = _checked(found)
        return sum(archive_moves.size(where.live.parent / name) for name in items)


def stored(where: Place) -> int:
    """Return how many bytes the files have that were put away of a session."""
    with storage("look at the session"):
        return archive_moves.size(archive_files.folder(where))


def _checked(found: State) -> tuple[Source, list[str]]:
    """Return the live file and the names of what is to be moved, the live file's last.

    Raises InUseError if somebody uses the session, RefusedError if it cannot be moved safely.
    """
    where, source = found.place, found.live
    transaction.check_finished(found)
    if source is None:
        raise RefusedError(
            f"{printable(str(where.live))} is gone: `restore` brings it back from its archive."
        )
    archive_moves.check_single(where)
    in_use.check_unused(where, source.identity(), or_live=False)
    items = companions.beside(where.live, where.session)
    archive_moves.check_movable(where, source, items)
    if os.path.lexists(where.live):  # or a crash came behind the last move
        items.append(where.live.name)
    return source, items


def _put_away(where: Place, wait: float) -> tuple[int, Note]:
    """Move all of a session that is still where its client looks.

    Returns how many bytes that are, and the note that says so.
    """
    with state.opened(where) as found:
        source, items = _checked(found)
        source.thaw()
        here = source.identity()
        freed = sum(archive_moves.size(where.live.parent / name) for name in items)
        try:
            fs.create_folder(where.archive)
            _told(where, "archiving")
            fs.create_folder(archive_files.folder(where))
            answer = _leased(source, wait)
            if source.identity() != here:
                raise _changed()
            for name in items:
                archive_moves.move(where.live.parent / name, archive_files.folder(where) / name)
            _check_left_alone(source, here, answer)
            return freed, _told(where, "archived")
        except BaseException:
            with suppress(OSError, DamagedError):
                archive_moves.bring_back(where)
            raise


def _leased(source: Source, wait: float) -> lease.Answer:
    """Take a lease on the live file: nobody has it open for writing, and nobody can."""
    answer = lease.within(wait, lease.read, source.fd)
    if answer == "busy":
        raise in_use.busy([*in_use.writers(source.identity())])
    return answer


def _check_left_alone(source: Source, before: FileIdentity, answer: lease.Answer) -> None:
    """Raise InUseError if somebody who came by the old name still writes to the live file."""
    if answer == "taken":
        lease.release(source.fd)
        time.sleep(_GRACE)
        if lease.read(source.fd) != "taken":
            raise _changed()
        lease.release(source.fd)
    else:
        time.sleep(_SETTLE)
    if source.identity() != before:
        raise _changed()


def _changed() -> InUseError:
    return InUseError("A client writes to the session: end it, then try again.")


# ── putting back ─────────────────────────────────────────────────────────────────────────────


def unarchive(
    where: Place,
    wait: float,
    progress: Callable[[int], None] = _nothing,
    *,
    touch: float | None = None,
) -> int:
    """Put a session back as it was; return how many bytes that are.

    With `touch`, seconds since 1970, its files count as changed then, and not when they were.
    What `archive` was interrupted in is undone. Raises RefusedError if it was not put away, or
    something else has one of its names by now: then nothing is changed. Raises DamagedError if
    it is not what it was, StorageError as the system reports.
    """
    with locks.alone(where, wait), storage("put the session back"):
        recover.recover(where, wait, _nothing)
        note = archived_file.note(where)
        if note is None:
            raise RefusedError(f"{printable(where.session)} is not put away.")
        archive_moves.check_free(where, note)
        archive_files.unpack(where, note, progress)
        size = archive_moves.size(archive_files.folder(where))
        if touch is not None:
            archive_files.date_all(where, int(touch * 1e9))
        if note.standing != "unarchiving":
            _told(where, "unarchiving")  # and nothing is compressed any more
        try:
            archive_moves.bring_back(where)
        except FileExistsError as error:
            name = printable(str(error.filename))
            raise InUseError(f"{name} appeared meanwhile: move it away, then try again.") from None
    return size


# ── which ────────────────────────────────────────────────────────────────────────────────────


def wanted(older_than: float | None, before_cleanup: float | None, now: float) -> list[Place]:
    """Return the sessions that are to be put away, those first whose archiving was interrupted.

    That is those whose last record is older than `older_than` seconds, and those that their
    client would delete within `before_cleanup` seconds from `now` (seconds since 1970). Sessions
    that a client runs, and files without a byte, are none of them.
    """
    begun = [where for where in place.archives() if _is_begun(where)]
    due = []
    for path in claude.sessions():
        where = place.of(path)
        if where is None or archived_file.away(where) is not None:
            continue
        if where not in begun and not any(in_use.clients(where)):
            with suppress(SessrotateError, OSError):
                if _is_due(where, older_than, before_cleanup, now):
                    due.append(where)
    return begun + due


def _is_begun(where: Place) -> bool:
    with suppress(SessrotateError):
        note = archived_file.note(where)
        return note is not None and note.standing == "archiving"
    return False


def _is_due(
    where: Place, older_than: float | None, before_cleanup: float | None, now: float
) -> bool:
    with Source(where.live) as source:
        identity = source.identity()
        if not identity.size:
            return False  # 2.0.x leaves one for each agent
        changed = identity.modified_ns / 1e9
        # All versions go by when the file was changed, whatever its records say.
        is_swept = (
            before_cleanup is not None and changed + claude.cleanup_period() <= now + before_cleanup
        )
        return is_swept or (older_than is not None and last_used(source) < now - older_than)


def last_used(source: Source) -> float:
    """Return when the last record of a session was written, in seconds since 1970.

    Where none is dated, that is when its file was changed.
    """
    last = units.seconds(dating.last(source, claude, Span(0, source.size())))
    return source.identity().modified_ns / 1e9 if last is None else last
