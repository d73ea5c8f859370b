"""Only one process at a time changes a session, and only one runs the scheduled job.

Rule: the system holds the lock and releases it when its holder dies. The lock's file stays for
ever: removing it would split those who wait for it. If the file system cannot lock, nothing is
changed.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from sessrotate import fs
from sessrotate.errors import InUseError, printable, storage
from sessrotate.system import ownership

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Lockable(Protocol):
    """What only one process at a time may change."""

    @property
    def session(self) -> str:
        """What messages call it."""

    @property
    def lock(self) -> Path:
        """The file that is held meanwhile."""


@contextmanager
def alone(place: Lockable, wait: float) -> Iterator[None]:
    """Hold a session's lock in the block; raise InUseError if it is not ours in `wait` seconds."""
    said = f"Another sessrotate is working on {printable(place.session)}: wait for it to finish."
    with _held(place.lock, wait, lambda: said):
        yield


@contextmanager
def only_run(file: Path) -> Iterator[None]:
    """Hold the lock of `sessrotate run` in the block; raise InUseError if another run does.

    Its number is beside the lock while it is held, so that the next one can say whose it is.
    """
    number = file.with_suffix(".pid")
    with _held(file, 0, lambda: f"Another `sessrotate run` goes on{_whose(number)}."):
        with suppress(OSError):  # on a full disk nobody knows the number, and that is all
            fs.create_file_at_once(number, b"%d\n" % os.getpid())
        try:
            yield
        finally:
            with suppress(OSError):
                fs.remove_files(number.parent, [number.name])


def _whose(number: Path) -> str:
    try:
        return f" (process {int(number.read_bytes()[:20])})"
    except (OSError, ValueError):
        return ""


@contextmanager
def _held(path: Path, wait: float, taken: Callable[[], str]) -> Iterator[None]:
    import filelock  # noqa: PLC0415 - 40 ms at start-up, wanted only by what changes a session

    lock = filelock.FileLock(path, mode=0o600, timeout=wait, fallback_to_soft=False)
    with storage("lock the session"):
        ownership.check(path)
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
