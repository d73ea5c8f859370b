"""Who uses a session file right now. Only reads, and only what the system tells about processes.

Rule: every process that is known to use it is named. An empty answer proves nothing, because a
client opens the file for each batch of lines and closes it again. A lease is a proof (`locks`).

macOS tells it by libproc. What cannot be known is left out: other users' processes, and all of them
where there is no libproc. Sizes and offsets are those of sys/proc_info.h, the same since macOS
10.5.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from sessrotate import platforms
from sessrotate.errors import InUseError, printable
from sessrotate.system import locks
from sessrotate.system.registered import Processes, registrations

if TYPE_CHECKING:
    from sessrotate.model import FileIdentity
    from sessrotate.system.source import Source

_ALL_PIDS: Final = 1
_LIST_DESCRIPTORS: Final = 1
_VNODE: Final = 1
_VNODE_OF_DESCRIPTOR: Final = 1
"""`PROC_ALL_PIDS`, `PROC_PIDLISTFDS`, `PROX_FDTYPE_VNODE` and `PROC_PIDFDVNODEINFO`."""

_FOR_WRITING: Final = 2
"""`FWRITE` of sys/fcntl.h."""

_DESCRIPTOR: Final = struct.Struct("=iI")
"""`proc_fdinfo`: the descriptor, and what kind it is."""

_INFO: Final = struct.Struct("=I20xIHHQ136x")
"""`vnode_fdinfo`: how it was opened; then the file's device, mode, links and number."""

_MORE: Final = 64
"""Entries of a list that may come between being counted and being read."""


def writers_on_macos(
    files: Container[tuple[int, int]], libproc: Any = None
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the other processes that have one of these files open for writing, and which.

    A file is its device and inode.
    """
    library = libproc or _libproc()
    if library is None:
        return
    for (pid,) in struct.iter_unpack("=i", _list(library.proc_listpids, (_ALL_PIDS, 0), 4)):
        if pid in {0, os.getpid()}:
            continue
        seen = set()
        listed = _list(library.proc_pidinfo, (pid, _LIST_DESCRIPTORS, _u64(0)), _DESCRIPTOR.size)
        for descriptor, kind in _DESCRIPTOR.iter_unpack(listed):
            file = _written(library, pid, descriptor) if kind == _VNODE else None
            if file is not None and file in files and file not in seen:
                seen.add(file)
                yield pid, file


def _written(library: Any, pid: int, descriptor: int) -> tuple[int, int] | None:
    """Return which file a process has open for writing by this descriptor, None if none."""
    import ctypes  # noqa: PLC0415 - 4 ms at start-up, wanted only here

    data = ctypes.create_string_buffer(_INFO.size)
    got = library.proc_pidfdinfo(pid, descriptor, _VNODE_OF_DESCRIPTOR, data, _INFO.size)
    if got != _INFO.size:
        return None
    flags, device, _, _, number = _INFO.unpack(data.raw)
    return (device, number) if flags & _FOR_WRITING else None


def _list(call: Any, arguments: tuple[Any, ...], size: int) -> bytes:
    """Return what a call lists: whole entries of this size, none if it fails."""
    import ctypes  # noqa: PLC0415 - as above

    needed = call(*arguments, None, 0)
    if needed <= 0:
        return b""
    data = ctypes.create_string_buffer(needed + _MORE * size)
    got = max(0, call(*arguments, data, len(data)))
    return data.raw[: got - got % size]


def _u64(value: int) -> Any:
    import ctypes  # noqa: PLC0415 - as above

    return ctypes.c_uint64(value)


def _libproc() -> Any:
    import ctypes  # noqa: PLC0415 - as above

    try:
        return ctypes.CDLL("/usr/lib/libproc.dylib")
    except OSError:
        return None


# ── processes that use a file ─────────────────────────────────────────────────────────────────────

_PROC: Final = Path("/proc")

_PAUSE: Final = 0.1
"""Seconds between two looks at who has a file open."""


class Usable(Protocol):
    """A session that a client may be in."""

    @property
    def session(self) -> str:
        """Its id."""

    @property
    def registries(self) -> tuple[Path, ...]:
        """The folders in which a client that runs it may have registered."""


class User(Struct, frozen=True):
    """A process that uses the session, and how that is known, as part of a sentence.

    `unproved` is the file by which a client says that it does, if it may have ended.
    """

    pid: int
    how: str
    is_client: bool = False
    unproved: Path | None = None


def clients(place: Usable) -> Iterator[User]:
    """Yield the clients that say they are in this session, unless they provably ended.

    2.1.112 and later register while they run (`registered`); older ones say nothing.
    """
    processes = Processes()
    for told in registrations(place.registries):
        if told.session in {place.session, None}:
            known = processes.verdict(told)
            if known == "runs" and told.session is not None:
                yield User(told.pid, "runs the session", is_client=True)
            elif known != "stale":
                how = "may be running the session, in a container or as another user"
                yield User(told.pid, how, is_client=True, unproved=told.file)


def running(registries: Iterable[Path]) -> set[str]:
    """Return the ids of all sessions that clients say they are in, and may be."""
    processes = Processes()
    return {
        told.session
        for told in registrations(registries)
        if told.session is not None and processes.verdict(told) != "stale"
    }


def writers(file: FileIdentity) -> Iterator[User]:
    """Yield the processes that have a file open for writing, as far as we may look at them."""
    for pid, _ in _writing({(file.device, file.inode)}):
        yield User(pid, "has it open for writing")


def written(files: Container[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return those of many files (device, inode) that a process has open for writing."""
    return {file for _, file in _writing(files)}


def _writing(files: Container[tuple[int, int]]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the other processes that have one of these files open for writing, and which."""
    if platforms.HERE.open_files == "libproc":
        yield from writers_on_macos(files)
    if platforms.HERE.open_files != "proc":
        return
    own = str(os.getpid())
    for process in os.listdir(_PROC):  # noqa: PTH208 - thousands of files below: only names
        if process.isdigit() and process != own:
            for file in _written_by(f"{_PROC}/{process}", files):
                yield int(process), file


def _written_by(process: str, files: Container[tuple[int, int]]) -> frozenset[tuple[int, int]]:
    """Return those of the files that a process has open for writing."""
    found = set()
    try:
        numbers = os.listdir(f"{process}/fd")  # noqa: PTH208 - as above
    except OSError:
        return frozenset()  # it has ended, or is another user's
    for number in numbers:
        try:
            status = os.stat(f"{process}/fd/{number}")  # noqa: PTH116 - as above
            file = status.st_dev, status.st_ino
            if file in files and file not in found:
                info = Path(f"{process}/fdinfo/{number}").read_text()
                flags = int(info.partition("flags:")[2].split()[0], 8)
                if flags & os.O_ACCMODE != os.O_RDONLY:
                    found.add(file)
        except (OSError, ValueError, IndexError):
            continue  # it was closed meanwhile
    return frozenset(found)


def check_unused(
    place: Usable,
    live: FileIdentity,
    *,
    wait: float = 0,
    or_live: bool = True,
    fd: int | None = None,
) -> None:
    """Raise InUseError if a client or another process is known to use the live file.

    `wait` is how many seconds to wait for those who have it open for writing. A client that runs
    the session may do so for hours, and nobody waits for that. On `fd` the live file is open, and
    nobody holds a lease.
    """

    def users() -> list[User]:
        # A lease says it at once; to ask all processes takes 10 ms, for each of 5,000 sessions.
        if fd is not None and locks.read_lease(fd) == "taken":
            locks.release_lease(fd)
            return [*clients(place)]
        return [*clients(place), *writers(live)]

    _until_none(users, wait, or_live=or_live)


def check_unwritten(source: Source, wait: float) -> None:
    """Raise InUseError if another process has an open file open for writing, as far as is known.

    `wait` is how many seconds to wait for it.
    """
    if lease_from_writers(source, wait) == "none":
        _until_none(lambda: [*writers(source.identity())], wait, or_live=False)


def _until_none(users: Callable[[], list[User]], wait: float, *, or_live: bool) -> None:
    deadline = time.monotonic() + wait
    while found := users():
        if any(user.is_client for user in found) or time.monotonic() >= deadline:
            raise busy(found, or_live=or_live)
        time.sleep(_PAUSE)


def lease_from_writers(source: Source, wait: float) -> locks.Answer:
    """Take a read lease on an open file: nobody has it open for writing, and nobody new can.

    `wait` is how many seconds to wait for a moment without a writer. Raises InUseError, which
    names the writers, if there is none. Where there are no leases the answer is "none".
    """
    answer = locks.within(wait, locks.read_lease, source.fd)
    if answer == "busy":
        raise busy([*writers(source.identity())])
    return answer


def busy(users: list[User], *, or_live: bool = True) -> InUseError:
    """Return the error that says who uses the session, and what would help.

    With `or_live`, that is `--live` too, where only clients use it.
    """
    told = ", ".join(f"process {user.pid} {user.how}" for user in users[:3])
    are_clients = users and all(user.is_client for user in users)
    help_ = ", or rotate it anyway with --live" if or_live and are_clients else ""
    file = next((user.unproved for user in users if user.unproved is not None), None)
    end = "end the client"
    if file is not None:
        end += f", or remove {printable(str(file))} if it has ended"
    return InUseError(
        f"The session is in use ({told or 'a process writes to it'}): {end}, then try again{help_}."
    )
