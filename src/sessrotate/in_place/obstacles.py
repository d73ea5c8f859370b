"""Reasons not to replace a live file. Only reads.

Rule: each reason says what to do about it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sessrotate.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.archive.place import Place
    from sessrotate.system.source import Source


def obstacles(place: Place, source: Source, names: int) -> Iterator[str]:
    """Yield the reasons; the live file is open as `source`, and `names` is how many we gave it."""
    name = printable(str(place.live))
    status = os.fstat(source.fd)
    if place.live.is_symlink():
        yield f"{name} is a symbolic link: put the file itself in its place."
    if status.st_nlink - names > 1:
        yield f"{name} has another name (a hard link): remove that, or put a copy in its place."
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        yield f"{name} belongs to another user: run this as that user."
    if _device(place) != status.st_dev:
        yield (
            f"{printable(str(place.archive))} would be on another file system than the session, "
            "where a file cannot be moved at once: make it a folder on the same one."
        )


def _device(place: Place) -> int:
    folder = place.archive
    while True:
        try:
            return folder.stat().st_dev
        except (FileNotFoundError, NotADirectoryError):
            folder = folder.parent
