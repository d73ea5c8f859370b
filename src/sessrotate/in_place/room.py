"""What a full disk lacks, said in bytes, with what frees some.

Rule: only what failed for want of room is said anew; every other error goes through as it is.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sessrotate import fs
from sessrotate.errors import SessrotateError, StorageError, is_full

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_FREES: Final = (
    "A smaller session needs less, and `sessrotate prune --all --empty-trash --grace 0` frees "
    "what is in the trash."
)


class NoRoomError(StorageError):
    """The disk has no room for it now."""


@contextmanager
def told(doing: str, folder: Path, needed: Callable[[], int], what: str) -> Iterator[None]:
    """Say of a StorageError of a full disk how much room is missing.

    `doing` completes "Cannot …". `needed` returns how many bytes it takes on the disk of `folder`,
    for `what`, and is asked only then; where that cannot be told either, the error stays.
    """
    try:
        yield
    except StorageError as error:
        cause = error.__cause__
        if not is_full(cause):
            raise
        try:
            needs = needed()
        except (SessrotateError, OSError):
            raise error from cause
        free, missing = fs.free_bytes(folder), ""
        if free is not None and free < needs:
            missing = f", and {free:,} are free: make room for {needs - free:,} more"
        raise NoRoomError(
            f"Cannot {doing}: {cause.strerror}. "
            f"It needs about {needs:,} bytes for {what}{missing}, then try again. {_FREES}"
        ) from cause


def short(folder: Path, needs: int, what: str, to_come: int = 0) -> NoRoomError | None:
    """Return what to say of a plan that needs more bytes for `what` than the disk has, else None.

    `to_come` is how many bytes the disk of `folder` gains before.
    """
    free = fs.free_bytes(folder)
    if free is None or free + to_come >= needs:
        return None
    missing = needs - free - to_come
    return NoRoomError(
        f"The disk has no room for it: {needs:,} bytes for {what}, and {free:,} are free. "
        f"Make room for {missing:,} more, then try again. {_FREES}"
    )
