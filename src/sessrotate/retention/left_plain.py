"""What a full disk left plain of a session that was put away, and what compressing it takes.

Rule: only looks, and reads samples. Files are compressed one after the other where there is little
room, and each frees its own.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sessrotate.archive import archived_file
from sessrotate.errors import SessrotateError
from sessrotate.in_place import gain
from sessrotate.in_place.gain import Forecast
from sessrotate.in_place.room import Need
from sessrotate.model import Span
from sessrotate.retention import archive_files
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessrotate.archive.archived_note import Note
    from sessrotate.archive.place import Place

NEW: Final = 3
"""Blocks of what is new with an archived session: its folders, and the note in one of them."""


def of(where: Place) -> Forecast:
    """Return about what the disk gains if what an archiving left plain is compressed.

    A full disk stops it there. Nothing where nothing is left so.
    """
    with suppress(SessrotateError, OSError):
        note = archived_file.note(where)
        if note is not None and note.standing == "archived" and archive_files.is_due(where, note):
            size = (archive_files.folder(where) / where.live.name).stat().st_size
            expected = rest(where)
            if expected.gained > size // 20:  # what cannot be made smaller stays
                return expected
    return Forecast()


def rest(where: Place) -> Forecast:
    """Return about what compressing what is left plain of an archived session gains and needs."""
    from sessrotate.segments import estimate  # noqa: PLC0415 - zstd, wanted only here

    note = archived_file.note(where)
    files = {} if note is None else _left(where, note)
    if not files:
        return Forecast()
    largest = max(files, key=lambda file: files[file])
    with Source.inside(archive_files.folder(where), largest) as source:
        share = estimate.compressed(source, [Span(0, source.size())]) / max(1, source.size())
    total = sum(files.values())
    return Forecast(gained=total - round(share * total), need=need(files.values(), share))


def need(sizes: Iterable[int], share: float) -> Need:
    """Return what has to be free to compress files one after the other to that share of them."""
    most = gain.peak((gain.blocks(round(share * each)), gain.blocks(each)) for each in sizes)
    return Need(most + NEW * gain.BLOCK, "the compressed session")


def _left(place: Place, note: Note) -> dict[str, int]:
    """Return the files of an archived session that are to be compressed, and their bytes."""
    there = archive_files.regular(place)
    if not note.compressed:
        is_wanted = archive_files.is_worth_it
        wanted = {file for file, status in there.items() if is_wanted(place, file, status)}
    else:
        wanted = {entry.file for entry in note.compressed if entry.digest is None}
    return {file: status.st_size for file, status in sorted(there.items()) if file in wanted}
