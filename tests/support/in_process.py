"""Runs the command in the test's process as if it were a new one: what a process has is given back.

Rule: the entry is `sessrotate.cli.main`, as the installed program's is, on real descriptors 0, 1
and 2. The environment, the folder, the umask, the time zone, `sys.argv`, the streams and the
signal handlers are the test's own again afterwards. Only what `app.build` makes is kept from call
to call. `tests/cli/test_in_process.py` holds this equal to the real program.

What only a process of its own shows is not for this module: how the interpreter starts, limits,
signals from outside, and streams that are closed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import io
import os
import pty
import signal
import struct
import sys
import termios
import threading
import time
from functools import cache
from typing import TYPE_CHECKING, Final, Self

import pytest
from typer.main import get_command

from sessrotate.cli import app, main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    Command = Callable[[Sequence[str]], object]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
_SECONDS: Final = 60
_FLUSH_FAILED: Final = 120
"""The interpreter's own exit code where it cannot write what is still buffered."""


def run(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    umask: int = -1,
    columns: int | None = None,
) -> tuple[int, bytes, bytes]:
    """Run a command line; return its exit code and what it wrote to its two streams.

    `env` is the whole environment, None the test's. With `columns` the streams are two terminals
    of that width, and pipes otherwise.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(gc.unfreeze)
        out, err = (stack.enter_context(End(columns)) for _ in range(2))
        with _descriptors(out.there if columns else None, out.there, err.there):
            out.close()
            err.close()
            with _environment(env), _folder(cwd), _umask(umask), _signals(), _streams(command):
                code = _exit_code()
        return code, out.received(), err.received()


_build: Final = app.build


@cache
def _built(named: tuple[str, ...]) -> Command:
    """Return what `app.build` makes of these commands: it is the same in each call, and dear."""
    return get_command(_build(named))


def _once(named: Iterable[str]) -> Command:
    return _built((*named,))


def _exit_code() -> int:
    """Call the program's entry, and end it as the interpreter does."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(app, "build", _once)
            main()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    else:
        code = 0
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = _FLUSH_FAILED
    return code


class End:
    """A pipe or a terminal of which a thread reads one end."""

    def __init__(self, columns: int | None) -> None:
        if columns is None:
            self._here, self.there = os.pipe()
        else:
            self._here, self.there = pty.openpty()
            size = struct.pack("HHHH", 40, columns, 0, 0)
            fcntl.ioctl(self.there, termios.TIOCSWINSZ, size)
        self._is_open = True
        self._pieces: list[bytes] = []
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._reader.join(_SECONDS)
        os.close(self._here)

    def close(self) -> None:
        """Close the writer's end; who has inherited it may go on."""
        if self._is_open:
            self._is_open = False
            os.close(self.there)

    def received(self) -> bytes:
        """Wait for the last writer to go; return everything that was written."""
        self._reader.join(_SECONDS)
        assert not self._reader.is_alive(), "the command's stream stays open"
        return b"".join(self._pieces)

    def _read(self) -> None:
        while piece := next_piece(self._here):
            self._pieces.append(piece)


def next_piece(end: int) -> bytes:
    """Read what comes next from a pipe or a terminal; nothing once its last writer has gone.

    A terminal without a writer answers EIO. Linux looks for lines first and for a writer then
    (`n_tty_read`). So it answers EIO, too, where lines are written and the writer's end is closed
    in between. Who asks again, when there is no writer any more, gets them.
    """
    for _ in range(2):
        try:
            return os.read(end, 1 << 16)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
    return b""


# ── what a process has, for a while another's ────────────────────────────────────────────────


@contextlib.contextmanager
def _descriptors(stdin: int | None, stdout: int, stderr: int) -> Iterator[None]:
    """Have these as 0, 1 and 2; /dev/null for None."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    kept = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10) for number in range(3)]
    try:
        for number, given in enumerate((nothing if stdin is None else stdin, stdout, stderr)):
            os.dup2(given, number)
        yield
    finally:
        for number, before in enumerate(kept):
            os.dup2(before, number)
            os.close(before)
        os.close(nothing)


@contextlib.contextmanager
def _environment(env: Mapping[str, str] | None) -> Iterator[None]:
    before = dict(os.environ)
    if env is not None:
        _set_environment(env)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(env: Mapping[str, str]) -> None:
    if dict(os.environ) != env:
        os.environ.clear()
        os.environ.update(env)
        time.tzset()


@contextlib.contextmanager
def _folder(cwd: Path | None) -> Iterator[None]:
    before = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        if cwd is not None:
            os.chdir(cwd)
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def umask() -> int:
    """Return the umask of this process: there is no call that only asks."""
    found = os.umask(0o077)
    os.umask(found)
    return found


@contextlib.contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = umask()
    if mask != -1:
        os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _streams(command: Sequence[str]) -> Iterator[None]:
    """Have the streams that the interpreter opens on 0, 1 and 2 where the locale is UTF-8."""
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr
    sys.argv = [*command]
    sys.stdin = _stream(0, "r", "surrogateescape")
    sys.stdout = _stream(1, "w", "surrogateescape")
    sys.stderr = _stream(2, "w", "backslashreplace", line_buffering=True)
    try:
        yield
    finally:
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            stream.detach()
        sys.argv, sys.stdin, sys.stdout, sys.stderr = before


def _stream(
    number: int, mode: str, errors: str, *, line_buffering: bool = False
) -> io.TextIOWrapper:
    raw = io.FileIO(number, mode, closefd=False)
    binary = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    line_buffering = line_buffering or raw.isatty()
    return io.TextIOWrapper(binary, "utf-8", errors, line_buffering=line_buffering)
