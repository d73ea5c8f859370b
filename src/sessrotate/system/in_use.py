"""Who uses a session file right now. Only reads, and only what the system tells about processes.

Rule: every process that is known to use it is named. An empty answer proves nothing, because a
client opens the file for each batch of lines and closes it again. A lease is a proof (`lease`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from sessrotate import platforms
from sessrotate.errors import InUseError, printable
from sessrotate.system import lease, open_on_macos
from sessrotate.system.registered import Processes, registrations

if TYPE_CHECKING:
    from sessrotate.model import FileIdentity
    from sessrotate.system.source import Source

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
        yield from open_on_macos.writing(files)
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
        if fd is not None and lease.read(fd) == "taken":
            lease.release(fd)
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


def lease_from_writers(source: Source, wait: float) -> lease.Answer:
    """Take a read lease on an open file: nobody has it open for writing, and nobody new can.

    `wait` is how many seconds to wait for a moment without a writer. Raises InUseError, which
    names the writers, if there is none. Where there are no leases the answer is "none".
    """
    answer = lease.within(wait, lease.read, source.fd)
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
