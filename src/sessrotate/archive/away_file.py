"""The live file of a session put away, for whoever reads it: plain or compressed.

Rule: only reads. If more than its beginning is asked for, a compressed file is decompressed into a
file without a name, and verified before anything else is handed on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from sessrotate import fs, names
from sessrotate.archive import owner, record
from sessrotate.archive.place import Place
from sessrotate.archive.record import PutAway, Record
from sessrotate.errors import DamagedError, InUseError, RefusedError, printable, storage
from sessrotate.system.source import Source

HEAD: Final = 64 * 1024
"""Bytes at the beginning of a compressed file that are cheap to read."""


def told(place: Place) -> Record:
    """Return where a session stands (`record.told`); raise RefusedError if a link is there."""
    owner.check_own(place)
    return _told(place)


def _told(place: Place) -> Record:
    """Return the same, of a path that was looked at.

    A record of another moment, which somebody put back, is corrected by the files: only of an
    session put away the live file is compressed, or in the archive alone.
    """
    found, path = record.told(place.archive), record.away(place.archive, place.session)
    if os.path.lexists(place.live):
        is_recorded = os.path.lexists(place.archive / names.RECORD)
        return found if is_recorded else replace(found, away=None)  # it was not put away
    if path is not None and found.away is None and found.intent is None:
        return replace(found, away=PutAway("archived", ""))
    if path is not None and found.away is not None and path.name != place.live.name:
        return replace(found, away=replace(found.away, standing="archived"))
    return found


def note(place: Place) -> PutAway | None:
    """Return what is told of a session that was put away, None if it was not; as `told`."""
    return told(place).away


def away(place: Place) -> Path | None:
    """Return the live file of a session put away, plain or compressed, if there is one."""
    is_away = _told(place).away is not None
    return record.away(place.archive, place.session) if is_away else None


def is_doubled(place: Place) -> bool:
    """Tell whether a client began another live file while the session was put away."""
    path = away(place)
    if path is None:
        return False
    try:
        return not os.path.samestat(place.live.lstat(), path.lstat())
    except FileNotFoundError:
        return False


def check_single(place: Place) -> None:
    """Raise RefusedError if a client began another live file while the session was put away."""
    if is_doubled(place):
        raise doubled(place)


def check_away(place: Place) -> None:
    """Raise an error if the live file of a session put away is missing, or not the only one."""
    check_single(place)
    if away(place) is None:
        if not os.path.lexists(place.live):
            raise lost(place)
        raise RefusedError(
            f"Someone moved {printable(str(place.live))} back: `restore` brings back the rest."
        )


def doubled(place: Place) -> RefusedError:
    """Return the error that there is a live file besides the one put away."""
    return RefusedError(
        f"{printable(str(place.live))} appeared while its session was put away: rename it, and "
        "`restore` brings the session back; then append only the lines that the session lacks."
    )


def lost(place: Place) -> DamagedError:
    """Return the error that the live file put away does not exist any more."""
    return DamagedError(
        f"{printable(place.live.name)} was put away, and is no longer in "
        f"{printable(str(place.archive / names.ARCHIVED))}: put it back there."
    )


def opened(place: Place) -> Source | None:
    """Open the live file of a session put away, None if there is none."""
    path = away(place)
    if path is None:
        return None
    if path.name == place.live.name:
        return Away(path, place.live)
    return Compressed(path, place.live)


class Away(Source):
    """The live file of a session put away, which does not have the name `live` any more."""

    def __init__(self, path: Path, live: Path) -> None:
        with Source.inside(path.parent, path.name) as source:
            super().__init__(path, os.dup(source.fd))
        self._live = live

    def check_unreplaced(self) -> None:
        """Raise InUseError if the session was put back in the meantime."""
        super().check_unreplaced()
        if os.path.lexists(self._live):
            raise InUseError("The session was put back while it was read: try again.")


class Compressed(Away):
    """A compressed one: it reads as the plain file."""

    def __init__(self, path: Path, live: Path) -> None:
        super().__init__(path, live)
        self._size: Final = plain_size(self._fd, path.name)
        self._head: bytes | None = None
        self._plain: int | None = None

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._plain is not None:
            os.close(self._plain)

    @property
    def fd(self) -> int:
        """A descriptor of the plain bytes."""
        return self._whole()

    def size(self) -> int:
        """Return how many plain bytes it has."""
        return self._size

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
        return bytes(head[:HEAD])

    def _whole(self) -> int:
        with self._lock:
            if self._plain is None:
                with storage("decompress the session"):
                    self._plain = fs.scratch(self.path.parent, self._pieces())
            return self._plain

    def _pieces(self) -> Iterator[bytes]:
        return decompressed(self._fd, self.path.name)


def plain_size(fd: int, name: str) -> int:
    """Return how many bytes a compressed file holds; raise DamagedError if it does not say."""
    from sessrotate.system import zstd  # noqa: PLC0415 - not needed by plain files

    size = zstd.content_size(fd)
    if size is None:
        raise _damaged(name, "its compressed data is damaged")
    return size


def decompressed(fd: int, name: str) -> Iterator[bytes]:
    """Yield the plain bytes of a compressed file.

    Raises DamagedError at the end if they are not what was compressed: the frame has a checksum.
    """
    from sessrotate.system import zstd  # noqa: PLC0415 - as above

    left, offset = plain_size(fd, name), 0

    def read(size: int) -> bytes:
        nonlocal offset
        data = os.pread(fd, size, offset)
        offset += len(data)
        return data

    try:
        for piece in zstd.decompressed(read, HEAD):
            left -= len(piece)
            if left < 0:
                break
            yield piece
    except DamagedError as error:
        raise _damaged(name, str(error)) from None
    if left:
        raise _damaged(name, "its content is longer or shorter than it states")


def _damaged(name: str, reason: str) -> DamagedError:
    return DamagedError(f"{printable(name)} is damaged: {reason}.")
