"""Moving an archive that no live file continues out of the way.

Rule: it is moved whole and never changed. If the operation fails, it is moved back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate import fs
from sessrotate.archive.place import ASIDE, FOLDER
from sessrotate.errors import storage

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.archive.place import Place


def put_aside(place: Place) -> Path | None:
    """Move an archive to where it is in nobody's way; return where, None if there is none."""
    if not place.archive.exists():
        return None
    folder = place.config / FOLDER / ASIDE / place.project
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
