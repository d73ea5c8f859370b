"""Standard output for results, standard error for messages and progress.

Rule: nothing else in the package prints. If the reader of a pipe has gone, the command ends
quietly, whichever write notices.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final

from sessrotate import fs
from sessrotate.errors import SessrotateError, StorageError, printable
from sessrotate.render import segment_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.table import Table

PATIENCE: Final = 0.5
"""Seconds of work before a progress bar appears."""


class ClosedPipe(BaseException):
    """The reader of standard output has gone."""


def write(text: str) -> None:
    """Write a result to standard output, now."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ClosedPipe from None


def write_all(parts: Iterable[str]) -> None:
    """Write a result to standard output, part by part."""
    try:
        sys.stdout.writelines(parts)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ClosedPipe from None


def write_data(data: memoryview) -> None:
    """Write bytes to standard output as they are, now."""
    try:
        fs.write_all(sys.stdout.fileno(), data)
    except BrokenPipeError:
        raise ClosedPipe from None


def show_table(rows: Sequence[Sequence[str]], shares: Sequence[float]) -> None:
    """Show a table of segments: drawn on a terminal, as text elsewhere."""
    width = terminal_width()
    if width is not None:
        _draw(segment_table.rich_table(rows, shares, width))
    else:
        write(segment_table.plain_table(rows))


def _draw(table: Table) -> None:
    """Draw a table on the terminal."""
    from rich.console import Console  # noqa: PLC0415 - 30 ms at start-up, for terminals only

    try:
        Console(file=sys.stdout, highlight=False).print(table)
    except BrokenPipeError:
        raise ClosedPipe from None


def message(text: str) -> None:
    """Write a message to standard error."""
    with suppress(OSError):  # nobody reads it
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def warn(sentence: str | SessrotateError) -> None:
    """Write a message that begins with the program's name."""
    message(f"sessrotate: {sentence}")


def complain(text: str | None) -> None:
    """Write a warning on one line, if there is one."""
    if text is not None:
        warn(printable(text))


def terminal_width() -> int | None:
    """Return how many columns the terminal at standard output has; None if it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def is_file() -> bool:
    """Return whether standard output goes into a file."""
    return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)


def prepare() -> None:
    """Make standard output and error usable, whatever they are.

    A closed one becomes /dev/null, before an opened file could take its number. Characters that its
    encoding lacks are replaced.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - by number
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def guarded(action: Callable[[], object]) -> int:
    """Run an action; return its exit code, with any error reported as a sentence."""
    try:
        action()
    except SessrotateError as error:
        return failed(str(error), error.exit_code)
    except OSError as error:  # one that no operation has named: of standard output
        drop_output()
        return failed(printable(str(error)), StorageError.exit_code)
    except MemoryError:
        return failed("There is not enough memory.", StorageError.exit_code)
    except ClosedPipe:
        drop_output()
    return 0


def failed(text: str, exit_code: int) -> int:
    """Report why the command ends; return its exit code."""
    warn(text)
    return exit_code


def drop_output() -> None:
    """Discard what is still buffered for a broken stream, so that the exit is quiet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def progress(what: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function that is called with the number of bytes done, to draw a progress bar.

    The bar (bytes, rate, time left) appears after `PATIENCE` seconds, on standard error, and only
    if that is a terminal.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _done: None
        return
    bar = _Bar(what, total)
    try:
        yield bar.update
    finally:
        bar.stop()


class _Bar:
    """A progress bar that loads rich only when it appears."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._begun = time.monotonic()
        self._stop: Callable[[], None] | None = None
        self._show: Callable[[int], None] | None = None

    def update(self, done: int) -> None:
        if self._show is None and time.monotonic() - self._begun > PATIENCE:
            self._start()
        if self._show is not None:
            self._show(done)

    def stop(self) -> None:
        if self._stop is not None:
            self._stop()

    def _start(self) -> None:
        from rich import progress as parts  # noqa: PLC0415 - 50 ms at start-up, seldom needed
        from rich.console import Console  # noqa: PLC0415

        bar = parts.Progress(
            parts.TextColumn("{task.description}"),
            parts.BarColumn(),
            parts.DownloadColumn(binary_units=True),
            parts.TransferSpeedColumn(),
            parts.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        task = bar.add_task(self._what, total=self._total)
        self._stop = bar.stop  # first: an interrupt may come at any moment
        bar.start()
        self._show = lambda done: bar.update(task, completed=done)
