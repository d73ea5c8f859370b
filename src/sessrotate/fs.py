"""The only module that changes the disk.

Rule: nothing is overwritten but our own unfinished files, and what counts as done is on the disk
before the next step begins. Files are created with mode 0600 and folders with 0700, whatever the
umask.

What is not promised: a disk that reports a write as done and loses it; a file system without
working `fsync` or `link`. Functions here raise plain `OSError`; callers say what was being done.

The files of a set and their states:

    intent.json      absent → there while the set is written → absent
    ID.jsonl, ID.N.jsonl[.zst]    absent → growing (an intent is there) → complete
    manifest.json    absent → complete (appears whole, by a rename, after all segments)
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # the stubs know only systems that have it

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700
_CREATE: Final = os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

_NO_FOLDER_SYNC: Final = {errno.EINVAL, errno.EACCES, errno.ENOTSUP}
"""What a file system answers that cannot sync a folder, or has no need to; EIO is not among it."""


_NO_LOCK: Final = {errno.ENOLCK, errno.ENOTSUP, errno.EINVAL}
"""What a file system answers that knows no locks."""

_NO_UNNAMED: Final = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT}
"""What a file system, or an old kernel, answers that knows no unnamed files."""


class NewFile:
    """A file that did not exist before; a context manager that closes it.

    It counts as written only after `sync`.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | _CREATE, _FILE_MODE)

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
        os.fsync(self._fd)

    def close(self) -> None:
        """Close the file, once."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


class OutputFile:
    """A file that appears under its name whole or not at all, and never over another.

    Without `publish`, nothing is left of it. Where the system can, it has no name until then, so
    that not even a kill leaves anything behind.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._draft: Path | None = None
        fd = _unnamed_file(path.parent)
        if fd is None:
            self._draft = path.parent / f".{path.name}.{os.getpid()}.partial"
            fd = os.open(self._draft, os.O_RDWR | _CREATE, _FILE_MODE)
        self._fd = fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        if self._draft is not None:
            with contextlib.suppress(OSError):
                self._draft.unlink()

    def append(self, data: bytes | memoryview) -> None:
        """Write all of `data` behind what is there."""
        write_all(self._fd, data)

    def publish(self) -> None:
        """Give the file its name. Raises FileExistsError if something has it already."""
        os.fsync(self._fd)
        if self._draft is None:
            # The only way to name an unnamed file without privileges (open(2), O_TMPFILE).
            # Naming the folder makes Python call linkat, which alone can follow the link.
            with _open_folder(self._path.parent) as folder:
                os.link(f"/proc/self/fd/{self._fd}", self._path.name, dst_dir_fd=folder)
        else:
            os.link(self._draft, self._path)
        sync_folder(self._path.parent)


def _unnamed_file(folder: Path) -> int | None:
    """Open a file that has no name yet; None where the system cannot, or could not name it."""
    if not hasattr(os, "O_TMPFILE") or not Path("/proc/self/fd").is_dir():
        return None
    try:
        return os.open(folder, os.O_RDWR | os.O_TMPFILE, _FILE_MODE)
    except OSError as error:
        if error.errno in _NO_UNNAMED and folder.is_dir():
            return None
        raise


class OutputDevice:
    """A device or pipe that is written to like an `OutputFile`, and is never finished."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def append(self, data: bytes | memoryview) -> None:
        """Write all of `data`."""
        write_all(self._fd, data)

    def publish(self) -> None:
        """Do nothing: what was written has arrived."""


def output(path: Path) -> OutputFile | OutputDevice:
    """Return what to write to for `path`: a new file, or the device or pipe that it names.

    Raises FileExistsError if something else has that name.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return OutputFile(path)
    if stat.S_ISLNK(mode):
        with contextlib.suppress(FileNotFoundError):
            mode = path.stat().st_mode  # /dev/stdout is a link
    if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):
        return OutputDevice(path)
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of `data` to an open file, pipe or terminal, however often that takes."""
    with memoryview(data) as rest:
        written = 0
        while written < len(rest):
            try:
                written += os.write(fd, rest[written:])
            except BlockingIOError:  # a pipe that somebody else made non-blocking
                select.select([], [fd], [])


def create_folder(path: Path) -> None:
    """Create a folder, and those above it that are missing; one that exists is left as it is."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=_FOLDER_MODE)
        sync_folder(folder.parent)


def create_file(path: Path, data: bytes) -> None:
    """Create a file with this content, on the disk when this returns."""
    with NewFile(path) as file:
        file.append(data)
        file.sync()
    sync_folder(path.parent)


def create_file_at_once(path: Path, data: bytes) -> None:
    """Create a file that at no moment, not even after a crash, is there with other content."""
    draft = path.with_name(path.name + ".partial")
    draft.unlink(missing_ok=True)
    create_file(draft, data)
    draft.rename(path)
    sync_folder(path.parent)


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a file for this process alone until the block ends; BlockingIOError if another does.

    The system lets go of it when the process dies. Where there is no `flock` (Windows), nothing
    is held.
    """
    # For writing, because network file systems lock only what is open for writing.
    fd = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        if fcntl is not None:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in _NO_LOCK:
                    raise
        yield
    finally:
        os.close(fd)


def remove_files(folder: Path, file_names: Iterable[str]) -> None:
    """Remove plain files of a folder; names that are not there are passed over."""
    names = list(file_names)
    for name in names:
        (folder / name).unlink(missing_ok=True)
    if names:
        sync_folder(folder)


def sync_folder(path: Path) -> None:
    """Return when the names in a folder are on the disk."""
    if os.name == "nt":  # Windows does not open folders; its names are written through
        return
    with _open_folder(path) as fd:
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno not in _NO_FOLDER_SYNC:
                raise


@contextlib.contextmanager
def _open_folder(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def free_bytes(path: Path) -> int | None:
    """Return how many bytes may still be written where `path` is or would be, if known."""
    for folder in (path, *path.absolute().parents):
        try:
            usage = os.statvfs(folder)
        except FileNotFoundError:
            continue
        except (AttributeError, OSError):
            return None
        return usage.f_bavail * usage.f_frsize
    return None
