"""Replaced live files that a client may still write to; the record says what is in each.

Where no lease proves that nobody writes to a replaced file, it waits, whole, in the folder
`waiting` of the archive, until it has been quiet for a day.

Rule: only reads, and only what has a number for its name. A file that the record does not know is
listed, and is never changed or removed.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from msgspec import Struct

from sessrotate import names
from sessrotate.archive import record
from sessrotate.errors import DamagedError, storage

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.archive.record import Waiting


class Pack(Struct, frozen=True):
    """A file that waits; `told` is what the record says of it, None if that is nothing."""

    path: Path
    told: Waiting | None

    @property
    def size(self) -> int:
        """How many bytes it has now."""
        return self.path.lstat().st_size


def packs(where: Place) -> list[Pack]:
    """Return the files of a session that wait, the oldest first.

    Raises DamagedError if the folder is a link, StorageError as the system reports.
    """
    folder = where.waiting
    with storage("look into the archive"):
        if not os.path.lexists(folder):
            return []
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise DamagedError(f"The {names.WAITING} of the archive is not a folder: move it away.")
        told = {str(each.number): each for each in record.told(where.archive).waiting}
        files = [path for path in folder.iterdir() if stat.S_ISREG(path.lstat().st_mode)]
        numbered = [path for path in files if path.name.isdecimal() and path.name.isascii()]
        return [
            Pack(path, told.get(path.name))
            for path in sorted(numbered, key=lambda path: int(path.name))
        ]


def free_name(where: Place) -> Path:
    """Return the name of the next file that is to wait."""
    number = 1
    while os.path.lexists(where.waiting / str(number)):
        number += 1
    return where.waiting / str(number)
