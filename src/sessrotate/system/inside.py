"""Which files and folders may be trusted: to be read, and to have something created in them.

Rule: no link below the folder is followed, and only a regular file of the folder's owner, or of the
user, is opened: nothing else than that file is ever opened. A pipe is never waited for. The folder
itself is the caller's choice.

Nothing is created in another user's folder by root, nor in any folder behind a link of ours. That
is checked before the first file or folder is created. `sudo sessrotate` would lock users out of
their own sessions, and a link below the folder of archives would lead what we write anywhere.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from sessrotate import platforms
from sessrotate.errors import DamagedError, RefusedError, printable
from sessrotate.platforms import BINARY, NO_LINK, NO_WAIT, ONLY_FOLDER

_IN: Final = os.O_RDONLY | ONLY_FOLDER
_LAST: Final = os.O_RDONLY | BINARY

_IS_LINK: Final = {errno.ELOOP, errno.EMLINK}
"""What Linux and macOS, and what FreeBSD answers to O_NOFOLLOW (open(2))."""

LINK: Final = "it is a symbolic link"


def opened(folder: Path, name: str) -> int:
    """Open a file below a folder for reading; return its descriptor, which the caller closes.

    `name` is a path below the folder, with "/". Raises DamagedError, with the end of a sentence
    about the file, if it is not a regular file of the folder's owner or of the user, or is reached
    by a link; OSError as the system reports.
    """
    parts = name.split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or "\0" in name:
        raise DamagedError("it is outside of its folder")
    if not platforms.HERE.opens_in_folders:
        return _compared(folder, parts)
    here = os.open(folder, _IN)
    try:
        owner = os.fstat(here).st_uid
        for part in parts[:-1]:
            below = os.open(part, _IN | NO_LINK, dir_fd=here)
            os.close(here)
            here = below
        return _checked(opened_at(parts[-1], here), owner)
    finally:
        os.close(here)


def opened_at(path: str | Path, folder: int | None = None) -> int:
    """Open a file for reading; raise DamagedError if it is a link, OSError as the system reports.

    `folder` is the descriptor of the folder that `path` is in, if it is a name.
    """
    try:
        return open_soon(path, NO_LINK, folder)
    except OSError as error:
        if error.errno in _IS_LINK:
            raise DamagedError(LINK) from None
        raise


def open_soon(path: str | os.PathLike[str], flags: int = 0, folder: int | None = None) -> int:
    """Open a file for reading, also one that a rotation holds for some milliseconds.

    `flags` are besides those for reading, `folder` is as in `opened_at`. Raises OSError as the
    system reports.
    """
    try:
        # Not blocking: a pipe must be refused, not waited for.
        return os.open(path, _LAST | flags | NO_WAIT, dir_fd=folder)
    except BlockingIOError:  # it is held (fcntl(2), leases)
        return os.open(path, _LAST | flags, dir_fd=folder)


def _checked(fd: int, owner: int) -> int:
    status = os.fstat(fd)
    problem = None
    if not stat.S_ISREG(status.st_mode):
        problem = "it is not a regular file"
    elif status.st_uid != owner and not platforms.is_ours(status.st_uid):
        problem = "it belongs to another user"
    if problem is not None:
        os.close(fd)
        raise DamagedError(problem)
    return fd


def _compared(folder: Path, parts: list[str]) -> int:
    """Open a file where only paths can be opened: what was opened must be what was looked at."""
    path = folder
    for part in parts:
        path = path / part
        before = path.lstat()
        if stat.S_ISLNK(before.st_mode):
            raise DamagedError(LINK)
    if not stat.S_ISREG(before.st_mode):
        raise DamagedError("it is not a regular file")
    fd = _checked(os.open(path, _LAST), folder.stat().st_uid)
    if not os.path.samestat(before, os.fstat(fd)):
        os.close(fd)
        raise DamagedError("it was replaced while it was opened")
    return fd


# ── where something is created ────────────────────────────────────────────────────────────────────


def check_owner(*paths: Path) -> None:
    """Raise RefusedError if we are root, and what a path is or would be in is another user's."""
    if platforms.is_root():
        for path in dict.fromkeys(paths):
            _check(path)


def check_links(folders: Iterable[Path]) -> None:
    """Raise RefusedError if one of these folders of ours is a link."""
    for folder in folders:
        if folder.is_symlink():
            raise RefusedError(
                f"{printable(str(folder))} is a symbolic link: remove the link, or put the folder "
                "itself in its place."
            )


def _check(path: Path) -> None:
    for folder in (path, *path.absolute().parents):
        try:
            owner = folder.stat().st_uid
        except (FileNotFoundError, NotADirectoryError):
            continue
        if owner != 0:
            raise RefusedError(
                f"{printable(str(folder))} belongs to {_user(owner)}, and root would lock them out "
                "of it: run this as that user, without sudo."
            )
        return


def _user(owner: int) -> str:
    import pwd  # noqa: PLC0415 - there is none on Windows, where nobody is root

    try:
        return f"the user {printable(pwd.getpwuid(owner).pw_name)}"
    except KeyError:
        return f"user {owner}"
