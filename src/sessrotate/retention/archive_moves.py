"""The files of a session on their way out of their client's folder and back, one after the other.

Rule: each is moved within one file system, so that it keeps all it has, and never over anything.
Names are taken from what the folders hold: no other is ever moved. The live file is the last to
leave and the first to come back: clients clean up what belongs to none (2.1.330).
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from sessrotate import fs, names
from sessrotate.archive import archived_file
from sessrotate.clients.claude import companions
from sessrotate.errors import DamagedError, RefusedError, printable
from sessrotate.in_place.obstacles import obstacles
from sessrotate.retention import archive_files

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.archive.archived_note import Note
    from sessrotate.archive.place import Place
    from sessrotate.system.source import Source

_ZST: Final = names.CODEC_SUFFIX["zstd"]


def check_single(where: Place) -> None:
    """Raise RefusedError if a client began another live file while the session was away."""
    if archived_file.is_doubled(where):
        raise RefusedError(doubled(where))


def check_away(where: Place) -> None:
    """Raise an error if a session whose note says so is not away, or not it alone."""
    archive_files.folder(where)
    check_single(where)
    if archived_file.away(where) is None:
        if not os.path.lexists(where.live):
            raise DamagedError(lost(where))
        raise RefusedError(
            f"Somebody moved {printable(str(where.live))} back: `unarchive` brings back what else "
            "was put away."
        )


def doubled(where: Place) -> str:
    """Return what is to be said when there is a live file besides the one put away."""
    return (
        f"{printable(str(where.live))} appeared while its session was put away: move it to another "
        "name, then `unarchive` brings the session back, and its lines can be appended."
    )


def check_movable(where: Place, source: Source, items: list[str]) -> None:
    """Raise RefusedError if the session cannot be moved, and moved back, safely."""
    away = archived_file.away(where)
    reasons = [*obstacles(where, source, int(away is not None and os.path.lexists(where.live)))]
    for name in items:
        path, away = where.live.parent / name, archive_files.folder(where) / name
        status = path.lstat()
        if path.is_symlink():
            reasons.append(f"{printable(str(path))} is a symbolic link: put the folder there.")
        elif status.st_dev != os.fstat(source.fd).st_dev:
            reasons.append(f"{printable(str(path))} is on another file system than its session.")
        elif hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            reasons.append(f"{printable(str(path))} belongs to another user: run this as that one.")
        elif os.path.lexists(away) and not os.path.samestat(status, away.lstat()):
            reasons.append(
                f"{printable(str(path))} is there, and was put away before: {printable(str(away))}."
                " Make one of the two."
            )
    strangers = _names(archive_files.folder(where)) if archived_file.note(where) is None else []
    if strangers:
        folder = printable(str(archive_files.folder(where)))
        reasons.append(f"{folder} holds {printable(strangers[0])}, which nobody put away.")
    if reasons:
        raise RefusedError(" ".join(reasons))


def move(path: Path, to: Path) -> None:
    """Move a file or folder to a name that nothing has; a crash may have left both names.

    Raises FileExistsError if something else has the name.
    """
    if os.path.lexists(to) and not os.path.samestat(path.lstat(), to.lstat()):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(to))
    if path.is_dir():
        fs.move_folder(path, to)
        return
    if not os.path.lexists(to):
        fs.add_name(path, to)  # a rename would replace what has just come there
    fs.remove_files(path.parent, [path.name])


def size(path: Path) -> int:
    """Return how many bytes a file has, or the files of a folder together; 0 if it is not there."""
    if not os.path.lexists(path):
        return 0
    if path.is_dir():
        return sum(entry.status.st_size for entry in archive_files.files(path))
    return path.lstat().st_size


def check_free(where: Place, note: Note) -> None:
    """Raise RefusedError if a name that is to come back is not free, or the live file is lost."""
    taken = []
    for name in _ours(where, note):
        path, away = where.live.parent / name, archive_files.folder(where) / name
        if os.path.lexists(path) and not (
            os.path.lexists(away) and os.path.samestat(path.lstat(), away.lstat())
        ):
            taken.append(path)
    if where.live in taken:
        raise RefusedError(doubled(where))
    if taken:
        raise RefusedError(
            f"{printable(str(taken[0]))} is there already: move it to another name, then try again."
        )
    if archived_file.away(where) is None and not os.path.lexists(where.live):
        raise DamagedError(lost(where))


def lost(where: Place) -> str:
    """Return what is to be said when the live file is nowhere any more."""
    return (
        f"{printable(where.live.name)} was put away, and is not in "
        f"{printable(str(where.archive / names.ARCHIVED))} any more: put it back there."
    )


def _ours(where: Place, note: Note | None = None) -> list[str]:
    """Return the names of what was put away, the live file first; other names are not ours."""
    packed = {f"{entry.file}{_ZST}" for entry in note.packed} if note is not None else set()
    away = _names(archive_files.folder(where))
    there = [name.removesuffix(_ZST) if name in packed else name for name in away]
    side = [name for name in there if name == where.session or companions.is_agent(name)]
    live = [where.live.name] if where.live.name in there else []
    return [*live, *dict.fromkeys(side)]


def bring_back(where: Place) -> None:
    """Move all that was put away back; the note goes last."""
    for name in _ours(where):
        fs.create_folder(where.live.parent)
        move(archive_files.folder(where) / name, where.live.parent / name)
    fs.remove_folder(archive_files.folder(where))
    fs.remove_files(where.archive, [f"{names.ARCHIVED_NOTE}{names.PARTIAL}"])
    fs.remove_files(where.archive, [names.ARCHIVED_NOTE])
    fs.remove_folder(where.archive)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []
