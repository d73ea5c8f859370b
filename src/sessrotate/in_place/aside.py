"""Moving out of the way what no live file goes on from, whole and unchanged.

Rule: it is moved whole and never changed. If the operation fails, it is moved back. A single file
is one that two programs wrote at the same moment: `doctor` names it until a person removes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate import fs, names
from sessrotate.archive.place import ASIDE, FOLDER
from sessrotate.errors import storage

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.archive.place import Place


def put_aside(place: Place) -> Path | None:
    """Move an archive to where it is in nobody's way; return where, None if there is none."""
    if not place.archive.exists():
        return None
    folder = _folder(place)
    number = 1
    while (folder / f"{place.session}.{number}").exists():
        number += 1
    with storage("put the archive aside"):
        fs.move_folder(place.archive, folder / f"{place.session}.{number}")
    return folder / f"{place.session}.{number}"


def put_back(place: Place, folder: Path) -> None:
    """Undo `put_aside`, unless a new archive has begun."""
    if not place.archive.exists():
        with storage("put the archive back"):
            fs.move_folder(folder, place.archive)


def keep(place: Place, path: Path) -> Path:
    """Give a file a name where it stays until a person removes it; return that name.

    A file that has one already, because a crash came right after, gets no other.
    """
    folder, is_it, number = _folder(place), fs.same_as(path.lstat()), 1
    fs.create_folder(folder)
    while not is_it(kept := folder / f"{place.session}.{number}{names.SUFFIX}"):
        try:
            fs.add_name(path, kept)
        except FileExistsError:
            number += 1
    return kept


def _folder(place: Place) -> Path:
    return place.config / FOLDER / ASIDE / place.project
