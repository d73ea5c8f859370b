"""What the systems that we run on can do: the one place that asks which system this is.

Promise: with `PORTABLE` in the place of `HERE`, everything runs as on a system that has nothing of
its own. What is promised on each is in docs/guide/platforms.md.

Rule: no other module asks for a system's name, or whether Python has a call of it. Whether a file
system can do what its system can is known only from its answer, so whoever calls looks at that.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

try:
    import fcntl as fcntl  # noqa: PLC0414 - from here, everybody else has it
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # the stubs know only systems that have it

NAME: Final = sys.platform

_M_ARENA_MAX: Final = -8
"""Of glibc's malloc.h."""

NO_LINK: Final[int] = getattr(os, "O_NOFOLLOW", 0)
"""Open no symbolic link."""

NO_WAIT: Final[int] = getattr(os, "O_NONBLOCK", 0)
"""Do not wait for a pipe's other end, or for whoever has a lease."""

ONLY_FOLDER: Final[int] = getattr(os, "O_DIRECTORY", 0)

SEEK_DATA: Final[int | None] = getattr(os, "SEEK_DATA", None)
"""Look for what of a file is no hole."""

BINARY: Final[int] = getattr(os, "O_BINARY", 0)
"""Windows changes newlines without it."""

ONLY_LOOK: Final[int] = NO_LINK | NO_WAIT | getattr(os, "O_PATH", 0)
"""Open whatever has a name, to see what it is; whoever has a lease on it is not disturbed."""


@dataclass(frozen=True, slots=True)
class Platform:
    """What a system has of its own, and what is done where it has not."""

    leases: bool
    """`F_SETLEASE` (Linux). Without it, replaced files are kept for a quiet day: `system.locks`."""

    exact_renames: Literal["renameat2", "renameatx_np"] | None
    """Two names that exchange their files at once. Without it, a look comes before the rename, and
    what another program saves in between is lost: `fs.exact`."""

    attributes: Literal["xattr", "fcopyfile"] | None
    """How attributes and ACLs are kept. Without it, they are not seen: `fs.files`."""

    flags: bool
    """`FS_IOC_GETFLAGS` (Linux with longs of 64 bits). Without it, as with attributes."""

    open_files: Literal["proc", "libproc"] | None
    """Who tells which files other processes have open. Without it, nobody: `system.in_use`."""

    full_sync: int | None
    """`F_FULLFSYNC` (macOS), by which the disk writes its cache too; else `fsync` does."""

    syncs_folders: bool
    """Whether a folder is opened to have its names written; on Windows they are written through."""

    opens_in_folders: bool
    """Whether a name is opened in an open folder. Without it, a file is compared with what its path
    names: `system.inside`."""

    reads_at: bool
    """`preadv`. Without it, threads take turns: `system.source`."""

    hastens: bool
    """`posix_fadvise`, which has the disk begin early. Without it, a sync takes longer."""

    forks: bool
    """Without it, `sessrotate hook` and long lists do their work in one process."""

    probes: bool
    """Whether the signal 0 is harmless. Without it, a registered process counts as running."""


def here() -> Platform:
    """Return what the system that runs us can do."""
    is_linux, is_mac = NAME == "linux", NAME == "darwin"
    attributes: Literal["xattr", "fcopyfile"] | None = "fcopyfile" if is_mac else None
    return Platform(
        leases=hasattr(fcntl, "F_SETLEASE"),
        exact_renames="renameat2" if is_linux else "renameatx_np" if is_mac else None,
        attributes="xattr" if hasattr(os, "listxattr") else attributes,
        flags=is_linux and sys.maxsize > 1 << 32,
        open_files="proc" if is_linux else "libproc" if is_mac else None,
        full_sync=getattr(fcntl, "F_FULLFSYNC", None),
        syncs_folders=os.name != "nt",
        opens_in_folders=bool(NO_LINK) and os.open in os.supports_dir_fd,
        reads_at=hasattr(os, "preadv"),
        hastens=hasattr(os, "posix_fadvise"),
        forks=hasattr(os, "fork"),
        probes=os.name != "nt",
    )


PORTABLE: Final = Platform(
    leases=False,
    exact_renames=None,
    attributes=None,
    flags=False,
    open_files=None,
    full_sync=None,
    syncs_folders=True,
    opens_in_folders=False,
    reads_at=False,
    hastens=False,
    forks=False,
    probes=True,
)
"""A system that has nothing of its own, but folders and processes as Unix has them."""

HERE: Platform = here()
"""What is used. Tests put another here."""


def is_ours(owner: int) -> bool:
    """Tell whether the user who runs us has this number; yes where files have no owners."""
    return not hasattr(os, "geteuid") or owner == os.geteuid()


def is_root() -> bool:
    """Tell whether root runs us."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def processors() -> int:
    """Return on how many processors we may run."""
    # On macOS, where this is not known, a fork may not do much without an exec.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def can_fork() -> bool:
    """Tell whether a second process is of use, and safe: no other thread may hold a lock."""
    return processors() > 1 and threading.active_count() == 1


def pool(threads: int) -> ThreadPoolExecutor:
    """Return a pool of so many threads, which share the memory that each of them has freed."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - 6 ms at start-up

    _share_memory()
    return ThreadPoolExecutor(threads)


@lru_cache(maxsize=1)
def _share_memory() -> None:
    """Have the C library keep what threads free in one place (glibc: mallopt(3), M_ARENA_MAX).

    Left to itself it keeps that for each thread, and a new batch has new threads. It counts if no
    thread has asked for memory before.
    """
    import ctypes  # noqa: PLC0415 - 4 ms at start-up

    with suppress(AttributeError, OSError, TypeError):  # no such function; no such library
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
