"""Replaced live files that a client may still write to, each with a note of what is in it.

Where no lease proves that nobody writes to a replaced file, it waits, whole, in the folder
`waiting` of the archive, until it has been quiet for a day.

Rule: only reads, and only what has a number for its name. A file without a readable note is listed,
and is never changed or removed.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import names
from sessrotate.archive.intent import Batch, Mark  # noqa: TC001 - msgspec reads the annotations
from sessrotate.errors import DamagedError, storage
from sessrotate.model import Count  # noqa: TC001 - the same
from sessrotate.segments import load, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place

NOTE: Final = ".json"
"""The end of the name of a note."""

_LARGEST: Final = 4096


class Note(Struct, frozen=True):
    """What of a waiting file the live file has: the bytes of `mark`, from its beginning on.

    `since` is when it began to wait, and `modified` when it was last changed by then, in
    nanoseconds since 1970. `batch` are the bytes that are just being brought over, if any.
    """

    mark: Mark
    since: Count
    modified: Count
    batch: Batch | None = None


class Waiting(Struct, frozen=True):
    """A file that waits; `note` is None if there is none that can be read."""

    path: Path
    note: Note | None

    @property
    def size(self) -> int:
        """How many bytes it has now."""
        return self.path.lstat().st_size


def packs(where: Place) -> list[Waiting]:
    """Return the files of a session that wait, the oldest first.

    Raises DamagedError if the folder is a link, StorageError as the system reports.
    """
    folder = where.waiting
    with storage("look into the archive"):
        if not os.path.lexists(folder):
            return []
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise DamagedError(f"The {names.WAITING} of the archive is not a folder: move it away.")
        found = {path.name: path for path in folder.iterdir()}
        numbers = sorted(int(name) for name in found if name.isdecimal() and name.isascii())
        return list(_waiting(folder, numbers, found))


def _waiting(folder: Path, numbers: list[int], found: dict[str, Path]) -> Iterator[Waiting]:
    for number in numbers:
        path = found.get(str(number))
        if path is not None and stat.S_ISREG(path.lstat().st_mode):
            is_noted = f"{number}{NOTE}" in found
            data = load.read_small(folder, f"{number}{NOTE}", _LARGEST) if is_noted else b""
            yield Waiting(path, _parsed(data))


def _parsed(data: bytes) -> Note | None:
    note = one_line.parse(data, Note)
    is_ours = note is not None and (note.batch is None or note.batch.span.size >= 0)
    return note if is_ours else None


def free_name(where: Place) -> Path:
    """Return the name of the next file that is to wait."""
    number = 1
    while os.path.lexists(where.waiting / str(number)):
        number += 1
    return where.waiting / str(number)
