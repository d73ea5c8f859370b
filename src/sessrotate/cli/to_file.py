"""Where a long result goes that was given a name: a new file, whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate import fs
from sessrotate.cli import streams
from sessrotate.errors import RefusedError, StorageError, printable, storage

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def check(path: Path, option: str) -> None:
    """Raise RefusedError where `write` would, before the work begins that comes first."""
    if path.is_file() or path.is_dir():
        raise _exists(path, option)


def write(
    path: Path,
    pieces: Iterable[bytes | memoryview],
    doing: str,
    size: int,
    *,
    quiet: bool,
    option: str = "-o",
) -> None:
    """Write the pieces, of about `size` bytes together, to `path`; a bar says what is done.

    `option` is what gave the path. Raises RefusedError if something has that name: nothing is
    written over. Raises ClosedPipe if `path` is a pipe whose reader has gone, StorageError as the
    system reports.
    """
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
    except StorageError as error:
        if isinstance(error.__cause__, BrokenPipeError):
            raise streams.ClosedPipe from None
        if not isinstance(error.__cause__, FileExistsError):
            raise
        raise _exists(path, option) from None


def _exists(path: Path, option: str) -> RefusedError:
    name = printable(str(path))
    return RefusedError(f"{name} exists: remove it, or name another with {option}.")
