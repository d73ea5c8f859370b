"""Putting a session back in its client's folder, as it was.

Rule: each file is moved within one file system, so that it keeps everything it has, and never over
another. Only names that the folders themselves list are moved. The live file comes back first:
clients clean up files that belong to no live file (2.1.330).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

from msgspec import Struct

from sessrotate import fs, names
from sessrotate.archive import away_file
from sessrotate.archive.place import Place
from sessrotate.archive.record import PutAway
from sessrotate.clients.common import listed, names_in
from sessrotate.errors import InUseError, RefusedError, printable, storage
from sessrotate.in_place import aside, recover, swap, waiting
from sessrotate.in_place.obstacles import read_only
from sessrotate.retention import away_files
from sessrotate.system import locks


def bring_back(
    where: Place,
    wait: float,
    progress: Callable[[int], None] = lambda _done: None,
    *,
    touch: float | None = None,
) -> int:
    """Put a session back as it was; return how many bytes that is.

    `wait` is how many seconds to wait for the lock. With `touch`, seconds since 1970, its files
    get that as the time of their last change. Undoes a `put_away` that was interrupted. Raises
    InUseError if the session is not put away, as after another command brought it back;
    RefusedError if another file has one of its names: then nothing is changed. Raises DamagedError
    if its files have changed, StorageError as the system reports.
    """
    with locks.alone(where, wait), storage("put the session back"):
        recover.recover(where, wait)
        note = away_file.note(where)
        if note is None:
            name = printable(where.session)
            raise InUseError(f"{name} is not put away any more: it was brought back meanwhile.")
        _check_free(where)
        away_files.decompress(where, progress)
        size = away_files.size(away_files.folder(where)) + _here(where, note)
        if touch is not None:
            away_files.date_all(where, int(touch * 1e9))
        if note.standing != "unarchiving":
            away_files.write_standing(where, "unarchiving")
        try:
            move_back(where)
        except FileExistsError as error:
            name = printable(str(error.filename))
            raise InUseError(f"{name} has just appeared: move it away, then try again.") from None
        waiting.settle(where)  # what came to replaced files meanwhile had no live file to go to
    return size


class Away(Struct, frozen=True):
    """What was put away of a session, in bytes: all of it, and what of that is compressed.

    `packed` is what the compressed files take, and `unpacked` what they hold, for which there has
    to be room before they go.
    """

    size: int
    packed: int = 0
    unpacked: int = 0


def plan(where: Place) -> Away | None:
    """Return what `bring_back` would put back, None if the session was not put away.

    Changes nothing. Raises as it does.
    """
    with storage("look at the session"):
        note = away_file.note(where)
        if note is None:
            return None
        _check_free(where)
        every = away_files.files(away_files.folder(where))
        sizes = {file: status.st_size for file, status in every}
        found = away_files.packed(where)
        others = sizes.keys() - {f"{file}{names.PACKED}" for file in found}
        pending = found.keys() - sizes.keys()
        unpacked = sum(found[file] for file in pending)
        packed = sum(sizes[f"{file}{names.PACKED}"] for file in pending)
        plain = sum(sizes[file] for file in others)
        return Away(plain + unpacked + _here(where, note), packed, unpacked)


def _here(where: Place, note: PutAway) -> int:
    """Return how many bytes of what is put back an interrupted run had left, or put, in place."""
    if note.standing == "archived":
        return 0
    beside = where.client.beside.beside(where.live, where.session)
    paths = [where.live, *(where.live.parent / name for name in beside)]
    return sum(away_files.sizes(paths).values())


def move_back(where: Place, *, keeps: bool = False) -> Path | None:
    """Move everything that was put away back; the note goes last.

    Raises FileExistsError if something has one of the names. With `keeps`, the live file put away
    is kept aside if that is its name; returns where.
    """
    if away_file.note(where) is not None:  # no compressed file goes back
        away_files.decompress(where, lambda _done: None)
    kept = None
    for name in _ours(where):
        away, back = away_files.folder(where) / name, where.live.parent / name
        fs.create_folder(where.live.parent)
        if fs.same_as(away.lstat())(back):
            fs.remove_files(away.parent, [name])  # a power loss kept both names
            continue
        _make_way(away, back)
        try:
            fs.put(away, back)
        except FileExistsError:
            if not keeps or back != where.live:
                raise
            kept = aside.keep(where, away)
            fs.remove_files(away.parent, [name])
    fs.remove_folder(away_files.folder(where))
    fs.remove_files(where.archive, [f"{names.RECORD}{names.PARTIAL}"])
    swap.change_record(where, away=None)
    fs.remove_folder(where.archive)
    return kept


def _make_way(away: Path, back: Path) -> None:
    """Put what a file manager left where a folder comes back to into that folder, and go with it.

    It may be in the middle of that: a crash leaves the rest for the next run.
    """
    if not _is_left(away, back):
        return
    modified_ns = away.lstat().st_mtime_ns
    for name in names_in(back):
        numbered = (away / (f"{name}.{number}" if number else name) for number in count())
        fs.put(back / name, next(path for path in numbered if not os.path.lexists(path)))
    fs.set_time(away, modified_ns)
    fs.remove_folder(back)


def _is_left(away: Path, back: Path) -> bool:
    """Tell whether a folder is in another's way that has nothing but what a file manager left."""
    return all(path.is_dir() and not path.is_symlink() for path in (away, back)) and all(
        names.is_hidden(path.name) and not path.is_dir() for path in listed(back)
    )


def listing(folder: Path) -> list[str]:
    """Return the sorted names in a folder; none if it does not exist. Hidden files do not count."""
    found = (path.name for path in folder.iterdir()) if folder.exists() else ()
    return sorted(name for name in found if not names.is_hidden(name))


def _check_free(where: Place) -> None:
    """Raise RefusedError if a name is not free, DamagedError if the live file is lost."""
    taken = []
    for name in dict.fromkeys(name.removesuffix(names.PACKED) for name in _ours(where)):
        path, away = where.live.parent / name, away_files.folder(where) / name
        if os.path.lexists(path) and not (
            os.path.lexists(away) and os.path.samestat(path.lstat(), away.lstat())
        ):
            taken += [] if _is_left(away, path) else [path]
    if where.live in taken:
        raise away_file.doubled(where)
    if taken:
        raise RefusedError(f"{printable(str(taken[0]))} already exists: rename it, then try again.")
    if away_file.away(where) is None and not os.path.lexists(where.live):
        raise away_file.lost(where)
    if reason := read_only(where.live.parent):
        raise RefusedError(reason)


def _ours(where: Place) -> list[str]:
    """Return the names of what was put away, the live file first; other names are not ours.

    They are those that are there: a file may be compressed.
    """

    def is_ours(name: str) -> bool:
        plain = name.removesuffix(names.PACKED)
        return plain in {where.live.name, where.session} or where.client.beside.is_agent(plain)

    found = filter(is_ours, listing(away_files.folder(where)))
    return sorted(found, key=lambda name: not name.startswith(where.live.name))
