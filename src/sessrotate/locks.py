"""One process at a time changes a session.

Rule: the system holds the lock and lets go of it when its holder dies; its file stays for ever,
because who unlinks a lock splits those who wait for it. Where the file system cannot lock,
nothing is changed.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sessrotate import fs
from sessrotate.errors import InUseError, printable, storage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.place import Place


@contextmanager
def alone(place: Place, wait: float) -> Iterator[None]:
    """Hold a session's lock in the block; raise InUseError if it is not ours in `wait` seconds."""
    import filelock  # noqa: PLC0415 - 40 ms at start-up, wanted only by what changes a session

    lock = filelock.FileLock(place.lock, mode=0o600, timeout=wait, fallback_to_soft=False)
    with storage("lock the session"):
        fs.create_folder(place.lock.parent)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise InUseError(
                f"Another sessrotate works on {printable(place.session)}: wait for it."
            ) from None
        except NotImplementedError as error:
            raise OSError(*error.args) from None
    try:
        yield
    finally:
        lock.release()
