"""A session file open for reading: any bytes of it, by offset, from any thread.

Rule: only reads, and never more than it is asked for. It knows which file it opened, so that a
file that shrinks or is replaced under it is an error and never a wrong result.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final, Self

from sessrotate import platforms
from sessrotate.errors import (
    DamagedError,
    InUseError,
    NotASessionError,
    RefusedError,
    SessrotateError,
    WrongUsageError,
    printable,
    storage,
)
from sessrotate.model import FileIdentity, Span
from sessrotate.system import inside

PIECE: Final = 64 * 1024
"""Bytes in each piece of `Source.pieces`."""

_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Source:
    """An open regular file; a context manager that closes it."""

    def __init__(self, path: Path, fd: int | None = None) -> None:
        """Open `path`; or take `fd`, open for reading already, for what is behind it.

        Raises WrongUsageError if there is no such file, NotASessionError if it is a special file,
        StorageError if it cannot be opened.
        """
        self.path: Final = path
        with _opening(path):
            self._fd = inside.open_soon(path) if fd is None else fd
        self._lock = Lock()
        self._frozen: int | None = None
        mode = os.fstat(self._fd).st_mode
        if not stat.S_ISREG(mode):
            os.close(self._fd)
            kind = next((kind for matches, kind in _KINDS if matches(mode)), "a special file")
            raise NotASessionError(f"{printable(str(path))} is {kind}, not a session file.")

    @classmethod
    def inside(cls, folder: Path, name: str) -> Self:
        """Open a file of an archive, as `inside.opened` does.

        Raises DamagedError with a sentence that names the file, WrongUsageError if there is none.
        """
        path = folder / name
        shown = printable(str(path))
        try:
            with _opening(path):
                return cls(path, inside.opened(folder, name))
        except DamagedError as error:
            raise DamagedError(f"{shown} is damaged: {error}.") from None

    @classmethod
    def itself(cls, path: Path) -> Self:
        """Open a live file; raise RefusedError if it is a link, and as a `Source` does."""
        shown = printable(str(path))
        try:
            with _opening(path):
                return cls(path, inside.opened_at(path))
        except DamagedError:
            raise RefusedError(
                f"{shown} is a symbolic link: put the file itself in its place."
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    @property
    def fd(self) -> int:
        """The descriptor: open for reading only, as a lease demands."""
        return self._fd

    def size(self) -> int:
        """Return the file's size now, in bytes; or then, if it is frozen."""
        return os.fstat(self._fd).st_size if self._frozen is None else self._frozen

    def freeze(self) -> None:
        """Take the file for as long as it is now, until `thaw`: what comes later is not seen.

        If it gets shorter, reading what was there is an error.
        """
        self._frozen = os.fstat(self._fd).st_size

    def thaw(self) -> None:
        """Take the file for as long as it is at any time."""
        self._frozen = None

    def identity(self) -> FileIdentity:
        """Return which file this is and what state it is in now."""
        return _identity(os.fstat(self._fd))

    def check_unreplaced(self) -> None:
        """Raise InUseError unless the path still names the file that was opened."""
        here = self.identity()
        try:
            there = _identity(self.path.stat())
        except OSError:
            there = None
        if there is None or (there.device, there.inode) != (here.device, here.inode):
            raise InUseError("The session file was replaced while it was read; try again.")

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` from `offset`; return how many bytes there were (0 at the end)."""
        if platforms.HERE.reads_at:
            return os.preadv(self._fd, [buffer], offset)
        with self._lock:  # Windows has one position for all threads
            os.lseek(self._fd, offset, os.SEEK_SET)
            data = os.read(self._fd, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def fill(self, buffer: memoryview, offset: int) -> None:
        """Fill all of `buffer` from `offset`; raise InUseError if the file is shorter now."""
        while buffer:
            got = self.read_into(buffer, offset)
            if not got:
                raise InUseError("The session file became shorter while it was read; try again.")
            buffer, offset = buffer[got:], offset + got

    def read_at(self, offset: int, size: int) -> bytes:
        """Return the `size` bytes at `offset`; raise InUseError if the file is shorter now."""
        data = bytearray(size)
        with memoryview(data) as view:
            self.fill(view, offset)
        return bytes(data)

    def pieces(self, span: Span) -> Pieces:
        """Return the bytes of `span` as an iterable of pieces; each iteration reads anew."""
        return Pieces(self, span)

    def line_start(self, offset: int, floor: int = 0) -> int:
        """Return the offset behind the last newline before `offset`, at least `floor`."""
        size = 4096
        while offset > floor:
            start = max(floor, offset - size)
            newline = self.read_at(start, offset - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            offset, size = start, PIECE
        return floor

    def line_end(self, offset: int, limit: int) -> int:
        """Return the offset of the first newline from `offset` on, at most `limit`."""
        size = 4096
        buffer = bytearray()
        while offset < limit:
            # A line may have gigabytes: it is looked through where it was read to.
            if len(buffer) < size:
                buffer = bytearray(size)
            wanted = min(size, limit - offset)
            with memoryview(buffer) as view:
                self.fill(view[:wanted], offset)
            newline = buffer.find(b"\n", 0, wanted)
            if newline >= 0:
                return offset + newline
            offset, size = offset + wanted, PIECE
        return limit


def is_zeros(path: Path) -> bool:
    """Tell whether a file has bytes, and each of them is zero; not if it cannot be read.

    That is no session: a crash or a full disk leaves such a file where one was to be written.
    """
    try:
        with Source.itself(path) as source:
            size = source.size()
            pieces = source.pieces(Span(_first_data(source.fd, size), size))
            return size > 0 and all(piece.count(0) == len(piece) for piece in pieces)
    except (SessrotateError, OSError):
        return False


def _first_data(fd: int, size: int) -> int:
    """Return where the first bytes of a file are that are no hole, `size` if there are none."""
    if platforms.SEEK_DATA is None:
        return 0
    try:
        return os.lseek(fd, 0, platforms.SEEK_DATA)
    except OSError as error:
        return size if error.errno == errno.ENXIO else 0


class Pieces:
    """Part of a file as pieces of `PIECE` bytes; may be iterated again, and from its end."""

    def __init__(self, source: Source, span: Span) -> None:
        self._source = source
        self._span = span

    def __iter__(self) -> Iterator[bytes]:
        return map(self._piece, self._starts())

    def __reversed__(self) -> Iterator[bytes]:
        """Yield the same pieces from the last to the first."""
        return map(self._piece, reversed(self._starts()))

    def _starts(self) -> range:
        return range(self._span.start, self._span.end, PIECE)

    def _piece(self, start: int) -> bytes:
        return self._source.read_at(start, min(PIECE, self._span.end - start))


@contextmanager
def _opening(path: Path) -> Iterator[None]:
    with storage("open the session"):
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            compressed = path.with_name(path.name + ".zst")  # as `tidy` leaves it
            there = f" There is {printable(str(compressed))}: name that instead."
            more = there if os.path.lexists(compressed) else ""
            raise WrongUsageError(f"There is no file {printable(str(path))}.{more}") from None


def _identity(status: os.stat_result) -> FileIdentity:
    return FileIdentity(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
