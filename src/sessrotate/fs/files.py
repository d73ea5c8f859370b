"""The files that are being written: new, to take another's place, or to appear as output.

Rule: that of the package. A file counts as written when it was synced, not before. What a file has
besides its bytes (owner, mode, extended attributes, ACL, flags) is taken over by the one that takes
its place. One that cannot be kept is an error before anything is replaced: it is never dropped.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Final, Self

from sessrotate import platforms
from sessrotate.errors import is_full
from sessrotate.platforms import BINARY, NO_LINK, NO_WAIT, fcntl

FILE_MODE: Final = 0o600
_CREATE: Final = os.O_CREAT | os.O_EXCL | NO_LINK | BINARY

_NO_FOLDER_SYNC: Final = {errno.EINVAL, errno.EACCES, errno.ENOTSUP}
"""What a file system answers that cannot sync a folder, or has no need to; EIO is not among it."""

_PIECE: Final = 1 << 20

_NO_FULL_SYNC: Final = {errno.ENOTSUP, errno.EINVAL, errno.ENOTTY}
"""What a file system of macOS answers that cannot have the disk write its cache."""


class NewFile:
    """A file that did not exist before; a context manager that closes it.

    It counts as written only after `sync`.
    """

    _flags: ClassVar[int] = 0

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | _CREATE | self._flags, FILE_MODE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, data: bytes | memoryview) -> None:
        """Write all of `data` behind what is there."""
        write_all(self._fd, data)

    def fill_in(self, data: bytes, offset: int) -> None:
        """Write all of `data` over a place that was left for it."""
        while data:
            os.lseek(self._fd, offset, os.SEEK_SET)
            written = os.write(self._fd, data)
            data, offset = data[written:], offset + written
        os.lseek(self._fd, 0, os.SEEK_END)

    def sync(self) -> None:
        """Return when the content is on the disk. After an error it must not be called again."""
        sync(self._fd)

    def hasten(self) -> None:
        """Let the content begin to go to the disk, so that `sync` has less to wait for.

        Linux does so at once and in its own time when it is told that the bytes are not needed
        again; where it is not so, nothing is lost but time.
        """
        if platforms.HERE.hastens:
            with contextlib.suppress(OSError):
                os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)

    @property
    def fd(self) -> int:
        """The only descriptor of the file, as long as nobody else opens it."""
        return self._fd

    def close(self) -> None:
        """Close the file, once."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


class Draft(NewFile):
    """A new file that is to take another's place, and can still be corrected.

    It is appended to as clients do: once it has the other's name, they may write to it too.
    """

    _flags = os.O_APPEND

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset`: less only at the end."""
        return os.pread(self._fd, size, offset)

    @property
    def size(self) -> int:
        """How many bytes the file has now."""
        return os.fstat(self._fd).st_size

    def cut_to(self, size: int) -> None:
        """Drop everything behind `size` bytes."""
        os.ftruncate(self._fd, size)

    def become_like(self, fd: int) -> None:
        """Take over the owner, mode, extended attributes, ACL and flags of a file.

        Raises OSError if one of them cannot be had, rather than lose it.
        """
        take_over(fd, self._fd)

    def take_times(self, fd: int) -> None:
        """Take over when a file was last read and changed; a write after this undoes it."""
        there = os.fstat(fd)
        os.utime(self._fd, ns=(there.st_atime_ns, there.st_mtime_ns))


def scratch(folder: Path, pieces: Iterable[bytes | memoryview]) -> int:
    """Write bytes to a file that has no name, and so leaves nothing behind; return it, open.

    It is in `folder`, or where that has no room or must not be written to, where the system has
    temporary files (`TMPDIR`).
    """
    places = [folder, *_temporary()]
    fd = _nameless(places)
    try:
        for piece in pieces:
            size = os.fstat(fd).st_size
            try:
                write_all(fd, piece)
            except OSError as error:
                if not is_full(error) or not places:
                    raise
                full, fd = fd, _nameless(places)
                _copy(full, size, fd)
                write_all(fd, piece)
    except BaseException as error:
        os.close(fd)
        if is_full(error):
            told = f"{error.strerror}, nor in the folder for temporary files (TMPDIR)"
            raise OSError(error.errno, told) from error
        raise
    return fd


def _temporary() -> list[Path]:
    """Return the folder of temporary files, if there is one that can be written to."""
    import tempfile  # noqa: PLC0415 - wanted only here, and takes a while

    with contextlib.suppress(FileNotFoundError):
        return [Path(tempfile.gettempdir())]
    return []


def _nameless(places: list[Path]) -> int:
    """Open a file without a name in the first of these folders where that can be done.

    Those that were tried are taken off the list.
    """
    while True:
        folder = places.pop(0)
        try:
            return _unnamed(folder)
        except OSError:
            if not places:
                raise


def _copy(old: int, size: int, new: int) -> None:
    """Write the first bytes of a file to another one, and close the first."""
    try:
        for start in range(0, size, _PIECE):
            write_all(new, os.pread(old, min(_PIECE, size - start), start))
    finally:
        os.close(old)


def _unnamed(folder: Path) -> int:
    """Open a new file for reading and writing that has no name."""
    from tempfile import TemporaryFile  # noqa: PLC0415 - as above

    # Where it has a name for an instant, one that a later run knows for ours.
    with TemporaryFile(buffering=0, prefix="scratch.", suffix=".partial", dir=folder) as file:
        return os.dup(file.fileno())


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of `data` to an open file, pipe or terminal, however often that takes."""
    with memoryview(data) as rest:
        written = 0
        while written < len(rest):
            try:
                written += os.write(fd, rest[written:])
            except BlockingIOError:  # a pipe that somebody else made non-blocking
                select.select([], [fd], [])


def sync(fd: int) -> None:
    """Return when the content of a file is on the disk. After an error it must not be called again.

    On macOS `fsync` ends when the disk has the content in its cache; `F_FULLFSYNC` asks for more
    (fsync(2) there).
    """
    full = platforms.HERE.full_sync
    if full is not None:
        try:
            fcntl.fcntl(fd, full)
        except OSError as error:
            if error.errno not in _NO_FULL_SYNC:
                raise
        else:
            return
    os.fsync(fd)


def sync_folder(path: Path) -> None:
    """Return when the names in a folder are on the disk."""
    if not platforms.HERE.syncs_folders:
        return
    with open_folder(path) as fd:
        try:
            sync(fd)
        except OSError as error:
            if error.errno not in _NO_FOLDER_SYNC:
                raise


@contextlib.contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """Yield a descriptor of a folder."""
    # O_NONBLOCK: opening a pipe that has the name would wait for a writer.
    fd = os.open(path, os.O_RDONLY | NO_WAIT)
    try:
        yield fd
    finally:
        os.close(fd)


# ── what a file has besides its bytes ─────────────────────────────────────────────────────────────

_NO_ATTRIBUTES: Final = {errno.ENOTSUP, errno.ENOSYS}
"""What a file system answers that knows no extended attributes."""

_NO_FLAGS: Final = {errno.ENOTTY, errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EPERM}
"""What a file system answers that knows no flags; EPERM in some sandboxes."""

_GET_FLAGS: Final = 0x80086601
_SET_FLAGS: Final = 0x40086602
"""`FS_IOC_GETFLAGS` and `FS_IOC_SETFLAGS` of Linux, where a long has 64 bits (linux/fs.h)."""

_FIXED: Final = 0x10 | 0x20
"""Immutable and append-only: such a file can have no other name, and none can take its place."""

_OURS: Final = 0x1 | 0x2 | 0x4 | 0x8 | _FIXED | 0x40 | 0x80 | 0x4000 | 0x8000 | 0x800000
"""The flags that a person sets (chattr(1)); the others are the file system's own."""

_COPYFILE: Final = 1 | 2 | 4
"""`COPYFILE_ACL`, `COPYFILE_STAT` (mode, owner, flags) and `COPYFILE_XATTR` (copyfile.h)."""


def take_over(source: int, fd: int) -> None:
    """Give the file open as `fd` the owner, mode, attributes, ACL and flags of another.

    Raises OSError if one of them cannot be had, rather than lose it. What the system itself
    decides about every file (`security.`) only has to be the same in the end.
    """
    there, here = os.fstat(source), os.fstat(fd)
    if (there.st_uid, there.st_gid) != (here.st_uid, here.st_gid):
        os.fchown(fd, there.st_uid, there.st_gid)
    if platforms.HERE.attributes == "fcopyfile":
        _copy_all(source, fd)
    for name, value in _attributes(source).items():
        if not name.startswith("security.") or _attributes(fd).get(name) != value:
            os.setxattr(fd, name, value)
    _take_flags(source, fd)
    os.fchmod(fd, stat.S_IMODE(there.st_mode))


def is_fixed(fd: int) -> bool:
    """Tell whether a file is immutable or append-only (`chattr +i`, `+a`; `chflags uchg`)."""
    told = getattr(os.fstat(fd), "st_flags", 0)  # macOS and the BSDs
    bsd = stat.UF_IMMUTABLE | stat.UF_APPEND | stat.SF_IMMUTABLE | stat.SF_APPEND
    return bool((_flags(fd) or 0) & _FIXED or told & bsd)


def _attributes(fd: int) -> dict[str, bytes]:
    """Return a file's extended attributes; none where the file system knows none."""
    if platforms.HERE.attributes != "xattr":
        return {}
    try:
        return {name: os.getxattr(fd, name) for name in os.listxattr(fd)}
    except OSError as error:
        if error.errno in _NO_ATTRIBUTES:
            return {}
        raise


def _flags(fd: int) -> int | None:
    """Return the flags that a person sets; None where there are none."""
    if not platforms.HERE.flags:
        return None
    flags = bytearray(8)
    try:
        fcntl.ioctl(fd, _GET_FLAGS, flags)
    except OSError as error:
        if error.errno in _NO_FLAGS:
            return None
        raise
    return int.from_bytes(flags[:4], sys.byteorder)


def _take_flags(source: int, fd: int) -> None:
    there, here = _flags(source), _flags(fd)
    if there is None or here is None or there & _OURS == here & _OURS:
        return
    wanted = (here & ~_OURS) | (there & _OURS)
    fcntl.ioctl(fd, _SET_FLAGS, wanted.to_bytes(8, sys.byteorder))
    if ((_flags(fd) or 0) ^ there) & _OURS:
        raise OSError(errno.ENOTSUP, "The file's flags (lsattr) cannot be kept")


def _copy_all(source: int, fd: int) -> None:
    """Have macOS copy what Python has no calls for."""
    import ctypes  # noqa: PLC0415 - 4 ms at start-up, wanted only here

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fcopyfile(source, fd, None, ctypes.c_uint32(_COPYFILE)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
