"""Writing a long result to a file: a new one, complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from sessrotate import fs
from sessrotate.cli import streams
from sessrotate.errors import RefusedError, StorageError, printable, storage
from sessrotate.system import user_folders


def check(path: Path, option: str) -> None:
    """Raise RefusedError if `write` would, so that no work is done in vain."""
    if path.is_file() or path.is_dir():
        raise _exists(path, option)


def check_folder(path: Path) -> None:
    """Raise RefusedError if anything is there but an empty folder; `-o` is what named it."""
    if os.path.lexists(path) and (not path.is_dir() or any(path.iterdir())):
        raise _exists(path, "-o")


def write(
    path: Path,
    pieces: Iterable[bytes | memoryview],
    doing: str,
    size: int,
    *,
    quiet: bool,
    option: str = "-o",
) -> int:
    """Write the pieces, about `size` bytes in all, to `path`, with a progress bar.

    Returns how many bytes were written. `option` is the option that named the path. Raises
    RefusedError if the path exists: nothing is overwritten. Raises ClosedPipe if `path` is a pipe
    whose reader has gone, StorageError as the system reports.
    """
    if not path.is_absolute():
        user_folders.check_here()
    try:
        with (
            storage("write the output"),
            fs.output(path) as file,
            streams.progress(doing, size, quiet=quiet) as progress,
        ):
            done = 0
            for piece in pieces:
                file.append(piece)
                done += len(piece)
                progress(done)
            file.publish()
            return done
    except StorageError as error:
        if isinstance(error.__cause__, BrokenPipeError):
            raise streams.ClosedPipe from None
        if not isinstance(error.__cause__, FileExistsError):
            raise
        raise _exists(path, option) from None


def _exists(path: Path, option: str) -> RefusedError:
    name = printable(str(path))
    return RefusedError(f"{name} already exists. Remove it, or choose another name with {option}.")
