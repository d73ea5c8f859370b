"""The journal: what the last runs over many sessions did, so that `restore --last-run` undoes it.

Promise: outcomes → a small file for each run that changed something; `last` → the newest of them.

Rule: ids and numbers, never the content of a session. Only its owner can read a file. A line is
added as soon as a session is done, so that a crash half-way leaves what was done until then. What
a file says is not believed: an id is only compared with those of sessions that are there.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct

from sessrotate import fs, units
from sessrotate.archive import archived_file, state
from sessrotate.errors import DamagedError, SessrotateError, printable, storage
from sessrotate.model import Count  # noqa: TC001 - msgspec reads the annotations
from sessrotate.segments import load, one_line
from sessrotate.system import ownership, user_folders

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.in_place.outcome import Outcome

MOST: Final = 20
"""Runs that are kept."""

MOST_BYTES: Final = 16 << 20
"""Bytes of a file that are read: 50,000 sessions."""

ACTIONS: Final = ("heal", "rotate", "archive", "prune", "trash")
"""What is noted, by the names of the steps of a run; what others did needs no undoing."""

_NAME: Final = re.compile(r"(\d{1,15})\.jsonl")


class Standing(Struct, frozen=True):
    """Where a session stands, in numbers: if they differ, somebody changed it since.

    `segments` are those of its archive, and `pruned` how many of them have a tombstone; `archive`
    is the inode of its folder, `inode` and `size` (bytes) are the live file's; 0 if there is none.
    A live file that was replaced twice may have its old inode again, while an archive that was
    restored keeps its own in the trash.
    """

    segments: Count
    pruned: Count
    is_away: bool
    archive: Count
    inode: Count
    size: Count


class Entry(Struct, frozen=True):
    """What a run did to one session.

    `segments` are the numbers of those that it archived or pruned; `then` is how it left the
    session, None if that could not be seen.
    """

    session: Annotated[str, Meta(max_length=255)]
    action: str
    segments: tuple[Count, ...] = ()
    then: Standing | None = None


class _Heading(Struct, frozen=True):
    """The first line of a journal."""

    command: str
    at: str


class Run(Struct, frozen=True):
    """A run that changed something: which command, when (ISO 8601, UTC), and what it did."""

    command: str
    at: str
    entries: tuple[Entry, ...]


def standing(where: Place) -> Standing:
    """Return where a session stands now. Raises as `state.opened` does."""
    is_away = archived_file.note(where) is not None
    with state.opened(where) as found:
        segments = () if found.listed is None else found.listed.segments
    pruned = sum(entry.pruned is not None for entry in segments)
    archive, live = _status(where.archive), _status(where.live)
    return Standing(
        segments=len(segments),
        pruned=pruned,
        is_away=is_away,
        archive=0 if archive is None else archive.st_ino,
        inode=0 if live is None else live.st_ino,
        size=0 if live is None else live.st_size,
    )


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


# ── writing ──────────────────────────────────────────────────────────────────────────────────


class Journal:
    """What one run did so far. Its file appears with the first session that was changed.

    `failure` is why the last line could not be written, None if it was: that stops no run.
    """

    def __init__(self, command: str, *, is_kept: bool) -> None:
        self._command, self._is_kept = command, is_kept
        self._file: Path | None = None
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
        try:
            then = standing(where)
        except SessrotateError:
            then = None
        try:
            self._add(Entry(where.session, action, outcome.segments, then))
        except SessrotateError as error:
            self.failure = error

    def _add(self, entry: Entry) -> None:
        line = one_line.dump(entry)
        with storage("write the journal"):
            if self._file is not None:
                # Behind a line that was written in part, one of its own.
                fs.append(self._file, line if self.failure is None else b"\n" + line)
                return
            self._file = _created(self._heading() + line)
            _drop_oldest()

    def _heading(self) -> bytes:
        at = units.written(time.time())
        return one_line.dump(_Heading(self._command, at))


def begin(command: str, *, is_kept: bool = True) -> Journal:
    """Return the journal of a run of this command; nothing is written yet.

    Unless `is_kept` nothing ever is: of one session that was named, its owner knows.
    """
    return Journal(command, is_kept=is_kept)


def _created(data: bytes) -> Path:
    """Write the newest file; its number, and not the clock, says that it is the newest."""
    folder = user_folders.journal_folder()
    user_folders.check_home(folder)
    ownership.check(folder)
    fs.create_folder(folder)
    number = max(_numbers(folder), default=0)
    while True:
        number += 1
        path = folder / f"{number:06}.jsonl"
        try:
            fs.create_file(path, data)
        except FileExistsError:  # another run is as fast
            continue
        return path


def _numbers(folder: Path) -> dict[int, str]:
    """Return the names of the files in the folder, by their numbers."""
    if not folder.is_dir():
        return {}
    found = (_NAME.fullmatch(path.name) for path in folder.iterdir())
    return {int(match[1]): match[0] for match in found if match is not None}


def _drop_oldest() -> None:
    folder = user_folders.journal_folder()
    there = _numbers(folder)
    fs.remove_files(folder, [there[number] for number in sorted(there)[:-MOST]])


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def last() -> Run | None:
    """Return the newest run that changed something, None if none is known.

    Raises DamagedError if what it did cannot be read: an earlier one is not taken for it.
    """
    folder = user_folders.journal_folder()
    with storage("read the journal"):
        there = _numbers(folder)
        if not there:
            return None
        name = there[max(there)]
        lines = load.read_small(folder, name, MOST_BYTES).splitlines()
    heading = one_line.parse(lines[0] + b"\n", _Heading) if lines else None
    found = (one_line.parse(line + b"\n", Entry) for line in lines[1:])
    entries = tuple(entry for entry in found if entry is not None and entry.action in ACTIONS)
    if heading is None or not entries:
        path = printable(str(folder / name))
        raise DamagedError(f"{path} does not say what the last run did: name the sessions.")
    return Run(heading.command, heading.at, entries)
