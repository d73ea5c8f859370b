"""Locks: one process at a time changes a session. Leases: nobody has a file open for writing.

Rule: the system holds a lock and releases it when its holder dies. The lock's file stays for
ever: removing it would split those who wait for it. If the file system cannot lock, nothing is
changed.

Only Linux has leases (fcntl(2), `F_SETLEASE`), and not on every file system; where another machine
may write, a lease would prove nothing, and none is asked for. So there are three answers: taken,
busy (somebody uses the file), or none (no leases here). A process that opens the file meanwhile
waits inside `open` until the lease is released or its holder has died. A read lease needs a
descriptor opened only for reading and is refused while any process has the file open for writing. A
write lease needs ours to be the only descriptor of all.
"""

from __future__ import annotations

import errno
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, Protocol

from sessrotate import fs, platforms
from sessrotate.errors import InUseError, printable, storage
from sessrotate.platforms import fcntl
from sessrotate.system import inside, registered

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
        inside.check_owner(*place.owned)
        inside.check_links(place.ours)
    said = f"Another sessrotate is working on {printable(place.session)}: wait for it to finish."
    with _held(place.lock, wait, said):
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
    """Hold the lock of `sessrotate run` in the block; raise InUseError if another run does."""
    with storage("lock the run"):
        inside.check_owner(file, *file.parents[:3])  # the folder of archives, and the client's
        inside.check_links([file.parent])
    said = "Another `sessrotate run` or `sessrotate tidy` is in progress: wait until it has ended."
    with _held(file, 0, said):
        yield


@contextmanager
def log(file: Path) -> Iterator[None]:
    """Hold the log of runs in the block; raise InUseError if it is not ours in 10 seconds."""
    said = f"Another sessrotate is writing {printable(str(file))}: wait for it to finish."
    with _held(file.with_suffix(".lock"), _PATIENCE, said, "write the log of runs"):
        yield


@contextmanager
def _held(path: Path, wait: float, taken: str, doing: str = "lock the session") -> Iterator[None]:
    import filelock  # noqa: PLC0415 - 40 ms at start-up, wanted only by what changes a session

    lock = filelock.FileLock(path, mode=0o600, timeout=wait, fallback_to_soft=False)
    with storage(doing):
        fs.create_folder(path.parent)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise InUseError(taken) from None
        except NotImplementedError as error:
            raise OSError(*error.args) from None
    try:
        yield
    finally:
        lock.release()


# ── leases ────────────────────────────────────────────────────────────────────────────────────────

Answer = Literal["taken", "busy", "none"]

PAUSE: Final = 0.0005
"""Seconds between two requests: a moment without a writer may be as short."""

GRACE: Final = 0.002
"""Seconds in which one who had found a file's old name comes to open it."""

SETTLE: Final = 0.25
"""Seconds for a write under way to end where there are no leases."""

_BUSY: Final = {errno.EAGAIN, errno.EACCES}


def read_lease(fd: int) -> Answer:
    """Ask for a read lease on the file open as `fd`."""
    return _take(fd, fcntl.F_RDLCK) if platforms.HERE.leases else "none"


def write_lease(fd: int) -> Answer:
    """Ask for a write lease on the file open as `fd`."""
    return _take(fd, fcntl.F_WRLCK) if platforms.HERE.leases else "none"


def within(seconds: float, ask: Callable[[int], Answer], fd: int) -> Answer:
    """Return the first answer of `ask` that is not `busy`, or `busy` after so many seconds."""
    deadline = time.monotonic() + seconds
    while (answer := ask(fd)) == "busy" and time.monotonic() <= deadline:
        time.sleep(PAUSE)
    return answer


def settled(fd: int, answer: Answer) -> bool:
    """Let those finish who had found a file by a name that it has no more; tell whether all did.

    `answer` is that of the read lease on `fd` that was held while the name went; the lease is
    released. Where there are no leases, nothing but time can tell.
    """
    if answer != "taken":
        time.sleep(SETTLE)
        return True
    release_lease(fd)
    time.sleep(GRACE)
    if read_lease(fd) != "taken":
        return False
    release_lease(fd)
    return True


def _take(fd: int, kind: int) -> Answer:
    if registered.is_shared(fd):
        return "none"
    try:
        # Before every F_SETLEASE: releasing one resets it, and the default signal would kill us.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)
    except OSError as error:
        return "busy" if error.errno in _BUSY else "none"
    return "taken"


def is_lease_wanted(fd: int) -> bool:
    """Tell whether somebody waits for the read lease on `fd` to end."""
    return fcntl.fcntl(fd, fcntl.F_GETLEASE) != fcntl.F_RDLCK


def release_lease(fd: int) -> None:
    """Let go of a lease, and of those who wait for it; one that was taken away is gone already."""
    with suppress(BlockingIOError):
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
