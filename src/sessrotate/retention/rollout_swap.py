"""One form of a rollout for the other: the draft, the exchange of names, the client's locks.

Promise: at each moment one whole file is under a name that the client takes. In come the old form,
open, and a draft with the same content; out comes the new form under its name, or everything as
whoever wrote meanwhile has left it.

Rule: the client's order of locks (0.171; openai/codex, `rollout/src/maintenance.rs`): maintenance,
for the whole of the work; then coordination, for as long as it takes to get the writer's lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import clients, fs
from sessrotate.errors import InUseError, WrongUsageError, printable
from sessrotate.system import in_use, inside, locks
from sessrotate.system.source import Source

_PATIENCE: Final = 1.0
"""Seconds to wait for a lock that a client holds for a moment."""

_held_since: Final[dict[Path, float]] = {}
"""Locks that were held when last tried, and since when: that is waited for once, not for each
session.
"""


def forget_drafts(*forms: Path) -> None:
    """Remove what a crash left of drafts: nobody else has such names under the lock."""
    for path in forms:
        fs.remove_files(path.parent, [_draft(path).name])


class Second(Struct, frozen=True):
    """Another file of a rollout than the one that its client takes, as it was when it was read.

    One of the two begins with all of the other, which `goes`.
    """

    path: Path
    status: os.stat_result
    goes: Path


def leave(plain: Path, second: Second) -> int:
    """Leave one of the two files of a rollout, the longer; return how many bytes the other has.

    0 if there is no second one any more. Raises InUseError if a client has it open for writing, or
    was faster.
    """
    with suppress(WrongUsageError), Source.itself(second.path) as source, unwritten(plain):
        answer = in_use.lease_from_writers(source, 0)
        try:
            if _state(os.fstat(source.fd)) != _state(second.status):
                raise InUseError(f"{printable(second.path.name)} was changed meanwhile: try again.")
            if second.goes != second.path:
                fs.put(second.path, plain)
            size = second.goes.lstat().st_size
            fs.remove_files(second.goes.parent, [second.goes.name])
        finally:
            if answer == "taken":
                locks.release_lease(source.fd)
        return size
    return 0


@contextmanager
def drafted(path: Path) -> Iterator[fs.Draft]:
    """Open a draft of a file, which goes at the end of the block unless it has got its name."""
    name = _draft(path)
    with fs.Draft(name) as draft:
        try:
            yield draft
        finally:
            fs.remove_files(name.parent, [name.name])


def _draft(path: Path) -> Path:
    """Return a name beside a rollout that no client takes, and that says what it was to be."""
    return path.with_name(f".{path.name}.partial")


def replace(old: Path, source: Source, was: os.stat_result, draft: fs.Draft, new: Path) -> None:
    """Let the other form of a rollout, which is written, take the place of the one that was read.

    `was` is the old one's status before it was read. Raises InUseError if anybody wrote to it
    since, or saved another file under its name: then all is as they left it.
    """
    draft.become_like(source.fd)
    draft.take_times(source.fd)
    draft.sync()
    aside = clients.cold().aside(old)
    late = InUseError(f"{printable(old.name)} was changed meanwhile: try again.")
    with unwritten(old):
        answer = in_use.lease_from_writers(source, 0)
        try:
            now = os.fstat(source.fd)
            is_same = (*_state(now), now.st_ctime_ns) == (*_state(was), was.st_ctime_ns)
            # Where the folder could not be locked, another sessrotate may have begun its own draft.
            if not is_same or not fs.same_as(os.fstat(draft.fd))(_draft(new)):
                raise late
            fs.put(_draft(new), new)
            try:
                fs.take_away(old, aside, fs.same_as(was))
            except (fs.ReplacedError, FileNotFoundError):
                fs.remove_files(new.parent, [new.name])
                raise late from None
            if not locks.settled(source.fd, answer) or _state(os.fstat(source.fd)) != _state(was):
                # A client that had found the old name before has written to it since.
                fs.put(aside, old)
                fs.remove_files(new.parent, [new.name])
                raise late
        finally:
            if answer == "taken":
                locks.release_lease(source.fd)
        fs.remove_files(aside.parent, [aside.name])


def _state(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


# ── locks ────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def maintained(folder: Path | None = None) -> Iterator[None]:
    """Hold the client's lock for work on rollouts, and none of them: it is its order, too.

    That lock is the home's, and two homes may share their sessions, as in a container that gets no
    more than those. So the `folder` of the rollouts is held, too, where the system can.
    """
    with ExitStack() as stack:
        held = "Codex, or another sessrotate, compresses sessions"
        _hold(stack, clients.cold().maintenance_lock(), held)
        if folder is not None and folder.is_dir():
            _hold(stack, folder, held, is_clients=False)
        yield


@contextmanager
def unwritten(path: Path) -> Iterator[None]:
    """Hold the lock of a rollout's writer: no client of 0.147 or later opens it meanwhile."""
    coordination, writer = clients.cold().writer_locks(path)
    used = "Codex has the session open, or is opening it"
    with ExitStack() as stack:
        with ExitStack() as moment:
            _hold(moment, coordination, used)
            _hold(stack, writer, used)
        try:
            yield
        finally:
            with suppress(InUseError, OSError), ExitStack() as moment:
                _hold(moment, coordination, used)
                fs.remove_files(writer.parent, [writer.name])


def _hold(stack: ExitStack, lock: Path, held: str, *, is_clients: bool = True) -> None:
    """Hold a lock of the client's until the stack closes; raise InUseError if that is `held`."""
    if is_clients:
        inside.check_owner(lock.parent)
        fs.create_folder(lock.parent)
    while True:
        try:
            stack.enter_context(fs.held(lock, is_clients=is_clients))
        except BlockingIOError:
            since = _held_since.setdefault(lock, time.monotonic())
            if time.monotonic() >= since + _PATIENCE:
                raise InUseError(f"{held}: try again when that has ended.") from None
            time.sleep(locks.PAUSE)
        else:
            _held_since.pop(lock, None)
            return
