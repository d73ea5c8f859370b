"""Leases: proof that nobody has a file open for writing, and a way to make new writers wait.

Rule: only Linux has them (fcntl(2), `F_SETLEASE`), and not on every file system. So there are three
answers: taken, busy (somebody uses the file), or none (no leases here). A process that opens the
file meanwhile waits inside `open` until the lease is released or its holder has died.

A read lease needs a descriptor opened only for reading and is refused while any process has the
file open for writing. A write lease needs ours to be the only descriptor of all.
"""

from __future__ import annotations

import errno
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal

from sessrotate import platforms
from sessrotate.platforms import fcntl

Answer = Literal["taken", "busy", "none"]

PAUSE: Final = 0.0005
"""Seconds between two requests: a moment without a writer may be as short."""

GRACE: Final = 0.002
"""Seconds in which one who had found a file's old name comes to open it."""

SETTLE: Final = 0.25
"""Seconds for a write under way to end where there are no leases."""

_BUSY: Final = {errno.EAGAIN, errno.EACCES}


def read(fd: int) -> Answer:
    """Ask for a read lease on the file open as `fd`."""
    return _take(fd, fcntl.F_RDLCK) if platforms.HERE.leases else "none"


def write(fd: int) -> Answer:
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
    release(fd)
    time.sleep(GRACE)
    if read(fd) != "taken":
        return False
    release(fd)
    return True


def _take(fd: int, kind: int) -> Answer:
    try:
        # Before every F_SETLEASE: releasing one resets it, and the default signal would kill us.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)
    except OSError as error:
        return "busy" if error.errno in _BUSY else "none"
    return "taken"


def is_wanted(fd: int) -> bool:
    """Tell whether somebody waits for the read lease on `fd` to end."""
    return fcntl.fcntl(fd, fcntl.F_GETLEASE) != fcntl.F_RDLCK


def release(fd: int) -> None:
    """Let go of a lease, and of those who wait for it; one that was taken away is gone already."""
    with suppress(BlockingIOError):
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
