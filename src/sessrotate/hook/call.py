"""Claude Code's call at the end of a session → a rotation in the background.

docs/internals/clients.md has what the client sends on standard input (2.0.28 to 2.1.330). The
client is still running then and may still write to the session, so this rotates as `--live` does.

Rule: the client must not notice. Whatever comes in and whatever fails, a call ends soon, with exit
code 0 and without standard output. Its input is data: a path counts only if it is that of a session
in the client's own folder. The work is done by a separate process, which the client neither waits
for nor ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import stat
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sessrotate import units
from sessrotate.errors import SessrotateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sessrotate.archive.place import Place

LEAST: Final = "50M"
"""The default minimum size of sessions to rotate."""

EVENT: Final = "SessionEnd"

_LARGEST: Final = 1 << 20
"""Bytes of input that are read at most; the client's has less than a thousand."""

_PATIENCE: Final = 1.0
"""Seconds to wait for the input, which the client writes at once."""

_WAIT: Final = 60.0
"""Seconds to wait for another sessrotate, and for the ending client's last lines."""


def call(arguments: Sequence[str]) -> str | None:
    """Do what a call with these arguments asks for; return an error message, if there is one.

    Never raises, and never returns in the process that rotates.
    """
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C is for the client
        least = _least(arguments)
        if least is None:
            return f"The hook does not know {' '.join(arguments)!r}: see `sessrotate hook --help`."
        if os.isatty(0):
            return "Claude Code calls this command: set that up with `sessrotate hook install`."
        where = wanted(read(0), least)
        if where is not None and not _apart(lambda: rotate(where, least)):
            return "The hook could not start a process to rotate the session."
    except Exception as error:  # noqa: BLE001 - the rule of this module
        return f"The hook failed: {_bug(error)}."
    return None


def _least(arguments: Sequence[str]) -> int | None:
    match [*arguments] or ["--min-size", LEAST]:
        case ["--min-size", text]:
            return units.size(text)
        case _:
            return None


def read(fd: int) -> bytes:
    """Return the input up to its end; nothing if it is too long or comes too late."""
    pieces: list[bytes] = []
    size = 0
    deadline = time.monotonic() + _PATIENCE
    while size <= _LARGEST:
        if not select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
            break
        piece = os.read(fd, 1 << 16)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
    return b""


def wanted(data: bytes, least: int) -> Place | None:
    """Return the session that has ended, if it has at least `least` bytes; else None."""
    try:
        found: Any = json.loads(data)
        event, session, path = (
            found[key] for key in ("hook_event_name", "session_id", "transcript_path")
        )
        if event != EVENT or not isinstance(path, str) or not os.path.isabs(path):  # noqa: PTH117 - text
            return None
        status = os.lstat(path)
    except (ValueError, TypeError, KeyError, RecursionError, OSError):
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size < least:
        return None
    from sessrotate import find  # noqa: PLC0415 - 10 ms, for large sessions only

    try:
        where = find.live_of(Path(path))
    except SessrotateError:
        return None
    return where if where.session == session else None


def rotate(where: Place, least: int) -> None:
    """Rotate a session; if that fails, leave a note for `doctor`."""
    from sessrotate.archive import place  # noqa: PLC0415 - as above
    from sessrotate.hook import notes  # noqa: PLC0415 - as above
    from sessrotate.in_place import operations  # noqa: PLC0415 - as above

    where = place.home(where)  # a rotation brings its archive, and the note with it, there
    with suppress(OSError):  # on a full disk, try all the same
        notes.write(where, least, None)
    silent = nullcontext(lambda _done: None)
    problem: str | None
    try:
        done = operations.rotate_session(where, _WAIT, lambda *_: silent, live=True, by_itself=True)
        problem = None if done.refusal is None else str(done.refusal)
    except operations.RestoredError:
        problem = None  # as its owner wants it
    except SessrotateError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001 - nobody else would report it
        problem = f"sessrotate itself failed: {_bug(error)}."
    with suppress(OSError):
        if problem is None:
            notes.clear(where)
        else:
            notes.write(where, least, problem)


def _bug(error: Exception) -> str:
    """Say where an unexpected error came from, without its text: that may quote content."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = type(error).__name__
    return name if trace is None else f"{name} in {trace.tb_frame.f_code.co_name}"


def _apart(work: Callable[[], None]) -> bool:
    """Do something in a detached process; return whether it was started.

    The process is in no session with a terminal, so that no hang-up and no signal to the client's
    group reaches it, and it has no file open that the client might wait for.
    """
    if not hasattr(os, "fork"):
        return False
    try:
        child = os.fork()
    except OSError:
        return False
    if child:
        with suppress(ChildProcessError):  # the caller ignores its children
            return os.waitpid(child, 0)[1] == 0
        return True
    code = 1
    try:
        os.setsid()
        if os.fork() == 0:
            _let_go()
            work()
        code = 0
    finally:
        os._exit(code)


def _let_go() -> None:
    """Close everything, and open /dev/null instead."""
    os.chdir("/")
    open_fds: Iterable[int] = range(1024)
    with suppress(OSError):
        open_fds = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208 - numbers, no paths
    for fd in open_fds:
        with suppress(OSError):
            os.close(fd)
    for _ in range(3):
        os.open(os.devnull, os.O_RDWR)
