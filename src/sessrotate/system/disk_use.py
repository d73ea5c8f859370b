"""What files take of the disk: the blocks that are allocated for them, not how long they are.

Rule: only looks. A file with several names counts once, links are not followed, and what goes
while it is looked at counts nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_BLOCK: Final = 512
"""Bytes of a block of `st_blocks`, whatever the file system's are (stat(2))."""


def of(*paths: Path) -> int:
    """Return how many bytes of the disk these files and folders, and all below them, take."""
    found = {(status.st_dev, status.st_ino): status for status in seen(*paths)}
    return sum(map(allocated, found.values()))


def seen(*paths: str | Path) -> Iterator[os.stat_result]:
    """Yield the status of these files and folders, and of all below them, as far as they are there.

    In the order of the paths, and each before what is in it.
    """
    for path in paths:
        yield from _below(path)


def allocated(status: os.stat_result) -> int:
    """Return how many bytes of the disk a file takes; its length where nobody tells (Windows)."""
    blocks: int | None = getattr(status, "st_blocks", None)
    return status.st_size if blocks is None else blocks * _BLOCK


def _below(path: str | Path | os.DirEntry[str]) -> Iterator[os.stat_result]:
    with suppress(OSError):
        status = os.lstat(path)
        yield status
        if stat.S_ISDIR(status.st_mode):
            with os.scandir(path) as entries:
                for entry in entries:
                    yield from _below(entry)
