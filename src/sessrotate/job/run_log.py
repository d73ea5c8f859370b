"""The log of runs, a line of JSON for each thing that happened: for monitors, `doctor`, `restore`.

Each `run` and `tidy` ends with a line of its own; each run over many sessions has a line for every
session that it changed, by which `restore` undoes it. That one is added as soon as the session is
done, so that a crash half-way leaves what was done until then.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from sessrotate import clients, fs, units
from sessrotate.archive import away_file, state
from sessrotate.archive.place import Place
from sessrotate.errors import INTERRUPTED, DamagedError, SessrotateError, printable, storage
from sessrotate.model import Count
from sessrotate.parsing import json_typed
from sessrotate.system import inside, locks, user_folders

if TYPE_CHECKING:
    from sessrotate.in_place.outcome import Outcome

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


class Measure(Struct, frozen=True):
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
    then: Measure | None = None


Undoing = Literal["open", "undone", "impossible"]
"""Whether a run can be undone."""


class Run(Struct, frozen=True):
    """A run that changed something: its number, which command, when (ISO 8601, UTC).

    `sessions` are the ids of those that it changed, in their order. It is open until each of them
    was undone that can be.
    """

    number: int
    command: str
    at: str
    sessions: tuple[str, ...]
    undoing: Undoing


# ── the file: writing ────────────────────────────────────────────────────────────────────────


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

    The first of a run, whose `run` is 0, gets its number, and what is too old is dropped. What no
    run of ours did is `UNDONE` with 0. Raises as `add` does.
    """
    with _alone() as path:
        if is_first := not change.run and change.action != UNDONE:
            taken = (each.run for each in _changes(_lines(path)) if each.run < _MOST_NUMBER)
            number = 1 + max(taken, default=0)
            change = replace(change, run=number)
        _append(path, json_typed.dump_line(change))
        if is_first:
            _drop_oldest(path)
    return change


@contextmanager
def _alone() -> Iterator[Path]:
    """Hold the log, so that no line is lost and no number is taken twice."""
    path = user_folders.log_file()
    user_folders.check_home(path)
    inside.check_owner(path)
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
    # 0 stands for sessions that were made plain by their names, and that no run had compressed.
    runs = {
        each.run
        for each in noted
        if each.at >= recent and (each.action == "compress" or not each.run)
    }
    runs |= {*[*dict.fromkeys(each.run for each in noted if each.run)][-MOST_RUNS:]}
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


# ── the file: reading ────────────────────────────────────────────────────────────────────────


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
    return json_typed.parse_line(line, Change)


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


# ── what a run did ───────────────────────────────────────────────────────────────────────────


def standing(where: Place) -> Measure:
    """Return where a session stands now. Raises as `state.opened` does.

    A rollout that is compressed is away: its live file is the plain one.
    """
    # Not before a session was changed: most commands that may keep a journal keep none.
    from sessrotate.retention import rollouts  # noqa: PLC0415

    if rollouts.is_one(where):
        path = clients.cold().form(where.live)
        with storage("look at the session"):
            status = path.lstat()
        return Measure(0, 0, path != where.live, status.st_ino, status.st_size)
    is_away = away_file.note(where) is not None
    with state.opened(where) as found:
        segments = () if found.listed is None else found.listed.segments
    pruned = sum(entry.pruned is not None for entry in segments)
    inode = size = 0
    with suppress(OSError):
        live = where.live.lstat()
        inode, size = live.st_ino, live.st_size
    return Measure(len(segments), pruned, is_away, inode, size)


class Journal:
    """What one run did so far. It is in the log from the first session on that was changed.

    Unless it `is_kept` nothing ever is: of one session that was named, its owner knows. `failure`
    is why the last line could not be written, None if it was: that stops no run.
    """

    def __init__(self, command: str, *, is_kept: bool = True) -> None:
        self._command, self._is_kept = command, is_kept
        self._number, self._at = 0, ""
        self.failure: SessrotateError | None = None

    def noting(self, action: str, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Yield outcomes as they come, and note each before the next session is begun."""
        for outcome in outcomes:
            self.note(outcome, action)
            yield outcome

    def note(self, outcome: Outcome, action: str) -> None:
        """Note what became of one session, if it was changed; `action` is the step's name."""
        where, is_done = outcome.where, outcome.result == "done"
        may_be_done = outcome.result in {"failed", "in use"}  # after the swap, before its end
        is_changed = outcome.segments or outcome.freed if is_done else outcome.freed > 0
        if not self._is_kept or action not in ACTIONS or where is None:
            return
        if not is_changed or not (is_done or may_be_done):
            return
        if action in {"heal", "rotate"}:  # a step may turn out to do the other
            action = "heal" if is_done and not outcome.segments else "rotate"
        self._at = self._at or units.written(time.time())
        change = Change(
            run=self._number,
            command=self._command,
            at=self._at,
            folder=str(clients.in_place().files.config_folder()),
            session=where.session,
            action=action,
            segments=outcome.segments,
            then=_seen(where),
        )
        try:
            self._number = note(change).run
        except SessrotateError as error:
            self.failure = error


def undone(change: Change, where: Place) -> SessrotateError | None:
    """Note that a session's part of a run was undone; return why that could not be written."""
    try:
        note(replace(change, at=units.written(time.time()), then=_seen(where)))
    except SessrotateError as error:
        return error
    return None


def plain_again(found: Iterable[Place]) -> dict[Place, Change]:
    """Return for each rollout the line that says that it was made plain by its name, for `undone`.

    It takes the session out of the run that compressed it, as far as the log can be read.
    """
    runs, rollouts = dict[str, int](), [*found]
    # Most sessions that are restored are none, and the log may be large.
    with suppress(SessrotateError):  # `undone` meets the same, and says so
        noted = changes() if rollouts else ()
        runs = {each.session: each.run for each in noted if each.action == "compress"}
    folder = str(clients.in_place().files.config_folder())
    return {
        where: Change(runs.get(where.session, 0), "restore", "", folder, where.session, UNDONE)
        for where in rollouts
    }


def plain_since() -> dict[str, float]:
    """Return when rollouts were compressed or made plain last, in seconds since 1970, by their ids.

    Of those of which the log still knows it. Raises as `changes` does.
    """
    noted = (each for each in changes() if each.action in {"compress", UNDONE})
    return {each.session: units.seconds(each.at) or 0.0 for each in noted}


def _seen(where: Place) -> Measure | None:
    try:
        return standing(where)
    except SessrotateError:
        return None


def runs(noted: Iterable[Change]) -> list[Run]:
    """Return the runs of which these are the lines, the oldest first."""
    lines: dict[int, list[Change]] = {}
    for each in noted:
        lines.setdefault(each.run, []).append(each)
    return [found for each in lines.values() if (found := _run(each)) is not None]


def _run(lines: Sequence[Change]) -> Run | None:
    done = [each for each in lines if each.action != UNDONE]
    if not done:
        return None
    sessions = dict.fromkeys(each.session for each in done)
    undone = {each.session for each in lines if each.action == UNDONE}
    to_undo = {each.session for each in done if each.action in CAN_BE_UNDONE}
    first = done[0]
    left: Undoing = "undone" if undone >= to_undo else "open"
    undoing: Undoing = left if to_undo else "impossible"
    return Run(first.run, first.command, first.at, tuple(sessions), undoing)
