"""Long results: through a pager on a terminal, straight to standard output elsewhere."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sessrotate.cli import streams
from sessrotate.errors import WrongUsageError, printable

if TYPE_CHECKING:
    Write = Callable[[bytes], None]

_DEFAULT: Final = "less -FRX"
"""Ends by itself if everything fits on the screen, shows colours, and leaves the text there."""

_NOT_RUN: Final = (126, 127)
"""Exit codes by which a shell says that it could not run a command."""


@contextmanager
def output() -> Iterator[Write]:
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
            yield lambda data: _write(pager, data)
    except BrokenPipeError:
        raise streams.ClosedPipe from None
    finally:
        signal.signal(signal.SIGINT, before)
        if pager.returncode in _NOT_RUN:
            raise WrongUsageError(
                f"Cannot run the pager {printable(command)}. Set PAGER to another one, or to cat."
            )


def _write(pager: subprocess.Popen[bytes], data: bytes) -> None:
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
