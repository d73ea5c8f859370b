"""The only package that changes the disk.

Promise: what a function here reports as done is on the disk, and a crash leaves the old state or
the new one. In come paths, descriptors and bytes; out comes their effect. May import nothing else
of sessrotate.

Rule: nothing is overwritten but our own unfinished files, and what counts as done is on the disk
before the next step begins. A file that other programs may rename is only moved by `exact`. Files
are created with mode 0600 and folders with 0700, whatever the umask.

What is not promised: a disk that reports a write as done and loses it; a file system without
working `fsync` or `link`. Functions here raise plain `OSError`; callers say what was being done.

docs/internals/protocol.md has the order in which an archive's files change.
The states of a set's files:

    intent.json      absent → there while the set is written → absent
    ID.jsonl, ID.N.jsonl[.zst]    absent → growing (an intent is there) → complete
    manifest.json    absent → complete (appears whole, by a rename, after all segments)
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Final, Self

from sessrotate.fs.exact import (
    NO_LINKS,
    ReplacedError,
    put,
    same_as,
    take_away,
    take_place,
)
from sessrotate.fs.files import (
    FILE_MODE,
    Draft,
    NewFile,
    is_fixed,
    scratch,
    sync,
    sync_folder,
    write_all,
)
from sessrotate.platforms import NO_LINK, NO_WAIT, fcntl

__all__ = [
    "NO_LINKS",
    "Draft",
    "NewFile",
    "OutputDevice",
    "OutputFile",
    "ReplacedError",
    "add_name",
    "append",
    "create_file",
    "create_file_at_once",
    "create_folder",
    "free_bytes",
    "held",
    "is_fixed",
    "move_files",
    "move_folder",
    "output",
    "put",
    "remove_files",
    "remove_folder",
    "rename_files",
    "rewrite",
    "same_as",
    "scratch",
    "set_time",
    "sync",
    "sync_folder",
    "take_away",
    "take_place",
    "write_all",
]

_FOLDER_MODE: Final = 0o700

_PARTIAL: Final = ".partial"

_MOST_OF_NAME: Final = 50
"""Characters of a file's name that its draft's has: both have to fit in 255 bytes."""

_NO_LOCK: Final = {errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.EBADF}  # NFS: of a folder
"""What a file system answers that knows no locks."""


def create_folder(path: Path) -> None:
    """Create a folder, and those above it that are missing; one that exists is left as it is."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)  # another process may be faster
        sync_folder(folder.parent)


def create_file(path: Path, data: bytes) -> None:
    """Create a file with this content, on the disk when this returns."""
    with NewFile(path) as file:
        file.append(data)
        file.sync()
    sync_folder(path.parent)


def create_file_at_once(path: Path, data: bytes) -> None:
    """Create or replace a file that is never, not even after a crash, there with other content.

    A crash may leave a draft, which the next call removes; a failure leaves none.
    """
    draft = path.with_name(path.name + _PARTIAL)
    draft.unlink(missing_ok=True)
    file = NewFile(draft)
    is_ours = same_as(os.fstat(file.fd))
    try:
        with file:
            file.append(data)
            file.sync()
        sync_folder(path.parent)
        draft.rename(path)
    except BaseException:
        # Another process that writes this file has the same name for its draft, which stays.
        with contextlib.suppress(OSError):
            if is_ours(draft):
                draft.unlink()
        raise
    sync_folder(path.parent)


def rewrite(path: Path, before: bytes | None, after: bytes | None) -> bool:
    """Change at once what a small file of somebody else's holds, unless that is not `before` now.

    None stands for no file. Mode, owner and extended attributes stay. Returns whether it was
    done; then it is on the disk. Raises ReplacedError if a file that another program saved
    meanwhile is kept beside it. Not promised: what is written in the moment that `exact` names.
    """

    def is_it(name: Path) -> bool:
        return _content(name) == before

    drafts = (path.with_name(f".{path.name}.{number}{_PARTIAL}") for number in count(1))
    # One that is there may be another program's file, which a crash left.
    draft = next(draft for draft in drafts if not os.path.lexists(draft))
    try:
        if after is None:
            take_away(path, draft, is_it)
            draft.unlink()
            sync_folder(path.parent)
            return True
        with _written(draft, after, path if before is not None else None):
            if before is None:
                put(draft, path)
            else:
                take_place(draft, path, is_it)
    except ReplacedError as error:
        if error.kept is not None:
            raise
        return False
    except (FileExistsError, FileNotFoundError):
        return False
    return True


@contextlib.contextmanager
def _written(draft: Path, data: bytes, like: Path | None) -> Iterator[None]:
    """Write a draft, which is to be another file's successor; no name of it outlives a failure."""
    with Draft(draft) as file:
        is_ours = same_as(os.fstat(file.fd))
        try:
            file.append(data)
            if like is not None:
                with like.open("rb") as older:
                    file.become_like(older.fileno())
            file.sync()
            yield
        finally:
            if is_ours(draft):
                draft.unlink()


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def add_name(path: Path, name: Path) -> None:
    """Give a file a second name, on the disk when this returns."""
    os.link(path, name, follow_symlinks=False)
    sync_folder(name.parent)


def has_hard_links(folder: Path) -> bool:
    """Tell whether a file of a folder can have a second name, by trying it with one of ours.

    Some file systems give it one under which it passes for another file (sshfs, mergerfs).
    """
    from tempfile import NamedTemporaryFile  # noqa: PLC0415 - as in `OutputFile`

    with NamedTemporaryFile(prefix=".sessrotate-", dir=folder) as file:
        other = f"{file.name}.link"
        try:
            os.link(file.name, other)
        except OSError as error:
            if error.errno in NO_LINKS:
                return False
            raise
        is_one = os.path.samestat(os.lstat(file.name), os.lstat(other))
        os.unlink(other)  # noqa: PTH108 - as in the rest of this module: one call, one name
    return is_one


def rename_files(names: Mapping[Path, Path]) -> None:
    """Give files other names on the same file system, all on the disk when this returns."""
    for old, new in names.items():
        os.rename(old, new)  # noqa: PTH104 - as in the rest of this module: one call, one name
    for folder in sorted({path.parent for path in (*names.values(), *names)}):
        sync_folder(folder)


def move_files(folder: Path, names: Iterable[str], to: Path) -> None:
    """Move files of a folder to another on the same file system, all on the disk after.

    Raises FileExistsError if something else has the name there.
    """
    create_folder(to)
    for name in names:
        old, new = folder / name, to / name
        if not os.path.lexists(new):
            os.rename(old, new)  # noqa: PTH104 - as above
        elif os.path.samestat(old.lstat(), new.lstat()):
            old.unlink()  # a power loss kept both names; a rename would do nothing
        else:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new))
    sync_folder(to)
    sync_folder(folder)


def append(path: Path, data: bytes) -> None:
    """Append to a file as a client does, in one write where the system can; on the disk after."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | NO_LINK)
    try:
        write_all(fd, data)
        sync(fd)
    finally:
        os.close(fd)


def move_folder(path: Path, name: Path) -> None:
    """Move a folder to a name that nothing has, on the disk when this returns."""
    create_folder(name.parent)
    put(path, name)


def set_time(path: Path, modified_ns: int) -> None:
    """Say when a file or folder was changed last, in nanoseconds since 1970; on the disk after."""
    os.utime(path, ns=(path.lstat().st_atime_ns, modified_ns))
    sync_folder(path)


def remove_folder(path: Path) -> None:
    """Remove a folder if nothing is in it."""
    try:
        path.rmdir()
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}:
            raise
    else:
        sync_folder(path.parent)


@contextlib.contextmanager
def held(path: Path, *, is_clients: bool = False) -> Iterator[None]:
    """Hold a file or folder for this process alone until the block ends.

    Raises BlockingIOError if another process holds it. The system lets go of it when the process
    dies. Where there is no `flock` (Windows), nothing is held. One that `is_clients` is made where
    it is missing, as the client makes it, its name may be a link, and where it cannot be locked,
    OSError is raised: the client relies on it.
    """
    if fcntl is None:
        yield
        return
    # For writing, because network file systems lock only what is open for writing.
    how = os.O_RDONLY if path.is_dir() else os.O_RDWR | (os.O_CREAT if is_clients else NO_LINK)
    fd = os.open(path, NO_WAIT | how, FILE_MODE)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if is_clients or error.errno not in _NO_LOCK:
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


def free_bytes(path: Path) -> int | None:
    """Return how many bytes may still be written where `path` is or would be, if known."""
    for folder in (path, *path.absolute().parents):
        try:
            usage = os.statvfs(folder)
        except FileNotFoundError:
            continue
        except (AttributeError, OSError):
            return None
        return usage.f_bavail * usage.f_frsize if usage.f_blocks else None
    return None


# ── what a user asked for ─────────────────────────────────────────────────────────────────────────


class OutputFile:
    """A file that appears under its name whole or not at all, and never over another.

    Until `publish` its name is `.NAME.X.partial`; without it, nothing but a kill leaves that there.
    """

    def __init__(self, path: Path) -> None:
        from tempfile import mkstemp  # noqa: PLC0415 - wanted only here, and takes a while

        self._path = path
        # Of a long name, a part: the draft's is longer than the file's own.
        self._fd, draft = mkstemp(_PARTIAL, f".{path.name[:_MOST_OF_NAME]}.", path.parent)
        self._draft = Path(draft)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        with contextlib.suppress(OSError):
            self._draft.unlink()

    def append(self, data: bytes | memoryview) -> None:
        """Write all of `data` behind what is there."""
        write_all(self._fd, data)

    def publish(self) -> None:
        """Give the file its name. Raises FileExistsError if something has it already."""
        sync(self._fd)
        put(self._draft, self._path)


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
