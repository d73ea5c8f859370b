"""Who uses a session file right now. Only reads, and only what the system tells about processes.

Rule: every process that is known to use it is named. An empty answer proves nothing, because a
client opens the file for each batch of lines and closes it again. A lease is a proof (`lease`).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from sessrotate.errors import InUseError
from sessrotate.system import lease

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from sessrotate.model import FileIdentity
    from sessrotate.system.source import Source

_PROC: Final = Path("/proc")
_LARGEST: Final = 64 * 1024
_REGISTERED: Final = "runs the session"
_LATE: Final = 60.0
"""Seconds by which a process may seem younger than what it registered: clocks are set."""


class Usable(Protocol):
    """A session that a client may be in."""

    @property
    def session(self) -> str:
        """Its id."""

    @property
    def config(self) -> Path:
        """The client's own folder."""


@dataclass(frozen=True, slots=True)
class User:
    """A process that uses the session, and how that is known, as part of a sentence."""

    pid: int
    how: str


def clients(place: Usable) -> Iterator[User]:
    """Yield the running clients that say they are in this session.

    2.1.112 and later keep `sessions/<pid>.json` in their folder while they run; older ones say
    nothing. A file that a dead process left behind, or that names a pid which is now another
    process's, does not count.
    """
    for session, pid, started in _registered(place.config):
        if session == place.session and _runs(pid, started):
            yield User(pid, _REGISTERED)


def running(config: Path) -> set[str]:
    """Return the ids of all sessions that running clients with this folder say they are in."""
    return {session for session, pid, started in _registered(config) if _runs(pid, started)}


def _registered(config: Path) -> Iterator[tuple[str, int, object]]:
    """Yield what clients left about themselves: session, pid, and when they say they started."""
    folder = config / "sessions"
    try:
        files = sorted(os.listdir(folder))  # noqa: PTH208 - asked for each of thousands
    except OSError:
        return
    for name in files:
        if not name.endswith(".json"):
            continue
        try:
            file = folder / name
            with file.open("rb") as stream:
                found: Any = json.loads(stream.read(_LARGEST))
            pid, session, started = int(file.stem), found["sessionId"], found.get("startedAt")
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
        if isinstance(session, str):
            yield session, pid, started


def _runs(pid: int, started: object) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # it is there, and another user's
    begun = _begun(pid)
    is_other = isinstance(started, (int, float)) and begun and begun > started / 1000 + _LATE
    return not is_other


def _begun(pid: int) -> float | None:
    """Return when a process began, in seconds since 1970, None where the system does not say."""
    try:
        ticks = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
        boot = (_PROC / "stat").read_text().partition("btime ")[2].split()[0]
        return int(boot) + int(ticks) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def writers(file: FileIdentity) -> Iterator[User]:
    """Yield the processes that have a file open for writing, as far as we may look at them."""
    for pid, _ in _writing({(file.device, file.inode)}):
        yield User(pid, "has it open for writing")


def written(files: Container[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return those of many files (device, inode) that a process has open for writing."""
    return {file for _, file in _writing(files)}


def _writing(files: Container[tuple[int, int]]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the other processes that have one of these files open for writing, and which."""
    for process in _PROC.glob("[0-9]*"):
        if process.name == str(os.getpid()):
            continue
        try:
            seen = set()
            for number in os.listdir(process / "fd"):  # noqa: PTH208 - thousands: no objects
                status = os.stat(process / "fd" / number)  # noqa: PTH116
                file = status.st_dev, status.st_ino
                if file in files and file not in seen:
                    info = (process / "fdinfo" / number).read_text()
                    flags = int(info.partition("flags:")[2].split()[0], 8)
                    if flags & os.O_ACCMODE != os.O_RDONLY:
                        seen.add(file)
                        yield int(process.name), file
        except (OSError, ValueError, IndexError):
            continue  # it has ended, or is another user's


def check_unused(place: Usable, live: FileIdentity, *, or_live: bool = True) -> None:
    """Raise InUseError if a client or another process is known to use the live file."""
    users = [*clients(place), *writers(live)]
    if users:
        raise busy(users, or_live=or_live)


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
    are_clients = users and all(user.how == _REGISTERED for user in users)
    help_ = ", or rotate under it with --live" if or_live and are_clients else ""
    return InUseError(
        f"The session is in use ({told or 'a process writes to it'}): end the client, "
        f"then try again{help_}."
    )
