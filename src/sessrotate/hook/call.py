"""Claude Code's call at a compaction or at the end of a session → a rotation in the background.

docs/internals/clients.md has what the client sends on standard input (2.0.28 to 2.1.330). The
client is still running then and may still write to the session, so this rotates as `--live` does.
At a compaction it calls before that is on the disk: the process in the background waits for it.

Rule: the client must not notice. Whatever comes in and whatever fails, a call ends soon, with exit
code 0 and without a byte on standard output or, where the client would show it, standard error. Its
input is data: a path counts only if it is that of a session in the client's own folder. The work is
done by a separate process, which the client neither waits for nor ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sessrotate import names, platforms, units
from sessrotate.errors import RefusedError, SessrotateError, printable

if TYPE_CHECKING:
    from sessrotate.archive.place import Place

LEAST: Final = "128K"
"""What a rotation gains the disk at least, unless somebody says otherwise."""

_ENDED: Final = ("SessionEnd", None)
_COMPACTED: Final = ("SessionStart", "compact")
"""The events that something is done at, with the source that they have."""

_LARGEST: Final = 1 << 20
"""Bytes of input that are read at most; the client's has less than a thousand."""

_PATIENCE: Final = 1.0
"""Seconds to wait for the input, which the client writes at once."""

_TRIMS: Final = "CLAUDE_CODE_TRANSCRIPT_LOCAL_GC"
"""What tells the client in its environment, which is ours, to trim its own session (2.1.287)."""

_TRIMMING: Final = 3.0
"""Seconds after a compaction in which the client trims: 0.04 to 0.18 were seen for 6 MB."""

_STAMPING: Final = 0.5
"""Seconds after that, in which it writes down its settings once more."""

_TRUE: Final = {"1", "true", "yes", "on"}

_WAIT: Final = 60.0
"""Seconds to wait for another sessrotate, and for the ending client's last lines."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a call asks for: a session, and its live file as it was at the call.

    `awaits` a compaction that is not on the disk yet; `problem` says why nothing can be done.
    """

    where: Place
    status: os.stat_result
    awaits: bool
    problem: str | None = None


def call(arguments: Sequence[str]) -> str | None:
    """Do what a call with these arguments asks for; return an error message, if there is one.

    Never raises, and never returns in the process that rotates.
    """
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C is for the client
        least = _least(arguments)
        if least is None:
            return (
                f"The hook does not accept {' '.join(arguments)!r}: see `sessrotate hook --help`."
            )
        if os.isatty(0):
            return "Claude Code calls this command: set that up with `sessrotate hook install`."
        job = wanted(read(0), least)
        if job is not None and job.awaits and _may_trim():
            _keep(job)
        if job is not None and not _apart(lambda: rotate(job, least)):
            return "The hook could not start a process to rotate the session."
    except Exception as error:  # noqa: BLE001 - the rule of this module
        return f"The hook failed: {_bug(error)}."
    return None


def _may_trim() -> bool:
    """Tell whether the client may trim the session, and will keep nothing of it itself.

    It does from 5 MiB on, but once it has, 2.1.287 trims a session of any size.
    """
    return os.environ.get(_TRIMS, "").strip().lower() in _TRUE


def _keep(job: Call) -> None:
    """Give the live file a second name, as a client does that is told to keep what it trims.

    At once, since the client trims 0.1 s after the compaction. Where the file system has no second
    names, nothing is worse than without a hook.
    """
    from sessrotate.in_place import second_names  # noqa: PLC0415 - for these sessions only

    with suppress(OSError):
        second_names.give(job.where, job.where.live)


def _least(arguments: Sequence[str]) -> int | None:
    match [*arguments] or ["--min-gain", LEAST]:
        case ["--min-gain", text]:
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


def wanted(data: bytes, least: int) -> Call | None:
    """Return what a call with this input asks for, if there may be something to do; else None.

    The session has at least `least` bytes; or was rotated, so that it may have to be healed; or
    its client trimmed it, so that it is to be put together, or is about to.
    """
    try:
        found: Any = json.loads(data)
        session, named = found["session_id"], found.get("transcript_path")
        awaits = _event(found) == _COMPACTED
        is_ours = awaits or _event(found) == _ENDED
        path, others = named or "", list[str]()
        is_path = isinstance(path, str) and (path == "" or os.path.isabs(path))  # noqa: PTH117
        if not is_ours or not is_path or not isinstance(session, str):
            return None
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            path, *others = _by_id(session) or [path]
            status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            return None
        is_trimmed = _was_trimmed(path) or (awaits and _may_trim())
        is_small = status.st_size < least and not is_trimmed
        if is_small and (awaits or not _is_rotated(path)):
            return None
    except (ValueError, TypeError, KeyError, RecursionError, OSError):
        return None
    from sessrotate import find  # noqa: PLC0415 - 10 ms, for these sessions only

    try:
        where = find.live_of(Path(path))
    except SessrotateError:
        return None
    problem = None
    if others:
        found = ", ".join(printable(each) for each in (path, *others))
        problem = (
            f"Claude Code named no file that exists, and {1 + len(others)} files have the "
            f"session's id: {found}."
        )
    return Call(where, status, awaits, problem) if where.session == session else None


def _by_id(session: str) -> list[str]:
    """Return the files that have a session's id.

    A client in a worktree may name a file in the folder of another project, where there is none
    (anthropics/claude-code #44450), and some name no file at all (#13668). Of a session in which
    nothing was said, there is no file.
    """
    from sessrotate import clients  # noqa: PLC0415 - as above

    files = clients.in_place().files
    return [str(path) for path in files.sessions(session) if files.session_of(path.name) == session]


def _event(found: dict[str, Any]) -> tuple[object, object]:
    name = found["hook_event_name"]
    return name, None if name == _ENDED[0] else found.get("source")


def _is_rotated(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(len(names.ROTATED)) == names.ROTATED


def _was_trimmed(path: str) -> bool:
    return (Path(path).with_suffix("") / names.KEPT).is_dir()


def rotate(job: Call, least: int) -> None:
    """Rotate a session if that gains `least` bytes; if that fails, leave a note for `doctor`.

    One of less than `least` bytes is only healed, or put together. Without the compaction that the
    client has announced, nothing is done.
    """
    from sessrotate.hook import compaction, notes  # noqa: PLC0415 - as above
    from sessrotate.in_place import fleet, operations, restore  # noqa: PLC0415 - as above

    where = job.where
    if job.problem is not None:
        with suppress(OSError, RefusedError):
            notes.write(where, job.problem)
        return
    if job.awaits:
        done = compaction.awaited(where, job.status)
        if done is None or done.is_repeated_if_rotated:
            return  # in the second case, the end of the session is the better moment
        if _may_trim():
            _await_trim(job)
    with suppress(OSError):
        is_small = where.live.stat().st_size < least
        is_due = restore.is_trimmed(where.live, where.session)
        if is_small and not is_due and not fleet.may_be_rewound(where.live):
            return
    silent = nullcontext(lambda _done: None)
    problem: str | None
    try:
        rotated = operations.rotate_session(
            where, _WAIT, lambda *_: silent, live=True, by_itself=True, least=least
        )
        problem = None if rotated.refusal is None else str(rotated.refusal)
    except operations.RestoredError:
        problem = None  # as its owner wants it
    except SessrotateError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001 - nobody else would report it
        problem = f"sessrotate itself failed: {_bug(error)}."
    with suppress(OSError, RefusedError):
        if problem is None:
            notes.clear(where)
        else:
            notes.write(where, problem)


def _await_trim(job: Call) -> None:
    """Wait until the client has trimmed the session, or seems not to: both at once is a race.

    Nothing is lost by that, but what the client writes in between may have to be put in its place
    by hand. A file with a second name is not the client's, but what a rotation has put there since:
    that of the compaction before, which waited, too.
    """
    live, trims = job.where.live, job.where.client.trims
    deadline = time.monotonic() + _TRIMMING
    with suppress(OSError):
        while time.monotonic() < deadline:
            now = live.lstat()
            # A new file may have the number of one that a rotation freed; a trim makes it smaller.
            is_same = os.path.samestat(now, job.status) and now.st_size >= job.status.st_size
            if not is_same and not trims.names_of(live, job.where.session, now):
                time.sleep(_STAMPING)
                return
            time.sleep(0.05)


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
    if not platforms.HERE.forks:
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
