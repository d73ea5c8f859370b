"""The files of a session put away: compressed, and decompressed again.

Rule: the order is that of `fs.replacing`. A plain file stays until the compressed one, which was
read back, has its name; and the other way round. Where both exist, the plain one counts. Each keeps
the other's mode, owner, attributes and times, and so do the folders, unless a crash comes in
between.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from sessrotate import fs, names, units
from sessrotate.archive import away_file
from sessrotate.archive.place import Place
from sessrotate.archive.record import AwayStep, PutAway
from sessrotate.errors import DamagedError, SessrotateError, StorageError, printable
from sessrotate.fs import replacing
from sessrotate.fs.replacing import Replacement
from sessrotate.in_place import obstacles, swap, waiting
from sessrotate.in_place.obstacles import Need
from sessrotate.model import Span
from sessrotate.names import PACKED
from sessrotate.system import locks, zstd
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source

LEAST: Final = 64 * 1024
"""Bytes from which on a file beside the live file is compressed."""

_PLENTY: Final = 4 * replacing.BATCH

UNPACKED: Final = "what is unpacked"
"""What restoring it needs room for."""

_ZST: Final = names.CODEC_SUFFIX["zstd"]

_LONGEST: Final = 255
"""Bytes that a file's name has at most where clients run; a longer one stays plain."""


def folder(place: Place) -> Path:
    """Return where the files of a session put away are.

    Raises DamagedError if that is not a folder, or a link to one.
    """
    path = place.archive / names.ARCHIVED
    if os.path.lexists(path) and not stat.S_ISDIR(path.lstat().st_mode):
        raise DamagedError(f"{printable(str(path))} is not a folder: move it away.")
    return path


def files(top: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield everything below a folder that is not a folder: its path there, and its status.

    Links are not followed.
    """
    for here, _, found in os.walk(top):
        for name in found:
            path = os.path.join(here, name)  # noqa: PTH118 - there may be very many
            with suppress(FileNotFoundError):
                yield os.path.relpath(path, top), os.lstat(path)


def size(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder; 0 if there is nothing."""
    return sum(sizes([path]).values())


def sizes(paths: Iterable[Path]) -> dict[Path, int]:
    """Return the bytes of each file, those below folders too; nothing of what is not there."""
    found: dict[Path, int] = {}
    for path in paths:
        if path.is_dir():
            found |= {path / file: status.st_size for file, status in files(path)}
        elif os.path.lexists(path):
            found[path] = path.lstat().st_size
    return found


def write_standing(place: Place, standing: AwayStep, used: str | None = None) -> PutAway:
    """Record where the session stands; return that. `used` is the time of its last record."""
    note = PutAway(standing, units.written(time.time()), (used or "")[:64])
    swap.change_record(place, away=note)
    return note


def date_all(place: Place, modified_ns: int) -> None:
    """Set when all files were changed last, in nanoseconds since 1970."""
    top = folder(place)
    for file in regular(place):
        fs.set_time(top / file, modified_ns)


def regular(place: Place) -> dict[str, os.stat_result]:
    """Return the regular files of a session put away, by their paths."""
    found = files(folder(place))
    return {file: status for file, status in found if stat.S_ISREG(status.st_mode)}


# ── compressing ──────────────────────────────────────────────────────────────────────────────


def compress(place: Place, note: PutAway, progress: Callable[[int], None]) -> None:
    """Compress the files of a session put away that are worth it.

    The caller holds the session's lock; `progress` is given how many bytes are done. Raises
    OSError as the system reports; files that are not compressed by then stay plain.
    """
    top, pending, since_ns = folder(place), to_compress(place), _since(note)
    done = made = 0

    def write(file: str, draft: fs.Draft) -> bool:
        nonlocal done
        is_made = _compressed(top, file, since_ns, draft)
        done += pending[file]
        progress(done)
        return is_made

    free = fs.free_bytes(place.archive)
    # On a disk that is almost full one after the other, so that its room is free for the next.
    limit = replacing.BATCH if free is None or free > _PLENTY else 0
    with _folder_times(top):
        for batch in replacing.batches(pending, pending.__getitem__, limit):
            files = [
                _replacement(place, number, f"{file}{PACKED}", partial(write, file), file)
                for number, file in enumerate(batch)
            ]
            made += replacing.replace_files(files)
    if note.is_plain and made == len(pending):
        swap.change_record(place, away=replace(note, is_plain=False))


def to_compress(place: Place) -> dict[str, int]:
    """Return the files of a session put away that are worth compressing, and their bytes."""
    top = folder(place)
    return {
        file: status.st_size
        for file, status in sorted(regular(place).items())
        if not file.endswith(_ZST)
        and len(os.fsencode(file.rpartition("/")[2] + PACKED)) <= _LONGEST
        and status.st_nlink == 1
        and status.st_size >= (1 if file == place.live.name else LEAST)
        and os.access(top / file, os.R_OK)
    }


def _replacement(
    place: Place, number: int, file: str, write: Callable[[fs.Draft], bool], old: str
) -> Replacement:
    """Return a file to be made; its draft stays out of the folder that goes back as a whole."""
    draft = place.archive / f"{names.ARCHIVED}.{number}{names.PARTIAL}"
    top = folder(place)
    return Replacement(draft, top / file, write, top / old)


@contextmanager
def _folder_times(top: Path) -> Iterator[None]:
    """Give the folders below back the times that they had before files in them were replaced."""
    before = {Path(here): os.lstat(here).st_mtime_ns for here, _, _ in os.walk(top)}
    try:
        yield
    finally:
        for path, modified_ns in before.items():
            if path != top and path.lstat().st_mtime_ns != modified_ns:
                fs.set_time(path, modified_ns)


def is_due(place: Place, note: PutAway) -> bool:
    """Tell whether a file of a session put away was left plain, and need not be any more.

    A lease proves that nobody writes to it; where there are none, it must be quiet for a day.
    """
    for file in to_compress(place) if note.is_plain else ():
        with suppress(SessrotateError, OSError), Source.inside(folder(place), file) as source:
            if _asked(source, _since(note)) != "busy":
                return True
    return False


def _asked(source: Source, since_ns: int) -> locks.Answer:
    """Take a lease on a file; busy where there are none, and it has not been quiet for a day.

    Whoever has a file open writes to that very file, wherever it was moved. Closing it lets go.
    """
    answer = locks.read_lease(source.fd)
    is_quiet = answer != "none" or waiting.is_over(source.identity(), since_ns)
    return answer if is_quiet else "busy"


def _since(note: PutAway) -> int:
    """Return when a session was put away, in nanoseconds since 1970; never, if that is no time."""
    try:
        return int(datetime.fromisoformat(note.at).timestamp() * 1e9)
    except (ValueError, OverflowError):
        return 1 << 62  # never


def _compressed(top: Path, file: str, since_ns: int, draft: fs.Draft) -> bool:
    """Compress a file into a draft, and read that back; tell whether it may be replaced by it.

    It may not if somebody writes to it or may do so, or if the draft cannot have its owner, or it
    must not be opened.
    """
    try:
        with Source.inside(top, file) as source:
            answer = _asked(source, since_ns)
            if answer == "busy":
                return False
            before = source.identity()
            _fill(source, draft, file)
            draft.become_like(source.fd)
            draft.take_times(source.fd)
            is_wanted = answer == "taken" and locks.is_lease_wanted(source.fd)
            return not is_wanted and source.identity() == before
    except (PermissionError, DamagedError):
        return False


def _fill(source: Source, draft: fs.Draft, file: str) -> None:
    size = source.size()
    written, read, frame = Fingerprint(), Fingerprint(), zstd.compressor(size)
    for piece in source.pieces(Span(0, size)):
        written.update(piece)
        draft.append(frame.compress(piece))
    draft.append(frame.flush())
    draft.sync()  # what is read back is what the disk took
    with suppress(DamagedError):
        for data in away_file.decompressed(draft.fd, file):
            read.update(data)
    if read.digest != written.digest:
        raise StorageError(
            f"{printable(file)}{PACKED} does not read back as it was written: the disk is failing."
        )


# ── decompressing ────────────────────────────────────────────────────────────────────────────────


def packed(place: Place) -> dict[str, int]:
    """Return the files of a session put away that are there compressed, and how much each holds.

    They are named as when they are plain; after a crash they may be there plain, too. Raises
    DamagedError if one does not say how much it holds.
    """
    found, top = dict[str, int](), folder(place)
    for file in sorted(regular(place)):
        if file.endswith(PACKED):
            with Source.inside(top, file) as source:
                found[file.removesuffix(PACKED)] = away_file.plain_size(source.fd, file)
    return found


def decompress(place: Place, progress: Callable[[int], None]) -> None:
    """Make all files plain again, as they were. The caller holds the session's lock.

    Raises DamagedError if a file has changed, StorageError if there is no room.
    """
    there, top, done = regular(place), folder(place), 0
    found = packed(place)
    pending = {file: size for file, size in found.items() if file not in there}
    obstacles.check_room(place.config, Need(sum(pending.values()), UNPACKED))

    def write(file: str, draft: fs.Draft) -> bool:
        nonlocal done
        with Source.inside(top, f"{file}{PACKED}") as source:
            for piece in away_file.decompressed(source.fd, f"{file}{PACKED}"):
                draft.append(piece)
            draft.become_like(source.fd)
            draft.take_times(source.fd)
        done += pending[file]
        progress(done)
        return True  # each is wanted

    with _folder_times(top):
        for file in found.keys() - pending.keys():
            path = top / f"{file}{PACKED}"
            fs.remove_files(path.parent, [path.name])
        for batch in replacing.batches(pending, pending.__getitem__):
            files = [
                _replacement(place, number, file, partial(write, file), f"{file}{PACKED}")
                for number, file in enumerate(batch)
            ]
            replacing.replace_files(files)
