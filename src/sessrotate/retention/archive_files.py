"""The files of a session that is put away: compressed, and unpacked again.

Rule: a plain file stays until the note on the disk has the digest of the compressed one, which was
read back; a compressed one stays until the plain one is complete. Where both are there, the plain
one counts. Each has the other's mode, owner, attributes and times; the folders keep theirs.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final

from sessrotate import fs, names
from sessrotate.archive import archived_file, archived_note
from sessrotate.archive.archived_note import Note, Packed
from sessrotate.errors import DamagedError, StorageError, printable
from sessrotate.model import Span
from sessrotate.system import lease, zstd
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place

LEAST: Final = 64 * 1024
"""Bytes from which on a file beside the live file is compressed."""

BATCH: Final = 64 * 1024 * 1024
"""Bytes of plain files that are compressed before the note says so."""

_MOST: Final = 512
"""Files of a batch."""

_ZST: Final = names.CODEC_SUFFIX["zstd"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file below the folder `archived`: its path there, and what the system says of it."""

    file: str
    status: os.stat_result


def folder(place: Place) -> Path:
    """Return where a session's files are put away.

    Raises DamagedError if what is there is no folder, or a link to one.
    """
    path = place.archive / names.ARCHIVED
    if os.path.lexists(path) and not stat.S_ISDIR(path.lstat().st_mode):
        raise DamagedError(f"{printable(str(path))} is no folder: look at it, and move it away.")
    return path


def files(top: Path) -> Iterator[Entry]:
    """Yield all that is below a folder and is no folder; links are not followed."""
    for here, _, found in os.walk(top):
        for name in found:
            path = os.path.join(here, name)  # noqa: PTH118 - there may be very many
            with suppress(FileNotFoundError):
                yield Entry(os.path.relpath(path, top), os.lstat(path))


def write_note(place: Place, note: Note) -> None:
    """Put a note in the place of the one before."""
    fs.create_file_at_once(place.archive / names.ARCHIVED_NOTE, archived_note.dump(note))


# ── compressing ──────────────────────────────────────────────────────────────────────────────


def pack(place: Place, note: Note, progress: Callable[[int], None]) -> Note:
    """Compress what is worth it of a session that is put away; return its note from then on.

    The session's lock is held. `progress` is told how many bytes are done. Raises OSError as the
    system reports: what is not compressed then stays plain.
    """
    there = _regular(place)
    if not note.packed:
        note = _planned(place, note, there)
    done = 0
    pending = [entry for entry in note.packed if entry.file in there]
    while pending:
        batch = list(_batch(pending))
        pending = pending[len(batch) :]
        fresh: dict[str, Packed] = {}
        for entry in batch:
            packed = _compressed(place, entry)
            done += entry.size
            progress(done)
            if packed is not None:
                fresh[entry.file] = packed
        if fresh:
            note = replace(
                note, packed=tuple(fresh.get(entry.file, entry) for entry in note.packed)
            )
            write_note(place, note)
            _remove(folder(place), fresh)
    _set_times(place, note)
    return note


def _regular(place: Place) -> dict[str, os.stat_result]:
    """Return the regular files that are put away, by their paths."""
    return {
        entry.file: entry.status
        for entry in files(folder(place))
        if stat.S_ISREG(entry.status.st_mode)
    }


def _planned(place: Place, note: Note, there: dict[str, os.stat_result]) -> Note:
    """Write down what is to be compressed, and when the folders were changed before."""
    wanted = (
        Packed(file, status.st_size)
        for file, status in sorted(there.items())
        if _is_worth_it(place, file, status) and f"{file}{_ZST}" not in there
    )
    packed = tuple(islice(wanted, archived_note.MOST))
    if not packed:
        return note
    parents = sorted({os.path.dirname(entry.file) for entry in packed} - {""})  # noqa: PTH120 - text
    folders = tuple((path, (folder(place) / path).lstat().st_mtime_ns) for path in parents)
    note = replace(note, packed=packed, folders=folders)
    write_note(place, note)
    return note


def _is_worth_it(place: Place, file: str, status: os.stat_result) -> bool:
    least = 1 if file == place.live.name else LEAST
    return (
        file.endswith(names.SUFFIX)
        and status.st_nlink == 1
        and status.st_size >= least
        and os.access(folder(place) / file, os.R_OK)
    )


def _batch(pending: list[Packed]) -> Iterator[Packed]:
    size = 0
    for number, entry in enumerate(pending):
        size += entry.size
        if number and (size > BATCH or number == _MOST):
            return
        yield entry


def _compressed(place: Place, entry: Packed) -> Packed | None:
    """Write the compressed file, on the disk under its name after; None if it is of no use.

    That is: it would be no smaller, somebody writes to the plain one, or it cannot have its
    owner.
    """
    path, draft = folder(place) / entry.file, place.archive / names.ARCHIVED_DRAFT
    fs.remove_files(place.archive, [names.ARCHIVED_DRAFT])
    try:
        with Source(path) as source:
            answer = lease.read(source.fd)
            if answer == "busy":
                return None
            before = source.identity()
            with fs.Draft(draft) as file:
                packed = _filled(source, file, entry)
                is_smaller = file.size < packed.size
                file.become_like(source.fd)
                file.take_times(source.fd)
                file.sync()
                is_wanted = answer == "taken" and lease.is_wanted(source.fd)
                if not is_smaller or is_wanted or source.identity() != before:
                    return None
        fs.take_place(draft, path.with_name(path.name + _ZST))
    except PermissionError:
        return None
    finally:
        with suppress(OSError):  # a full disk needs the room
            fs.remove_files(place.archive, [names.ARCHIVED_DRAFT])
    return packed


def _filled(source: Source, draft: fs.Draft, entry: Packed) -> Packed:
    """Compress into a draft and read it back; return what it holds."""
    size = source.size()
    found, frame = Fingerprint(), zstd.compressor(size)
    for piece in source.pieces(Span(0, size)):
        found.update(piece)
        draft.append(frame.compress(piece))
    draft.append(frame.flush())
    draft.sync()
    packed = Packed(entry.file, size, found.digest)
    try:
        for _ in archived_file.verified(archived_file.unpacked(draft.fd, packed), packed):
            pass
    except DamagedError:
        name = printable(names.ARCHIVED_DRAFT)
        raise StorageError(f"{name} is not what was written to it: the disk fails.") from None
    return packed


def _remove(top: Path, paths: Iterable[str]) -> None:
    """Remove files below a folder."""
    for parent, group in groupby(sorted(top / path for path in paths), lambda path: path.parent):
        fs.remove_files(parent, [path.name for path in group])


def _set_times(place: Place, note: Note) -> None:
    """Give the folders the times they had before files in them were compressed or unpacked."""
    times = dict(note.folders)
    for here, _, _ in os.walk(folder(place)):
        path = os.path.relpath(here, folder(place))
        if path in times and os.lstat(here).st_mtime_ns != times[path]:
            fs.set_time(folder(place) / path, times[path])


# ── and unpacking ────────────────────────────────────────────────────────────────────────────


def unpack(place: Place, note: Note, progress: Callable[[int], None]) -> None:
    """Make all plain again, as it was. The session's lock is held.

    Raises DamagedError if a file is missing or not what it was, StorageError if there is no room.
    """
    there = set(_regular(place))
    pending = [
        entry for entry in note.packed if entry.file not in there and f"{entry.file}{_ZST}" in there
    ]
    if os.path.lexists(place.live):  # somebody moved it back
        there.add(place.live.name)
    lost = [entry for entry in note.packed if not {entry.file, f"{entry.file}{_ZST}"} & there]
    if lost:
        raise DamagedError(
            f"{printable(lost[0].file)} was put away, and is not in "
            f"{printable(str(folder(place)))} any more: put it back there; if it is lost, an empty "
            "file of that name lets the rest come back."
        )
    room, needed = fs.free_bytes(place.archive), sum(entry.size for entry in pending)
    if room is not None and room < needed:
        raise StorageError(
            f"The session needs {needed:,} bytes and {room:,} are free: nothing was changed."
        )
    done = 0
    for entry in pending:
        _unpacked(place, entry)
        done += entry.size
        progress(done)
    _remove(folder(place), _superfluous(note, there))
    _set_times(place, note)


def _superfluous(note: Note, there: set[str]) -> list[str]:
    return [f"{entry.file}{_ZST}" for entry in note.packed if f"{entry.file}{_ZST}" in there]


def _unpacked(place: Place, entry: Packed) -> None:
    path, draft = folder(place) / entry.file, place.archive / names.ARCHIVED_DRAFT
    fs.remove_files(place.archive, [names.ARCHIVED_DRAFT])
    try:
        with Source(path.with_name(path.name + _ZST)) as source, fs.Draft(draft) as file:
            for piece in archived_file.verified(archived_file.unpacked(source.fd, entry), entry):
                file.append(piece)
            file.become_like(source.fd)
            file.take_times(source.fd)
            file.sync()
        fs.take_place(draft, path)
    except BaseException:
        with suppress(OSError):  # a full disk needs the room
            fs.remove_files(place.archive, [names.ARCHIVED_DRAFT])
        raise


def date_all(place: Place, modified_ns: int) -> None:
    """Say of all files when they were changed last, in nanoseconds since 1970."""
    for file in _regular(place):
        fs.set_time(folder(place) / file, modified_ns)
