"""What a full disk left plain of a session that was put away, and what compressing it takes.

Rule: only looks, and reads samples. Files are compressed one after the other where there is little
room, and each frees its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from sessrotate.archive import archived_file
from sessrotate.archive.place import Place
from sessrotate.archive.record import PutAway
from sessrotate.errors import SessrotateError
from sessrotate.in_place import gain
from sessrotate.in_place.gain import Forecast
from sessrotate.in_place.room import Need
from sessrotate.retention import archive_files, sizes

NEW: Final = 3
"""Blocks of what is new with an archived session: its folders, and the note in one of them."""


def of(where: Place) -> Forecast:
    """Return about what the disk gains if what an archiving left plain is compressed.

    A full disk stops it there. Nothing where nothing is left so.
    """
    with suppress(SessrotateError, OSError):
        note = archived_file.note(where)
        if note is not None and note.standing == "archived" and archive_files.is_due(where, note):
            expected = rest(where)
            if expected.gained > sum(_left(where, note).values()) // 20:  # else it cannot shrink
                return expected
    return Forecast()


def rest(where: Place) -> Forecast:
    """Return about what compressing what is left plain of an archived session gains and needs."""
    note = archived_file.note(where)
    if note is None:
        return Forecast()
    top = archive_files.folder(where)
    files = {top / file: size for file, size in _left(where, note).items()}
    after = sizes.compressed(files)
    gained = sum(files.values()) - sum(after.values())
    return Forecast(gained=gained, need=need((size, after[path]) for path, size in files.items()))


def need(each: Iterable[tuple[int, int]]) -> Need:
    """Return what has to be free to compress files one after the other: bytes before, and after."""
    most = gain.peak((gain.blocks(after), gain.blocks(before)) for before, after in each)
    return Need(most + NEW * gain.BLOCK, "the compressed session")


def _left(place: Place, note: PutAway) -> dict[str, int]:
    """Return the files of an archived session that are to be compressed, and their bytes."""
    there = archive_files.regular(place)
    if not note.compressed:
        is_wanted = archive_files.is_worth_it
        wanted = {file for file, status in there.items() if is_wanted(place, file, status)}
    else:
        wanted = {entry.file for entry in note.compressed if entry.digest is None}
    return {file: status.st_size for file, status in sorted(there.items()) if file in wanted}
