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

    A full disk, or a writer, stops it there. Nothing where nothing is left so.
    """
    with suppress(SessrotateError, OSError):
        note = archived_file.note(where)
        if note is not None and note.standing == "archived" and archive_files.is_due(where, note):
            expected = rest(where, note)
            if expected.gained > 0:
                return expected
    return Forecast()


def rest(where: Place, note: PutAway) -> Forecast:
    """Return about what compressing the plain files of an archived session gains and needs."""
    top = archive_files.folder(where)
    files = {top / file: size for file, size in archive_files.to_compress(where, note).items()}
    after = sizes.compressed(files)
    gained = sum(files.values()) - sum(after.values())
    return Forecast(gained=gained, need=need((size, after[path]) for path, size in files.items()))


def need(each: Iterable[tuple[int, int]]) -> Need:
    """Return what has to be free to compress files one after the other: bytes before, and after."""
    most = gain.peak((gain.blocks(after), gain.blocks(before)) for before, after in each)
    return Need(most + NEW * gain.BLOCK, "the compressed session")
