"""Replaced live files that a client may still write to, each with a note of what is in it.

Where no lease proves that nobody writes to a replaced file, it waits, whole, in the folder
`waiting` of the archive, until it has been quiet for a day.

Rule: only reads, and only what has a number for its name. A file without a readable note is listed,
and is never changed or removed.
"""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from sessrotate import names
from sessrotate.archive.intent import Batch, Mark
from sessrotate.errors import DamagedError, storage
from sessrotate.model import Span
from sessrotate.segments import load
from sessrotate.segments.header import is_count
from sessrotate.system.digest import is_digest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place

FORMAT: Final = 1

NOTE: Final = ".json"
"""The end of the name of a note."""

_LARGEST: Final = 4096


class Note(Struct, frozen=True):
    """What of a waiting file the live file has: the bytes of `mark`, from its beginning on.

    `since` is when it began to wait, and `modified` when it was last changed by then, in
    nanoseconds since 1970. `batch` are the bytes that are just being brought over, if any.
    """

    mark: Mark
    since: int
    modified: int
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
            yield Waiting(path, parse(data))


def free_name(where: Place) -> Path:
    """Return the name of the next file that is to wait."""
    number = 1
    while os.path.lexists(where.waiting / str(number)):
        number += 1
    return where.waiting / str(number)


def dump(note: Note) -> bytes:
    """Return the note as the bytes of its file."""
    batch = note.batch
    fields = {
        "format": FORMAT,
        "bytes": note.mark.size,
        "digest": note.mark.digest,
        "since": note.since,
        "modified": note.modified,
        "batch": batch and {"start": batch.span.start, "end": batch.span.end, "floor": batch.floor},
    }
    return json.dumps(fields).encode() + b"\n"


def parse(data: bytes) -> Note | None:
    """Return the note that these bytes are; None if they are none of ours."""
    try:
        found: Any = json.loads(data)
        batch = found["batch"]
        span = None if batch is None else Span(batch["start"], batch["end"])
        note = Note(
            Mark(found["bytes"], found["digest"]),
            found["since"],
            found["modified"],
            None if span is None else Batch(span, batch["floor"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    numbers = [note.mark.size, note.since, note.modified]
    if note.batch is not None:
        numbers += [note.batch.span.start, note.batch.span.size, note.batch.floor]
    is_ours = all(map(is_count, numbers)) and is_digest(note.mark.digest)
    return note if is_ours and dump(note) == data else None
