"""The log of runs, a line of JSON for each thing that happened: for monitors, `doctor`, `restore`.

Each `run` and `tidy` ends with a line of its own; each run over many sessions has a line for every
session that it changed, by which `restore` undoes it.

Rule: numbers and ids, never the content of a session. Only its owner can read the file, and it
stays small: the newest lines are kept, up to `MOST_LINES` and `MOST_BYTES`, and of what was changed
the newest `MOST_RUNS` runs, each whole, and those that compressed sessions within `MOST_SECONDS`:
by them it is known of a plain session that it was made so. What a line says is not believed: an id
is only compared with those of sessions that are there.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from sessrotate import clients, fs, units
from sessrotate.errors import INTERRUPTED, DamagedError, printable, storage
from sessrotate.model import Count
from sessrotate.segments import one_line
from sessrotate.system import locks, ownership, user_folders

MOST_LINES: Final = 1000
MOST_BYTES: Final = 1 << 20
MOST_RUNS: Final = 20
MOST_SECONDS: Final = 365 * units.DAY

_MOST_NUMBER: Final = 1 << 31
"""A run's number from here on is not ours: the next ones would soon be too large to be read."""

_MOST_READ: Final = 64 << 20
"""Bytes of a log that may be ours: 200,000 changed sessions."""

ACTIONS: Final = ("heal", "rotate", "archive", "compress", "prune", "trash")
"""What is noted, by the names of the steps of a run; what others did needs no undoing."""

CAN_BE_UNDONE: Final = {
    "rotate": "rotated",
    "archive": "archived",
    "compress": "compressed",
    "prune": "pruned",
}
"""Those of them that `restore` takes back, and what is said of a session then."""

UNDONE: Final = "undone"
"""The action of a line that says that a session's part of a run was undone."""

_ACTION: Final = rf"\A({'|'.join((*ACTIONS, UNDONE))})\Z"

_ENDING: Final = frozenset({"tidy", "run"})
"""Commands whose runs have a line when they end."""


class LastRun(Struct, frozen=True):
    """When the newest run began (ISO 8601, UTC), its exit code, and the sessions that failed."""

    at: str
    code: int
    failed: tuple[str, ...] = ()


class Standing(Struct, frozen=True):
    """Where a session stands, in numbers: if they differ, somebody changed it since.

    `segments` are those of its archive, and `pruned` how many of them have a tombstone; `inode` and
    `size` (bytes) are the live file's, 0 if there is none.
    """

    segments: Count
    pruned: Count
    is_away: bool
    inode: Count
    size: Count


class Change(Struct, frozen=True):
    """The line of what a run did to one session, or of its being undone.

    `run` is the run's number, `at` when it changed the first session (ISO 8601, UTC), `folder` the
    client's. `action` is the name of the step. `segments` are the numbers of those that were
    archived or pruned; `then` is how the session was left, None if that could not be seen.
    """

    run: Count
    command: str
    at: str
    folder: str
    session: Annotated[str, Meta(max_length=255)]
    action: Annotated[str, Meta(pattern=_ACTION)]
    segments: tuple[Count, ...] = ()
    then: Standing | None = None


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def add(record: Mapping[str, Any]) -> None:
    """Append the line of a run that ended, and drop what is too old.

    Raises StorageError; DamagedError if the file is too large to be ours; InUseError if another
    process holds it; RefusedError where root would write it for a user; and WrongUsageError if the
    user has no home for it.
    """
    with _alone() as path:
        _append(path, json.dumps(record).encode() + b"\n")
        _drop_oldest(path)


def note(change: Change) -> Change:
    """Append a change, which is on the disk when this returns, and return it.

    The first of a run, whose `run` is 0, gets its number, and what is too old is dropped. Raises as
    `add` does.
    """
    with _alone() as path:
        if is_first := not change.run:
            taken = (each.run for each in _changes(_lines(path)) if each.run < _MOST_NUMBER)
            number = 1 + max(taken, default=0)
            change = replace(change, run=number)
        _append(path, one_line.dump(change))
        if is_first:
            _drop_oldest(path)
    return change


@contextmanager
def _alone() -> Iterator[Path]:
    """Hold the log, so that no line is lost and no number is taken twice."""
    path = user_folders.log_file()
    user_folders.check_home(path)
    ownership.check(path)
    with storage("write the log of runs"), locks.log(path):
        before = path.stat().st_mtime_ns if path.exists() else 0
        yield path
        if path.stat().st_mtime_ns < before:
            fs.set_time(path, before)  # a clock that is behind is known by this (`archive.clock`)


def _append(path: Path, line: bytes) -> None:
    if not path.exists():
        fs.create_file_at_once(path, line)
        return
    _check(path)
    with path.open("rb") as file:
        file.seek(-min(1, os.fstat(file.fileno()).st_size), os.SEEK_END)
        is_part = file.read() not in {b"", b"\n"}
    # Behind a line that was written in part, one of its own.
    fs.append(path, b"\n" + line if is_part else line)


def _drop_oldest(path: Path) -> None:
    lines = _lines(path)
    noted = [*_changes(lines)]
    recent = units.written(time.time() - MOST_SECONDS)
    runs = {each.run for each in noted if each.action == "compress" and each.at >= recent}
    runs |= {*[*dict.fromkeys(each.run for each in noted)][-MOST_RUNS:]}
    kept: list[bytes] = []
    many = size = 0
    for line in reversed(lines):
        if (change := _change(line)) is None:
            many, size = many + 1, size + len(line)
            is_kept = many <= MOST_LINES and size <= MOST_BYTES
        else:
            is_kept = change.run in runs
        if is_kept:
            kept.append(line)
    if len(kept) < len(lines):
        with suppress(OSError):  # a full disk has no room for that: a later run does it
            fs.create_file_at_once(path, b"".join(reversed(kept)))


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def changes() -> list[Change]:
    """Return what runs did to sessions of the client's folder, in the order in which it was done.

    A line that is not ours, or not whole, is passed over: what it tells of, if it is true, is a
    change that no other line knows, so nothing is undone over it. Raises StorageError, and
    DamagedError if the log is too large to be ours.
    """
    here = str(clients.in_place().files.config_folder())
    return [each for each in _changes(_lines(user_folders.log_file())) if each.folder == here]


def _changes(lines: Iterable[bytes]) -> Iterator[Change]:
    return (each for each in map(_change, lines) if each is not None)


def _change(line: bytes) -> Change | None:
    return one_line.parse(line, Change)


def _lines(path: Path) -> list[bytes]:
    """Return the lines of the log, none if there is no log."""
    with storage("read the log of runs"):
        try:
            _check(path)
            with path.open("rb") as file:
                data = file.read(_MOST_READ + 1)
        except (FileNotFoundError, NotADirectoryError):
            return []
    if len(data) > _MOST_READ:
        raise DamagedError(
            f"{printable(str(path))} is too large to be a log of runs: move it away."
        )
    return data.splitlines(keepends=True)


def _check(path: Path) -> None:
    """Raise DamagedError if the log is no file: a pipe would wait."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise DamagedError(f"{printable(str(path))} is not a regular file: move it away.")


def last(*, by_itself: bool = False, or_killed: bool = False) -> LastRun | None:
    """Return the newest run in the client's folder, None if there is none.

    With `by_itself`, the newest that no person started; `or_killed` counts one that changed a
    session and did not end. Raises StorageError and DamagedError as `changes` does.
    """
    here = str(clients.in_place().files.config_folder())
    for line in reversed(_lines(user_folders.log_file())):
        if (change := _change(line)) is not None:
            is_here = change.folder == here and change.action != UNDONE
            if or_killed and is_here and change.command in _ENDING:
                return LastRun(change.at, INTERRUPTED)
            continue
        try:
            found: Any = json.loads(line)
            at, code, failures = found["at"], found["code"], found.get("failures", [])
            failed = dict.fromkeys(str(each["session"]) for each in failures)
            is_other = by_itself and found.get("by_hand") is True
            is_wanted = found.get("folder", here) == here and not is_other
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
        if is_wanted and isinstance(at, str) and isinstance(code, int):
            return LastRun(at, code, tuple(filter(None, failed)))
    return None
