"""The files of an archived session: compressed, and decompressed again.

Rule: the order is that of `fs.replacing`, and the record is the note. A plain file stays until the
note has the digest of the compressed one, which was read back; a compressed one stays until all
are plain. Where both exist, the plain one counts. Each keeps the other's mode, owner, attributes
and times, and the folders keep theirs.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import fs, names, units
from sessrotate.archive import archived_file
from sessrotate.archive.place import Place
from sessrotate.archive.record import MOST, CompressedFile, PutAway, Step
from sessrotate.errors import DamagedError, SessrotateError, StorageError, printable
from sessrotate.fs import replacing
from sessrotate.fs.replacing import Replacement
from sessrotate.in_place import room, swap, waiting
from sessrotate.in_place.room import Need
from sessrotate.model import Span
from sessrotate.system import lease, zstd
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source

LEAST: Final = 64 * 1024
"""Bytes from which on a file beside the live file is compressed."""

_PLENTY: Final = 4 * replacing.BATCH

UNPACKED: Final = "what is unpacked"
"""What restoring it needs room for."""

_ZST: Final = names.CODEC_SUFFIX["zstd"]


class Entry(Struct, frozen=True):
    """A file below a folder: its path there, and what the system says of it."""

    file: str
    status: os.stat_result


def folder(place: Place) -> Path:
    """Return where the files of an archived session are.

    Raises DamagedError if that is not a folder, or a link to one.
    """
    path = place.archive / names.ARCHIVED
    if os.path.lexists(path) and not stat.S_ISDIR(path.lstat().st_mode):
        raise DamagedError(f"{printable(str(path))} is not a folder: move it away.")
    return path


def files(top: Path) -> Iterator[Entry]:
    """Yield everything below a folder that is not a folder; links are not followed."""
    for here, _, found in os.walk(top):
        for name in found:
            path = os.path.join(here, name)  # noqa: PTH118 - there may be very many
            with suppress(FileNotFoundError):
                yield Entry(os.path.relpath(path, top), os.lstat(path))


def size(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder; 0 if there is nothing."""
    return sum(sizes([path]).values())


def sizes(paths: Iterable[Path]) -> dict[Path, int]:
    """Return the bytes of each file, those below folders too; nothing of what is not there."""
    found: dict[Path, int] = {}
    for path in paths:
        if path.is_dir():
            found |= {path / entry.file: entry.status.st_size for entry in files(path)}
        elif os.path.lexists(path):
            found[path] = path.lstat().st_size
    return found


def write_standing(place: Place, standing: Step, used: str | None = None) -> PutAway:
    """Record where the session stands, and that nothing is compressed; return that.

    `used` is the time of its last record.
    """
    note = PutAway(standing, units.written(time.time()), used=(used or "")[:64])
    swap.change_record(place, away=note)
    return note


def date_all(place: Place, modified_ns: int) -> None:
    """Set when all files were changed last, in nanoseconds since 1970."""
    for file in regular(place):
        fs.set_time(folder(place) / file, modified_ns)


def regular(place: Place) -> dict[str, os.stat_result]:
    """Return the regular files of an archived session, by their paths."""
    return {
        entry.file: entry.status
        for entry in files(folder(place))
        if stat.S_ISREG(entry.status.st_mode)
    }


# ── compressing ──────────────────────────────────────────────────────────────────────────────


def compress(place: Place, note: PutAway, progress: Callable[[int], None]) -> None:
    """Compress the files of an archived session that are worth it.

    The caller holds the session's lock; `progress` is given how many bytes are done. Raises
    OSError as the system reports; files that are not compressed by then stay plain.
    """
    there, since_ns = regular(place), _since(note)
    if not note.compressed:
        note = _planned(place, note, there)
    done = 0
    useless = set[str]()

    def write(entry: CompressedFile, draft: fs.Draft) -> CompressedFile | None:
        nonlocal done
        compressed = _compressed(folder(place), entry, since_ns, draft)
        if compressed is None and draft.size >= entry.size:
            useless.add(entry.file)
        done += entry.size
        progress(done)
        return compressed

    def record(fresh: list[CompressedFile]) -> None:
        nonlocal note
        known = {entry.file: entry for entry in fresh}
        compressed = tuple(known.get(entry.file, entry) for entry in note.compressed)
        note = replace(note, compressed=compressed)
        swap.change_record(place, away=note)

    pending = [entry for entry in note.compressed if entry.file in there]
    free = fs.free_bytes(place.archive)
    # On a disk that is almost full one after the other, so that its room is free for the next.
    limit = replacing.BATCH if free is None or free > _PLENTY else 0
    for batch in replacing.batches(pending, lambda entry: entry.size, limit):
        made = [
            _replacement(place, number, f"{entry.file}{_ZST}", partial(write, entry), entry.file)
            for number, entry in enumerate(batch)
        ]
        replacing.replace_files(made, record)
    if useless:  # else each call would try them again, and need room for that
        compressed = tuple(entry for entry in note.compressed if entry.file not in useless)
        swap.change_record(place, away=replace(note, compressed=compressed))
    _set_times(place, note)


def _replacement(
    place: Place,
    number: int,
    file: str,
    write: Callable[[fs.Draft], CompressedFile | None],
    old: str | None = None,
) -> Replacement[CompressedFile]:
    """Return a file to be made; its draft stays out of the folder that goes back as a whole."""
    draft = place.archive / f"{names.ARCHIVED}.{number}{names.PARTIAL}"
    top = folder(place)
    return Replacement(draft, top / file, write, None if old is None else top / old)


def is_due(place: Place, note: PutAway) -> bool:
    """Tell whether a file of an archived session was left plain, and need not be any more.

    A lease proves that nobody writes to it; where there are none, it must be quiet for a day.
    """
    left = [entry.file for entry in note.compressed if entry.digest is None]
    if not note.compressed:  # even that had no room
        left = [place.live.name]
    for file in left:
        with suppress(SessrotateError, OSError), Source.inside(folder(place), file) as source:
            if source.size() >= LEAST and _asked(source, _since(note)) != "busy":
                return True
    return False


def _asked(source: Source, since_ns: int) -> lease.Answer:
    """Take a lease on a file; busy where there are none, and it has not been quiet for a day.

    Whoever has a file open writes to that very file, wherever it was moved. Closing it lets go.
    """
    answer = lease.read(source.fd)
    is_quiet = answer != "none" or waiting.is_over(source.identity(), since_ns)
    return answer if is_quiet else "busy"


def _since(note: PutAway) -> int:
    """Return when a session was archived, in nanoseconds since 1970; never, if that is no time."""
    try:
        return int(datetime.fromisoformat(note.at).timestamp() * 1e9)
    except (ValueError, OverflowError):
        return 1 << 62  # never


def _planned(place: Place, note: PutAway, there: dict[str, os.stat_result]) -> PutAway:
    """Note what will be compressed, and when its folders were changed before; return the note."""
    wanted = (
        CompressedFile(file, status.st_size)
        for file, status in sorted(there.items())
        if is_worth_it(place, file, status) and f"{file}{_ZST}" not in there
    )
    compressed = tuple(islice(wanted, MOST))
    if not compressed:
        return note
    parents = sorted({os.path.dirname(entry.file) for entry in compressed} - {""})  # noqa: PTH120 - text
    folders = tuple((path, (folder(place) / path).lstat().st_mtime_ns) for path in parents)
    note = replace(note, compressed=compressed, folders=folders)
    swap.change_record(place, away=note)
    return note


def is_worth_it(place: Place, file: str, status: os.stat_result) -> bool:
    """Tell whether a file of an archived session is to be compressed."""
    least = 1 if file == place.live.name else LEAST
    return (
        not file.endswith(_ZST)
        and status.st_nlink == 1
        and status.st_size >= least
        and os.access(folder(place) / file, os.R_OK)
    )


def _compressed(
    top: Path, entry: CompressedFile, since_ns: int, draft: fs.Draft
) -> CompressedFile | None:
    """Compress a file into a draft, read that back, and return what it holds.

    None if it is of no use: it would not be smaller, somebody writes to the plain file or may do
    so, or it cannot have the plain file's owner, or must not be opened.
    """
    try:
        with Source.inside(top, entry.file) as source:
            answer = _asked(source, since_ns)
            if answer == "busy":
                return None
            before = source.identity()
            compressed = _filled(source, draft, entry)
            is_smaller = draft.size < compressed.size
            draft.become_like(source.fd)
            draft.take_times(source.fd)
            is_wanted = answer == "taken" and lease.is_wanted(source.fd)
            is_useful = is_smaller and not is_wanted and source.identity() == before
    except (PermissionError, DamagedError):
        return None
    return compressed if is_useful else None


def _filled(source: Source, draft: fs.Draft, entry: CompressedFile) -> CompressedFile:
    size = source.size()
    found, frame = Fingerprint(), zstd.compressor(size)
    for piece in source.pieces(Span(0, size)):
        found.update(piece)
        draft.append(frame.compress(piece))
    draft.append(frame.flush())
    draft.sync()  # what is read back is what the disk took
    compressed = CompressedFile(entry.file, size, found.digest)
    try:
        for _ in archived_file.verified(
            archived_file.decompressed(draft.fd, compressed), compressed
        ):
            pass
    except DamagedError:
        name = f"{printable(entry.file)}{_ZST}"
        raise StorageError(
            f"{name} does not read back as it was written: the disk is failing."
        ) from None
    return compressed


def _set_times(place: Place, note: PutAway) -> None:
    """Give the folders the times they had before files in them were replaced."""
    times = dict(note.folders)
    for here, _, _ in os.walk(folder(place)):
        path = os.path.relpath(here, folder(place))
        if path in times and os.lstat(here).st_mtime_ns != times[path]:
            fs.set_time(folder(place) / path, times[path])


# ── decompressing ────────────────────────────────────────────────────────────────────────────────


def decompress(place: Place, note: PutAway, progress: Callable[[int], None]) -> None:
    """Make all files plain again, as they were. The caller holds the session's lock.

    Raises DamagedError if a file is missing or has changed, StorageError if there is no room.
    """
    there = set(regular(place))
    compressed = {f"{entry.file}{_ZST}": entry for entry in note.compressed}
    pending = [
        entry for file, entry in compressed.items() if entry.file not in there and file in there
    ]
    if os.path.lexists(place.live):  # somebody moved it back
        there.add(place.live.name)
    lost = [entry for file, entry in compressed.items() if not {entry.file, file} & there]
    if lost:
        raise DamagedError(
            f"{printable(lost[0].file)} was archived, and is no longer in "
            f"{printable(str(folder(place)))}: put it back there. If it is lost, put an empty file "
            "of that name there, and the rest comes back."
        )
    room.check(place.config, Need(sum(entry.size for entry in pending), UNPACKED))
    done = 0

    def write(entry: CompressedFile, draft: fs.Draft) -> CompressedFile:
        nonlocal done
        with Source.inside(folder(place), f"{entry.file}{_ZST}") as source:
            pieces = archived_file.decompressed(source.fd, entry)
            for piece in archived_file.verified(pieces, entry):
                draft.append(piece)
            draft.become_like(source.fd)
            draft.take_times(source.fd)
        done += entry.size
        progress(done)
        return entry

    for batch in replacing.batches(pending, lambda entry: entry.size):
        made = [
            _replacement(place, number, entry.file, partial(write, entry))
            for number, entry in enumerate(batch)
        ]
        replacing.replace_files(made)
    left = sorted(folder(place) / file for file in compressed if file in there)
    for parent, group in groupby(left, lambda path: path.parent):
        fs.remove_files(parent, [path.name for path in group])
    _set_times(place, note)
