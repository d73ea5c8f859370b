"""What a run over many sessions did, noted in the log of runs, so that `restore` undoes it.

Promise: outcomes → a line for each session that was changed; those lines → runs.

Rule: a line is added as soon as a session is done, so that a crash half-way leaves what was done
until then.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients, units
from sessrotate.archive import away_file, state
from sessrotate.archive.place import Place
from sessrotate.errors import SessrotateError, storage
from sessrotate.job import run_log
from sessrotate.job.run_log import ACTIONS, CAN_BE_UNDONE, UNDONE, Change, Standing

if TYPE_CHECKING:
    from sessrotate.in_place.outcome import Outcome


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


def standing(where: Place) -> Standing:
    """Return where a session stands now. Raises as `state.opened` does.

    A rollout that is compressed is away: its live file is the plain one.
    """
    # Not before a session was changed: most commands that may keep a journal keep none.
    from sessrotate.retention import rollouts  # noqa: PLC0415

    if rollouts.is_one(where):
        path = clients.cold().form(where.live)
        with storage("look at the session"):
            status = path.lstat()
        return Standing(0, 0, path != where.live, status.st_ino, status.st_size)
    is_away = away_file.note(where) is not None
    with state.opened(where) as found:
        segments = () if found.listed is None else found.listed.segments
    pruned = sum(entry.pruned is not None for entry in segments)
    inode = size = 0
    with suppress(OSError):
        live = where.live.lstat()
        inode, size = live.st_ino, live.st_size
    return Standing(len(segments), pruned, is_away, inode, size)


# ── writing ──────────────────────────────────────────────────────────────────────────────────


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
            self._number = run_log.note(change).run
        except SessrotateError as error:
            self.failure = error


def undone(change: Change, where: Place) -> SessrotateError | None:
    """Note that a session's part of a run was undone; return why that could not be written."""
    try:
        run_log.note(replace(change, at=units.written(time.time()), then=_seen(where)))
    except SessrotateError as error:
        return error
    return None


def plain_again(where: Place) -> SessrotateError | None:
    """Note that a rollout was made plain, by its name; return why that could not be written."""
    try:
        noted = [each for each in run_log.changes() if each.session == where.session]
    except SessrotateError as error:
        return error
    run = max((each.run for each in noted if each.action == "compress"), default=0)
    folder = str(clients.in_place().files.config_folder())
    return undone(Change(run, "restore", "", folder, where.session, UNDONE), where)


def plain_since() -> dict[str, float]:
    """Return when rollouts were compressed or made plain last, in seconds since 1970, by their ids.

    Of those of which the log still knows it. Raises as `run_log.changes` does.
    """
    noted = (each for each in run_log.changes() if each.action in {"compress", UNDONE})
    return {each.session: units.seconds(each.at) or 0.0 for each in noted}


def _seen(where: Place) -> Standing | None:
    try:
        return standing(where)
    except SessrotateError:
        return None


# ── reading ──────────────────────────────────────────────────────────────────────────────────


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
