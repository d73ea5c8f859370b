"""Long results: through a pager on a terminal, straight to standard output elsewhere, or to a file.

Rule: a file is a new one, complete or not at all.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate import fs
from sessrotate.cli import streams
from sessrotate.errors import RefusedError, StorageError, WrongUsageError, printable, storage
from sessrotate.system import user_folders

if TYPE_CHECKING:
    Write = Callable[[bytes], None]

_DEFAULT: Final = "less -FRX"
"""Ends by itself if everything fits on the screen, shows colours, and leaves the text there."""

_NOT_RUN: Final = (126, 127)
"""Exit codes by which a shell says that it could not run a command."""


@contextmanager
def paged() -> Iterator[Write]:
    """Yield a function that shows bytes at once; raise WrongUsageError if the pager cannot run."""
    command = _command()
    if command is None:
        yield streams.write_data
        return
    environment = {"LESS": "FRX", **os.environ}
    # Ctrl-C belongs to the pager while it runs; it ends this command by closing the pipe. A
    # handler, other than SIG_IGN, is not inherited by the pager.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    pager = subprocess.Popen(  # noqa: S602 - as git does: $PAGER is the user's own command line
        command, shell=True, stdin=subprocess.PIPE, bufsize=0, env=environment
    )
    try:
        with pager:
            yield lambda data: _give(pager, data)
    except BrokenPipeError:
        raise streams.ClosedPipe from None
    finally:
        signal.signal(signal.SIGINT, before)
        if pager.returncode in _NOT_RUN:
            raise WrongUsageError(
                f"Cannot run the pager {printable(command)}. Set PAGER to another one, or to cat."
            )


def _give(pager: subprocess.Popen[bytes], data: bytes) -> None:
    left = memoryview(data)
    while left and pager.stdin is not None:
        left = left[pager.stdin.write(left) :]


def _command() -> str | None:
    """Return the pager to use, None if there is none or nothing to page."""
    if not sys.stdout.isatty():
        return None
    named = os.environ.get("PAGER")
    if named is not None:
        return None if named.strip() in {"", "cat"} else named
    if os.environ.get("TERM", "") in {"", "dumb"} or shutil.which("less") is None:
        return None
    return _DEFAULT


# ── a file ────────────────────────────────────────────────────────────────────────────────────────


def check_file(path: Path, option: str) -> None:
    """Raise RefusedError if `write` would, so that no work is done in vain."""
    if path.is_file() or path.is_dir():
        raise _exists(path, option)


def check_folder(path: Path) -> None:
    """Raise RefusedError if anything is there but an empty folder; `-o` is what named it."""
    if os.path.lexists(path) and (not path.is_dir() or any(path.iterdir())):
        raise _exists(path, "-o")


def to_file(
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
