"""Clients that say that they run: what they registered, and whether that can still be true.

Rule: only proof makes a registration stale. What cannot be known counts as running.

2.1.112 and later keep `sessions/<pid>.json` in their folder while they run, and remove it when they
end; one that was killed leaves it behind. The number in it is that of the client's own process
namespace: a client in a container has another one here. 2.1.330 also tells its namespace
(`pidDomain`, on Linux "linux:" machine-id ":" namespace) and its start in clock ticks since the
machine's (`procStart`, field 22 of /proc/PID/stat), which is exact.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import platforms

PROC: Final = Path("/proc")
_LARGEST: Final = 64 * 1024
_SAME: Final = 60.0
"""Seconds between a process's start and what it registered: clocks are set."""
_LATEST: Final = 1e14
"""Milliseconds since 1970 that are a date; what is more cannot be compared."""

MACHINE: Final = Path("/etc/machine-id")
"""Has the machine's id (machine-id(5))."""

_ID: Final = 32
"""Digits of its id, if it has one."""

_FIRST_NAMESPACE: Final = "pid:[4026531836]"
"""PROC_PID_INIT_INO of the kernel: whoever is in it sees the processes of all containers."""

_KERNELS: Final = 0x00200000
"""PF_KTHREAD of the kernel, in field 9 of /proc/PID/stat: a thread of its own, and no program."""

_LOCAL: Final = {
    *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "nilfs2"),
    *("tmpfs", "ramfs", "overlay", "aufs", "vfat", "msdos", "exfat", "ntfs3", "hfs", "hfsplus"),
}
"""File systems that no other machine writes to. Any other may have writers on another side."""

Verdict = Literal["runs", "unknown", "stale"]


class Registration(Struct, frozen=True):
    """What a client left about itself.

    `session` is None if we may not read it. `started` is when it says it began, and `written` when
    the file was last changed, both in seconds since 1970; `ticks` is its `procStart`.
    """

    file: Path
    pid: int
    session: str | None
    written: float
    started: float | None = None
    ticks: str | None = None
    domain: str | None = None
    folder: str | None = None


class Evidence(Struct, frozen=True):
    """What this system shows about a registration.

    `processes` are those with its number, here or in a container that is seen from here: True for
    one that began when the client says, or where that cannot be compared; False for one that
    provably is another; None for one that began at another time by a clock that may have been set
    since. `is_ours` says whether it registered in our namespace, None if it does not tell.
    `is_older` says that it registered before the only machine that can have written it was
    started; `sees_all`, that every process that may use the folder is seen from here.
    """

    processes: tuple[bool | None, ...] = ()
    is_ours: bool | None = None
    is_older: bool = False
    sees_all: bool = False


def verdict(seen: Evidence) -> Verdict:
    """Return whether a registered client runs. Pure; the first row that fits counts.

    | a process with its number            | and                                      | verdict |
    |--------------------------------------|------------------------------------------|---------|
    | began when the client says           |                                          | runs    |
    | is there, and cannot be compared     |                                          | runs    |
    | is there, of another time by clocks  |                                          | unknown |
    | there is none, or provably another   | it registered in our namespace           | stale   |
    | there is none, or provably another   | it registered before the machine started | stale   |
    | there is none, or provably another   | it registered in another namespace       | unknown |
    | there is none, or provably another   | all that may use the folder are seen     | stale   |
    | there is none, or provably another   | not all are (a container, a network)     | unknown |

    Without ticks, times are the same within a minute. Others prove nothing: a clock that is stepped
    (a virtual machine goes on, NTP) moves the start of all processes, and that of the machine.
    """
    if True in seen.processes:
        return "runs"
    if None in seen.processes:
        return "unknown"
    if seen.is_ours or seen.is_older:
        return "stale"
    return "stale" if seen.sees_all and seen.is_ours is None else "unknown"


# ── what clients left ────────────────────────────────────────────────────────────────────────


def registrations(registries: Iterable[Path]) -> Iterator[Registration]:
    """Yield what clients left in these folders; what is no registration says nothing."""
    for folder in registries:
        try:
            files = sorted(os.listdir(folder))  # noqa: PTH208 - asked for each of thousands
        except OSError:
            continue
        for name in files:
            number = name.removesuffix(".json")
            if number != name and number.isdecimal() and number.isascii():
                found = _registration(folder / name, int(number))
                if found is not None:
                    yield found


def _registration(file: Path, pid: int) -> Registration | None:
    try:
        with file.open("rb") as stream:
            written = os.fstat(stream.fileno()).st_mtime
            found: Any = json.loads(stream.read(_LARGEST))
        session, started = found["sessionId"], found.get("startedAt")
    except OSError as error:
        if error.errno != errno.EACCES:
            return None
        with contextlib.suppress(OSError):  # another user's: it may be any session's
            return Registration(file, pid, None, file.stat().st_mtime)
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if not isinstance(session, str):
        return None
    is_time = isinstance(started, (int, float)) and started < _LATEST
    return Registration(
        file=file,
        pid=pid,
        session=session,
        written=written,
        started=started / 1000 if is_time else None,
        ticks=_text(found.get("procStart")),
        domain=_text(found.get("pidDomain")),
        folder=_text(found.get("cwd")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


# ── what the system shows ────────────────────────────────────────────────────────────────────


class Processes:
    """The processes of this system, each looked at when it is first asked for."""

    def __init__(self) -> None:
        self._inner: dict[int, list[int]] | None = None

    def verdict(self, told: Registration) -> Verdict:
        """Return whether a registered client runs."""
        is_network = is_beyond(told.file)
        seen = Evidence(
            processes=(_is_same(told, told.pid),) if _exists(told.pid) else (),
            is_ours=_is_ours(told),
        )
        if verdict(seen) != "unknown":
            return verdict(seen)
        if not PROC.is_dir():  # one in a virtual machine most likely has another folder
            is_here = told.folder is not None and os.path.isdir(told.folder)  # noqa: PTH112
            return verdict(replace(seen, sees_all=is_here and not is_network))
        inner = tuple(_is_same(told, pid) for pid in self._of_containers(told.pid))
        boot = _boot()
        seen = replace(
            seen,
            processes=seen.processes + inner,
            is_older=not is_network and boot is not None and told.written < boot - _SAME,
            # Not by the kind of file system: even a container's root may be bound into another.
            sees_all=not is_network and _is_outermost(),
        )
        return verdict(seen)

    def _of_containers(self, number: int) -> list[int]:
        """Return the processes (by our numbers) that have this number in a container."""
        if self._inner is None:
            self._inner = {}
            for status in PROC.glob("[0-9]*/status"):
                try:
                    line = status.read_text().partition("NSpid:")[2].partition("\n")[0]
                except OSError:
                    continue  # it has ended
                numbers = line.split()
                if len(numbers) > 1:
                    self._inner.setdefault(int(numbers[-1]), []).append(int(status.parent.name))
        return self._inner.get(number, [])


def _is_same(told: Registration, pid: int) -> bool | None:
    """Tell whether a process with its number counts as the client; as in `Evidence.processes`."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        flags, ticks = int(fields[6]), fields[19]
        if told.ticks is not None and told.ticks.isdecimal():
            return ticks == told.ticks
        if flags & _KERNELS:  # they have low numbers, as clients in containers do
            return False
        boot = _boot()
        if boot is None or told.started is None:
            return True
        began = boot + int(ticks) / os.sysconf("SC_CLK_TCK")
        return abs(began - told.started) <= _SAME or None
    except (OSError, ValueError, IndexError):
        return True


def _exists(pid: int) -> bool:
    if not platforms.HERE.probes:
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # it is there, and another user's
    return True


def _boot() -> float | None:
    try:
        return float((PROC / "stat").read_text().partition("btime ")[2].split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _is_ours(told: Registration) -> bool | None:
    """Tell whether a client registered in our namespace; None if it or this machine tells none."""
    ours = _domain()
    if told.domain is None or (ours is None and PROC.is_dir()):  # without, it is Linux's elsewhere
        return None
    return told.domain == ours


def _domain() -> str | None:
    """Return what 2.1.330 calls the namespace of our processes, None where we cannot tell."""
    try:
        machine = MACHINE.read_text().strip()
        namespace = os.readlink(PROC / "self/ns/pid")  # noqa: PTH115 - no path
    except (OSError, ValueError):
        return None
    # Without its id ("uninitialized" in an image), any other machine's namespace has that name.
    return f"linux:{machine}:{namespace}" if len(machine) == _ID else None


def _is_outermost() -> bool:
    """Tell whether the processes of all containers of this machine are seen from here."""
    try:
        is_first = os.readlink(PROC / "self/ns/pid") == _FIRST_NAMESPACE  # noqa: PTH115 - no path
    except OSError:
        return False
    return is_first and (PROC / "1").exists()  # or those of other users are hidden (`hidepid`)


def is_beyond(file: Path) -> bool:
    """Tell whether another machine may write to a file. If that cannot be told, it may."""
    kind = _file_system(file)
    return kind not in _LOCAL and (kind is not None or PROC.is_dir())


def is_shared(fd: int) -> bool:
    """Tell whether an open file is known to be in a file system that others may write to.

    There a lease proves nothing: Linux grants one on FUSE (6.18, bindfs and sshfs), which knows of
    no writer on the other side.
    """
    with contextlib.suppress(OSError):
        return _is_shared(os.readlink(PROC / "self/fd" / str(fd)))  # noqa: PTH115 - no path yet
    return False


@lru_cache(maxsize=64)
def _is_shared(path: str) -> bool:
    kind = _file_system(Path(path))
    return kind is not None and kind not in _LOCAL


def _file_system(file: Path) -> str | None:
    """Return what kind of file system a file is in, None if the system does not tell."""
    path, kind, depth = os.path.realpath(file), None, -1
    try:
        mounts = (PROC / "self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    for line in mounts:
        fields = line.split()
        point = fields[4].encode("utf-8", "surrogateescape").decode("unicode_escape")
        is_above = path == point or path.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= depth:  # the last one that was mounted there counts
            kind, depth = fields[fields.index("-", 6) + 1], len(point)
    return kind
