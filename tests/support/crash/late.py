"""Lines that come to a session after a crash: to the new file, and to the one that it replaced."""

from __future__ import annotations

import contextlib
import os
from functools import cache
from typing import TYPE_CHECKING, Self

from support.crash.changes import killed
from support.crash.scenes import LATE, MEANWHILE, scene

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.crash.disk import Image
    from support.crash.scenes import Scene, Session


class Client:
    """One who found the live file under its name before it was replaced, and writes only now."""

    def __init__(self, found: Session) -> None:
        self._found = found
        # Knows the file without having it open: sealing waits for whoever reads it.
        self._fd = os.open(found.where.live, os.O_PATH)
        self._size = os.fstat(self._fd).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def is_replaced(self) -> bool:
        return not os.path.samestat(os.fstat(self._fd), self._found.where.live.stat())

    def is_heard(self) -> bool:
        """Tell whether it was not yet proved that there is no such client.

        The replaced file is shortened, renamed or removed only after that.
        """
        status = os.fstat(self._fd)
        pack = self._found.where.pack
        is_there = not self.is_replaced() or (
            pack.exists() and os.path.samestat(status, pack.stat())
        )
        return is_there and status.st_size >= self._size

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        """Open the file for appending, whatever its name is by now."""
        fd = os.open(f"/proc/self/fd/{self._fd}", os.O_WRONLY | os.O_APPEND)
        try:
            yield fd
        finally:
            os.close(fd)

    def write(self, data: bytes) -> None:
        with self.opened() as fd:
            os.write(fd, data)


def appended_late(found: Session, client: Client, history: bytes) -> bytes | None:
    """Let lines come to both files after a crash; return the history, None if none may come."""
    if not client.is_heard():
        return None
    client.write(LATE)
    found.append(MEANWHILE)
    return history + (MEANWHILE + LATE if client.is_replaced() else LATE + MEANWHILE)


def killed_beside_a_client(of: Scene) -> Iterator[tuple[Session, Client]]:
    """Kill a scene at each call in turn; yield what is left, and a client with the file open."""

    @contextlib.contextmanager
    def both() -> Iterator[tuple[Session, Client]]:
        with of.begun() as found, Client(found) as client:
            yield found, client

    return killed(both, lambda each: of.run(each[0]))


@cache
def late_states(name: str) -> set[Image]:
    """Return the states with lines in both files that a kill after the swap leaves."""
    of = scene(name)
    return {
        found.image()
        for found, client in killed_beside_a_client(of)
        if appended_late(found, client, of.history) and client.is_replaced()
    }
