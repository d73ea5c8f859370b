"""The archive of a session that is whole again goes to the trash, and comes back from there.

Rule: the archive moves whole, by one rename, and only if the live file holds all of it. A program
that had read the short live file may write it back at any time: until the grace time of the trash
is over, `bring_back` makes the archive what it was.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sessrotate import fs, names
from sessrotate.archive import clock_record, restored, state
from sessrotate.errors import DamagedError, SessrotateError, printable, storage
from sessrotate.in_place.aside import put_aside
from sessrotate.system import locks
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.archive.state import State
    from sessrotate.model import SealedSegment
    from sessrotate.segments.manifest import Manifest

_TAKEN: Final = {errno.EEXIST, errno.ENOTEMPTY}
"""What a rename of a folder ends with if another folder has the name."""


def check(found: State) -> None:
    """Raise DamagedError, and put the archive aside, unless the live file holds all of it.

    If its client trimmed that since, what was kept of it does.
    """
    wanted = () if found.intent is None else found.intent.manifest.segments
    if wanted and not _is_held(found, wanted):
        name, aside = printable(str(found.place.live)), put_aside(found.place)
        raise DamagedError(
            f"{name} is not the history that was put there: its archive is kept in "
            f"{printable(str(aside))}."
        )


def _is_held(found: State, wanted: Sequence[SealedSegment]) -> bool:
    if found.live is not None and restored.holds(found.live, wanted):
        return True
    for path in found.kept:
        with suppress(SessrotateError, OSError), Source.inside(path.parent, path.name) as kept:
            if restored.holds(kept, wanted):
                return True
    return False


def retire(found: State) -> None:
    """Move the archive of a restored session to the trash; its intent goes last.

    A live file that has its header again goes on from the archive, which stays then.
    """
    where = found.place
    if found.header is None:
        check(found)
        restored.check_own(where)
        at = datetime.fromtimestamp(clock_record.stamp(), UTC)
        told = _told(at)
        mark(where, told)  # nothing may rotate it again before its owner says so, so this is first
        fs.create_file_at_once(
            where.archive / names.RESTORED_NOTE, restored.note(where.session, where.project, told)
        )
        folder = _moved(where, at)
    else:
        folder = where.archive
    fs.remove_files(folder, [names.INTENT])


def _moved(where: Place, at: datetime) -> Path:
    """Move the archive to a name of its own in the trash, and return that."""
    more = 0
    while True:
        # Of a clock that was set back the same time is noted twice (`clock_record.stamp`).
        folder = where.trash / f"{at:%Y%m%dT%H%M%S}.{at.microsecond + more:06d}Z"
        try:
            fs.move_folder(where.archive, folder)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            more += 1
        else:
            return folder


def bring_back(where: Place, wait: float) -> Manifest | None:
    """Make the archive in the trash that the live file goes on from its archive again.

    Returns its manifest, None if the live file goes on from none in the trash. `wait` is how many
    seconds to wait for the session's lock. Raises InUseError if it stays taken.
    """
    with locks.alone(where, wait), storage("bring the archive back"):
        with state.opened(where) as found:
            trashed = found.trashed
        if trashed is None:
            return None
        fs.remove_files(trashed.folder, [names.INTENT])  # of a crash before it went
        fs.move_folder(trashed.folder, where.archive)
        fs.remove_files(where.archive, [names.RESTORED_NOTE])
        fs.remove_folder(where.trash)
        forget(where)
        with state.opened(where) as found:
            return found.manifest


def mark(where: Place, at: str = "") -> None:
    """Note that its owner restored a session (`at`, by default now): nothing changes it by itself.

    Until `forget`.
    """
    fs.create_folder(where.restored.parent)
    fs.create_file_at_once(where.restored, (at or _told(datetime.now(UTC))).encode() + b"\n")


def _told(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def forget(where: Place) -> None:
    """Let a session be rotated and put away by itself again."""
    if restored.is_marked(where):
        fs.remove_files(where.restored.parent, [where.restored.name])
