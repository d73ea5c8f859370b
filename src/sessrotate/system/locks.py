"""Only one process at a time changes a session, and only one runs the scheduled job.

Rule: the system holds the lock and releases it when its holder dies. The lock's file stays for
ever: removing it would split those who wait for it. If the file system cannot lock, nothing is
changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

from sessrotate import fs, platforms
from sessrotate.errors import DamagedError, InUseError, printable, storage
from sessrotate.system import inside, ownership

_SCARCE: Final = 1024 * 1024
"""Bytes of a disk that are so few that a session may need each block of them."""

_PATIENCE: Final = 10.0
"""Seconds to wait for the log of runs, which a process holds as long as it writes a line."""


class Lockable(Protocol):
    """What only one process at a time may change."""

    @property
    def session(self) -> str:
        """What messages call it."""

    @property
    def lock(self) -> Path:
        """The file that is held meanwhile."""

    @property
    def ours(self) -> tuple[Path, ...]:
        """The folders that may not be links, because something is created in them."""

    @property
    def owned(self) -> tuple[Path, ...]:
        """What must not be another user's where root runs us."""


@contextmanager
def alone(place: Lockable, wait: float) -> Iterator[None]:
    """Hold a session's lock in the block; raise InUseError if it is not ours in `wait` seconds.

    Raises RefusedError if a folder of the session is a link, or root is not its owner.
    """
    with storage("lock the session"):
        ownership.check(*place.owned)
        ownership.check_links(place.ours)
    said = f"Another sessrotate is working on {printable(place.session)}: wait for it to finish."
    with _held(place.lock, wait, lambda: said):
        yield


def is_held(file: Path) -> bool:
    """Tell whether a process is known to hold the lock of a file; only Linux tells (proc_locks(5)).

    Nothing is locked for it: whoever wants the lock meanwhile gets it.
    """
    if platforms.HERE.open_files != "proc":
        return False
    try:
        end = f":{file.stat().st_ino}"
        held = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return False
    # 1: FLOCK  ADVISORY  WRITE 3420 08:02:11665 0 EOF
    return any(line.split()[5].endswith(end) for line in held if "->" not in line)


@contextmanager
def only_run(file: Path) -> Iterator[None]:
    """Hold the lock of `sessrotate run` in the block; raise InUseError if another run does.

    Its number is beside the lock while it is held, so that the next one can say whose it is.
    """
    with storage("lock the run"):
        ownership.check(file, *file.parents[:3])  # the folder of archives, and the client's
        ownership.check_links([file.parent])
    number = file.with_suffix(".pid")
    said = "Another `sessrotate run` or `sessrotate tidy` is in progress"
    with _held(file, 0, lambda: f"{said}{_whose(number)}: wait until it has ended."):
        free = fs.free_bytes(number.parent)
        if free is None or free > _SCARCE:  # else nobody knows the number, and that is all
            with suppress(OSError):
                fs.create_file_at_once(number, b"%d\n" % os.getpid())
        try:
            yield
        finally:
            with suppress(OSError):
                fs.remove_files(number.parent, [number.name])


@contextmanager
def log(file: Path) -> Iterator[None]:
    """Hold the log of runs in the block; raise InUseError if it is not ours in 10 seconds."""
    said = f"Another sessrotate is writing {printable(str(file))}: wait for it to finish."
    with _held(file.with_suffix(".lock"), _PATIENCE, lambda: said, "write the log of runs"):
        yield


def _whose(number: Path) -> str:
    try:
        fd = inside.opened(number.parent, number.name)
        try:
            return f" (process {int(os.read(fd, 20))})"
        finally:
            os.close(fd)
    except (DamagedError, OSError, ValueError):
        return ""


@contextmanager
def _held(
    path: Path, wait: float, taken: Callable[[], str], doing: str = "lock the session"
) -> Iterator[None]:
    import filelock  # noqa: PLC0415 - 40 ms at start-up, wanted only by what changes a session

    lock = filelock.FileLock(path, mode=0o600, timeout=wait, fallback_to_soft=False)
    with storage(doing):
        fs.create_folder(path.parent)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise InUseError(taken()) from None
        except NotImplementedError as error:
            raise OSError(*error.args) from None
    try:
        yield
    finally:
        lock.release()
