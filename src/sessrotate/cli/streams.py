"""Standard output for results, standard error for messages and progress.

Rule: nothing else in the package prints. If the reader of a pipe has gone, the command ends
quietly, whichever write notices.
"""

from __future__ import annotations

import os
import select
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final, Never

from sessrotate import fs, units
from sessrotate.errors import SessrotateError, StorageError, WrongUsageError, printable, storage
from sessrotate.system import user_folders

if TYPE_CHECKING:
    from sessrotate.render.columns import Canvas

PATIENCE: Final = 0.5
"""Seconds of work before a progress bar appears."""


class ClosedPipe(BaseException):
    """The reader of standard output has gone."""


@contextmanager
def _to_a_reader() -> Iterator[None]:
    with storage("write to standard output"):
        try:
            yield
        except BrokenPipeError:
            raise ClosedPipe from None


def write(text: str) -> None:
    """Write a result to standard output, now."""
    write_all((text,))


def write_all(parts: Iterable[str]) -> None:
    """Write a result to standard output, part by part."""
    for part in parts:  # which may be read from a disk that fails, too
        with _to_a_reader():
            sys.stdout.write(part)
    with _to_a_reader():
        sys.stdout.flush()


def write_lines(lines: Iterable[str]) -> None:
    """Write a result to standard output, line by line; a terminal gets long ones cut at words."""
    width = terminal_width()
    each = (part for line in lines for part in line.split("\n"))
    write_all(f"{part}\n" for line in each for part in _wrapped(line, width))


def _wrapped(line: str, width: int | None) -> list[str]:
    """Return a line as it fits; a row of a table does, but for its colours."""
    if width is None or len(line) <= width or "\x1b" in line:
        return [line]
    import textwrap  # noqa: PLC0415 - few lines are that long

    return textwrap.wrap(
        line,
        width,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def write_data(data: bytes | memoryview) -> None:
    """Write bytes to standard output as they are, now."""
    with _to_a_reader():
        fs.write_all(sys.stdout.fileno(), memoryview(data))


def message(text: str) -> None:
    """Write a message to standard error."""
    with suppress(OSError):  # nobody reads it
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def warn(sentence: str | SessrotateError) -> None:
    """Write a message that begins with the program's name."""
    message(f"sessrotate: {sentence}")


def gaps(*, with_turns: bool) -> Callable[[str], None]:
    """Return what names a segment that is left out; `with_turns`, also what that does to them."""
    is_told = not with_turns

    def tell(gap: str) -> None:
        nonlocal is_told
        warn(gap)
        if not is_told:
            warn("Turns in missing parts are not counted.")
            is_told = True

    return tell


def complain(text: str | None) -> None:
    """Write a warning on one line, if there is one."""
    if text is not None:
        warn(printable(text))


def terminal_width() -> int | None:
    """Return how many columns the terminal at standard output has; None if it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def colours() -> bool:
    """Return whether standard output is a terminal whose user wants colours."""
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") not in {"", "dumb"}
    )


def canvas() -> Canvas:
    """Return what tables are drawn on."""
    from sessrotate.render.columns import Canvas  # noqa: PLC0415 - no other result needs it

    return Canvas(terminal_width(), colours())


def is_file() -> bool:
    """Return whether standard output goes into a file."""
    return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)


def prepare() -> None:
    """Make standard output and error usable, whatever they are.

    A closed one becomes /dev/null, before an opened file could take its number. To write a result
    there fails, so that no command reports success for what nobody got. Characters that its
    encoding lacks are replaced. What is made is the user's own, whatever the umask was.
    """
    os.umask(0o077)
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - by number
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def guarded(action: Callable[[], object]) -> int:
    """Run an action; return its exit code, with any error reported as a sentence."""
    try:
        try:
            action()
        except FileNotFoundError as error:
            if error.filename is None:  # a path was to be completed by the current folder
                user_folders.check_here()
            _raise_as_ours(error)
        except OSError as error:
            _raise_as_ours(error)
    except SessrotateError as error:
        drop_output()
        return failed(str(error), error.exit_code)
    except MemoryError:
        return failed("There is not enough memory.", StorageError.exit_code)
    except ClosedPipe:
        drop_output()
    return 0


def _raise_as_ours(error: OSError) -> Never:
    """Raise a StorageError that says what failed; most operations name their errors themselves."""
    with storage("go on"):
        raise error


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
def progress(
    what: str, total: int, *, quiet: bool, since: float | None = None
) -> Iterator[Callable[[int], None]]:
    """Yield a function that is called with the number of bytes done, to draw a progress bar.

    The bar (bytes, rate, time left) appears after `PATIENCE` seconds, on standard error, and only
    if that is a terminal. `since` is when the work began (monotonic), if that was before.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _done: None
        return
    begun = time.monotonic() if since is None else since
    with ExitStack() as stack:
        show: Callable[[int], None] | None = None

        def update(done: int) -> None:
            nonlocal show
            if show is None and time.monotonic() - begun > PATIENCE:
                show = _bar(what, total, stack)
            if show is not None:
                show(done)

        yield update


class PassingLine:
    """A line on the terminal that says how far the work is, while results come one by one.

    It appears after `PATIENCE` seconds, on standard error, and not where a pager or another program
    has the terminal. Whoever writes anything erases it first.
    """

    def __init__(self) -> None:
        self._is_wanted: Final = sys.stderr.isatty() and (sys.stdout.isatty() or is_file())
        self._due = time.monotonic() + PATIENCE
        self._is_shown = False

    def show(self, text: str) -> None:
        """Show a text of less than a line, unless another one was shown just now."""
        if self._is_wanted and time.monotonic() >= self._due:
            self._write(f"\r{text}\x1b[K")
            self._due, self._is_shown = time.monotonic() + _BLINK, True

    def erase(self) -> None:
        """Erase what is shown."""
        if self._is_shown:
            self._write("\r\x1b[K")
            self._is_shown = False

    @staticmethod
    def _write(text: str) -> None:
        with suppress(OSError):
            sys.stderr.write(text)
            sys.stderr.flush()


def _bar(what: str, total: int, stack: ExitStack) -> Callable[[int], None]:
    """Show a progress bar until the stack is left; return what tells it the bytes done."""
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
    task = bar.add_task(what, total=total)
    stack.callback(bar.stop)  # first: an interrupt may come at any moment
    bar.start()
    return lambda done: bar.update(task, completed=done)


def answered(question: str, *, otherwise: bool) -> bool:
    """Ask a person, who is there, a question; `otherwise` is what an empty answer says."""
    while True:
        ask(question)
        line = _typed()
        word = line.strip().lower()
        if word in _ANSWERS or not line:
            return _ANSWERS.get(word, False)
        if not word:
            return otherwise
        message("Answer y or n.")


def given(question: str, parse: Callable[[str], object]) -> str:
    """Ask a person, who is there, for a value that `parse` takes; empty if they give none."""
    while True:
        ask(question)
        word = _typed().strip()
        if not word or parse(word):
            return word
        message(f"Cannot use {printable(word)}: type an age such as {units.AGES}.")


def ask(question: str) -> None:
    """Write a question as wide as the terminal: those that explain something are long."""
    for line in question.splitlines():
        message("\n".join(_wrapped(line, terminal_width())))


_ANSWERS: Final = {"y": True, "yes": True, "n": False, "no": False}


def confirmed(total: str = "") -> bool:
    """Ask a person whether to go on; `total` is what is about to happen, if nobody has read it.

    Raises WrongUsageError if there is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise WrongUsageError(
            "Cannot ask for confirmation without a terminal: pass --yes, or preview with --dry-run."
        )
    message(f"{total} Continue? [y/N]".lstrip())
    if _typed().strip().lower() in {"y", "yes"}:
        return True
    message("Nothing was changed.")
    return False


def _typed() -> str:
    """Return the line that a person types, empty at the end of input."""
    # Python handles a signal that comes just before a read only after it: Ctrl-C would do nothing
    # until another key is pressed. So nothing is read before it is there.
    while not select.select([sys.stdin], [], [], _BLINK)[0]:
        pass
    return sys.stdin.readline()


_BLINK: Final = 0.1
"""Seconds after which Ctrl-C is noticed, at most, and between two looks of a `PassingLine`."""
