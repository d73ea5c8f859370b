"""The live file of a session that is put away, for whoever reads it: plain or compressed.

Rule: only reads. What a compressed one holds is unpacked when more than its beginning is asked
for, into a file without a name, and verified before anything but that beginning is handed on.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Self

from sessrotate import fs, names
from sessrotate.archive import archived_note
from sessrotate.errors import DamagedError, InUseError, printable, storage
from sessrotate.segments import load
from sessrotate.system import zstd
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from sessrotate.archive.archived_note import Note, Packed
    from sessrotate.archive.place import Place

HEAD: Final = 64 * 1024
"""Bytes of a compressed file that are cheap to read: its header is among them."""

_ZST: Final = names.CODEC_SUFFIX["zstd"]


def note(place: Place) -> Note | None:
    """Return what the note of an archive says, None if there is none.

    Raises DamagedError if it is damaged.
    """
    if not os.path.lexists(place.archive / names.ARCHIVED_NOTE):
        return None
    data = load.read_small(place.archive, names.ARCHIVED_NOTE, archived_note.MAX_BYTES)
    return archived_note.parse(data, place.session)


def away(place: Place) -> Path | None:
    """Return where the live file of a session was put away, plain or compressed, if it was."""
    if not os.path.lexists(place.archive / names.ARCHIVED_NOTE):
        return None
    folder = place.archive / names.ARCHIVED
    if folder.is_symlink():
        return None
    plain = folder / place.live.name
    compressed = plain.with_name(plain.name + _ZST)
    return next((path for path in (plain, compressed) if os.path.lexists(path)), None)


def is_doubled(place: Place) -> bool:
    """Tell whether a client began another live file while the session is put away."""
    path = away(place)
    if path is None:
        return False
    try:
        return not os.path.samestat(place.live.lstat(), path.lstat())
    except FileNotFoundError:
        return False


def opened(place: Place) -> Source | None:
    """Open the live file that was put away, None if there is none."""
    path = away(place)
    if path is None:
        return None
    if path.name == place.live.name:
        return Away(path, place.live)
    told = note(place)
    packed = {} if told is None else {entry.file: entry for entry in told.packed}
    if place.live.name not in packed:
        raise DamagedError(f"The {names.ARCHIVED_NOTE} does not list {printable(path.name)}.")
    return Compressed(path, place.live, packed[place.live.name])


class Away(Source):
    """A live file that was put away and is not `live` any more."""

    def __init__(self, path: Path, live: Path) -> None:
        super().__init__(path)
        self._live = live

    def check_unreplaced(self) -> None:
        """Raise InUseError if the session came back meanwhile."""
        super().check_unreplaced()
        if os.path.lexists(self._live):
            raise InUseError("The session came back while it was read; try again.")


class Compressed(Away):
    """The same, compressed: it reads as what is in it."""

    def __init__(self, path: Path, live: Path, told: Packed) -> None:
        super().__init__(path, live)
        self._told = told
        self._head: bytes | None = None
        self._plain: int | None = None

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._plain is not None:
            os.close(self._plain)

    def __enter__(self) -> Self:
        return self

    @property
    def fd(self) -> int:
        """A descriptor of what is in it."""
        return self._whole()

    def size(self) -> int:
        """Return how many bytes are in it."""
        return self._told.size

    def freeze(self) -> None:
        """Do nothing: it never grows."""

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` from `offset`; return how many bytes there were (0 at the end)."""
        end = offset + len(buffer)
        if end <= HEAD and self._plain is None:
            if self._head is None:
                self._head = self._beginning()
            data = self._head[offset:end]
            buffer[: len(data)] = data
            return len(data)
        return os.preadv(self._whole(), [buffer], offset)

    def _beginning(self) -> bytes:
        head = bytearray()
        for piece in self._pieces():
            head += piece
            if len(head) >= HEAD:
                break
        if len(head) < min(HEAD, self._told.size):
            raise _damaged(self._told, "it is shorter than it was")
        return bytes(head[:HEAD])

    def _whole(self) -> int:
        with self._lock:
            if self._plain is None:
                with storage("unpack the session"):
                    fd = fs.scratch(self.path.parent)
                    try:
                        for piece in verified(self._pieces(), self._told):
                            fs.write_all(fd, piece)
                    except BaseException:
                        os.close(fd)
                        raise
                self._plain = fd
            return self._plain

    def _pieces(self) -> Iterator[bytes]:
        return unpacked(self._fd, self._told)


def unpacked(fd: int, told: Packed) -> Iterator[bytes]:
    """Yield what a compressed file holds; raise DamagedError if its data is damaged."""
    offset = 0

    def read(size: int) -> bytes:
        nonlocal offset
        data = os.pread(fd, size, offset)
        offset += len(data)
        return data

    try:
        yield from zstd.decompressed(read, HEAD)
    except DamagedError as error:
        raise _damaged(told, str(error)) from None


def verified(pieces: Iterable[bytes], told: Packed) -> Iterator[bytes]:
    """Yield pieces and raise DamagedError behind the last if they are not what was packed."""
    found, size = Fingerprint(), 0
    for piece in pieces:
        size += len(piece)
        if size > told.size:
            raise _damaged(told, "it is longer than it was")
        found.update(piece)
        yield piece
    if size < told.size:
        raise _damaged(told, "it is shorter than it was")
    if told.digest not in (None, found.digest):
        raise _damaged(told, "its bytes have changed")


def _damaged(told: Packed, reason: str) -> DamagedError:
    return DamagedError(f"{printable(told.file)}{_ZST} is damaged: {reason}.")
