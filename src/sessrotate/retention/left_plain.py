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
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.archive.record import PutAway

NEW: Final = 3
"""Blocks of what is new with an archived session: its folders, and the note in one of them."""


_SAMPLED: Final = 8
"""Files of a session that are sampled at most, the largest."""

_LARGE: Final = 1024 * 1024
"""Bytes of a file from which on it may be one of them; one always is."""


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
    after = compressed(files)
    gained = sum(files.values()) - sum(after.values())
    return Forecast(gained=gained, need=need((size, after[path]) for path, size in files.items()))


def compressed(files: Mapping[Path, int]) -> dict[Path, int]:
    """Return about how many bytes each file has compressed, given those that it has.

    The largest are sampled, and the others shrink like those together.
    """
    largest = sorted(files, key=lambda path: -files[path])[:_SAMPLED]
    sampled = {}
    for number, path in enumerate(largest):
        if number and files[path] < _LARGE:
            break
        sampled[path] = files[path]  # one that cannot be read stays as it is
        with suppress(SessrotateError, OSError), Source.itself(path) as source:
            made = gain.estimated(source, [Span(0, source.size())])
            sampled[path] = min(files[path], made)
    share = sum(sampled.values()) / max(1, sum(files[path] for path in sampled))
    return {path: sampled.get(path, round(share * size)) for path, size in files.items()}


def need(sizes: Iterable[tuple[int, int]]) -> Need:
    """Return what has to be free to compress files one after the other: bytes before, and after."""
    most = gain.peak((gain.blocks(after), gain.blocks(before)) for before, after in sizes)
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
