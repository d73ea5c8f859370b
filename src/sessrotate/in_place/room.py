"""What a full disk lacks, said in bytes, with what frees some.

Rule: only what failed for want of room is said anew; every other error goes through as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import fs
from sessrotate.errors import (
    MORE_INODES,
    NO_INODES,
    SessrotateError,
    StorageError,
    is_full,
    lacks_inodes,
)
from sessrotate.units import amount

_FREES: Final = (
    "A smaller session needs less; `sessrotate prune --all --empty-trash --grace 0` empties the "
    "trash."
)


STEP: Final = 1024 * 1024
"""Bytes that a rotation copies before it looks at the free room again, and leaves free besides."""

_SHORT: Final = 5
"""One in so many bytes of what was needed is missing where it failed although it seemed to fit."""


class NoRoomError(StorageError):
    """The disk has no room for it now."""


def is_cramped(error: BaseException | None) -> bool:
    """Tell whether something failed only because the disk has no room for it now."""
    return any(isinstance(each, NoRoomError) for each in (error, error and error.__cause__))


class Need(Struct, frozen=True):
    """What a step takes of the disk before it frees any: about `size` bytes, for `what`."""

    size: int = 0
    what: str = ""


NOTHING: Final = Need()


@contextmanager
def told(doing: str, folder: Path, needed: Callable[[], Need]) -> Iterator[None]:
    """Say of a StorageError of a full disk how much room is missing.

    `doing` completes "Cannot …". `needed` returns what it takes on the disk of `folder`, and is
    asked only then; where that cannot be told either, the error stays.
    """
    try:
        yield
    except StorageError as error:
        cause = error.__cause__
        if not is_full(cause):
            raise
        if lacks_inodes(cause):
            raise NoRoomError(f"Cannot {doing}: {NO_INODES}. {MORE_INODES}") from cause
        try:
            need = needed()
        except (SessrotateError, OSError):
            raise error from cause
        size, free, missing = need.size, fs.free_bytes(folder), ""
        if free is not None:
            size = max(size, free + size // _SHORT) if free >= size else size
            lacks = amount(size - free, up=True)
            missing = f", and {amount(free)} is free: make room for {lacks} more"
        raise NoRoomError(
            f"Cannot {doing}: {cause.strerror}. It needs about {amount(size, up=True)} for "
            f"{need.what}{missing}, then try again. {_FREES}"
        ) from cause


def check(folder: Path, need: Need, to_come: int = 0) -> None:
    """Raise NoRoomError of a plan that needs more than the disk of `folder` has free.

    `to_come` is how many bytes that gains before, negative if it takes some.
    """
    missing = lacking(folder, need, to_come)
    if missing:
        needs, free = amount(need.size, up=True), amount(need.size - to_come - missing)
        before = f", {amount(-to_come)} of it for the sessions before" if to_come < 0 else ""
        raise NoRoomError(
            f"The disk is too full: this needs {needs} for {need.what}, and {free} is free{before}."
            f" Make room for {amount(missing, up=True)} more, then try again. {_FREES}"
        )


def lacking(folder: Path, need: Need, to_come: int = 0) -> int:
    """Return how many bytes the disk of `folder` lacks; 0 if none, or nobody can tell."""
    free = fs.free_bytes(folder)
    return 0 if free is None else max(0, need.size - free - to_come)
