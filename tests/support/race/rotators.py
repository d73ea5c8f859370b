"""Rotators at work on a session that others write to, each a process of its own, some killed.

Rule: a rotation is what the command does, `in_place.rotate_session` with `live`. Whatever ends it
but a kill of ours or a refusal that is foreseen, is a fault.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
import traceback
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sessrotate.errors import InUseError
from sessrotate.in_place import operations
from support.homes import silent
from support.race.writers import Turns, Wrote, append, compaction

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from sessrotate.archive.place import Place

KILLED: Final = 3
"""Every so many rotators are killed."""

RESTORED: Final = 7
"""Every so many times the session is restored instead, if nobody is seen to write to it."""

NO_SUMMARY: Final = "The last compaction has no summary."
"""Why there is no rotation while a compaction is the last line."""

WAIT: Final = 5.0
"""Seconds that a rotator waits for a moment without a writer."""


@dataclass
class Driven:
    """What one after the other came to: outcomes counted, what went wrong, and what was written.

    `seconds` are those for which each swap may have held up a client.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    rows: int = 0

    @property
    def wrote(self) -> Wrote:
        """The compactions that were appended."""
        return Wrote(self.rows, compacts=True, waits=tuple(self.waits))


class Driver:
    """Has a session compacted and rotated again and again."""

    def __init__(
        self,
        where: Place,
        writer: int,
        turns: Turns | None,
        chance: random.Random,
        *,
        kills: bool,
    ) -> None:
        self._where, self._writer, self._turns, self._kills = where, writer, turns, kills
        self._chance = chance
        self._usual = 0.1
        self._count = 0
        self.driven = Driven()

    def turn(self) -> None:
        """Append a compaction and have the session rotated by a process of its own."""
        line = compaction(self._writer, self.driven.rows)
        with ExitStack() as turn:
            if self._turns:
                turn.enter_context(self._turns.compactions(alone=True))
                turn.enter_context(self._turns.rows(alone=False))
            self.driven.waits.append(append(self._where.live, line))
        self.driven.rows += 1
        self._count += 1
        # A little longer than most take, so that every moment has its turn.
        delay = self._chance.random() * self._usual * 1.2
        kills = self._kills and self._count % KILLED == 0
        begun = time.perf_counter()
        deed = restored if self._count % RESTORED == 0 else rotated
        told = deed(self._where, WAIT, delay if kills else None)
        if "seconds" in told:
            self.driven.seconds.append(told["seconds"])
            self._usual += (time.perf_counter() - begun - self._usual) / 8
        if "problem" in told:
            self.driven.problems.append(told["problem"])
        self.driven.outcomes.update([told["what"]])
        if "deed" in told:
            self.driven.outcomes.update([f"recovered: {told['deed']}"])


def rotated(where: Place, wait: float, kill_after: float | None = None) -> dict[str, Any]:
    """Rotate once, in a process of its own; say what came of it.

    If `kill_after` seconds are over before, the process is killed.
    """
    return in_a_process(partial(_rotation, where, wait), kill_after)


def restored(where: Place, wait: float, kill_after: float | None = None) -> dict[str, Any]:
    """Restore once, in the same way."""
    return in_a_process(partial(_restoration, where, wait), kill_after)


def in_a_process(deed: Callable[[], dict[str, Any]], kill_after: float | None) -> dict[str, Any]:
    """Do this in a process of its own; say what came of it."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        _do(deed, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        is_late = kill_after is not None and not select.select([said], [], [], kill_after)[0]
        if is_late:
            os.kill(pid, signal.SIGKILL)
        data = said.read()
    _, status = os.waitpid(pid, 0)
    if is_late:
        return {"what": "killed"}
    if not data:
        code = os.waitstatus_to_exitcode(status)
        return {"what": "died", "problem": f"a rotator ended by itself with {code}"}
    found: dict[str, Any] = json.loads(data)
    return found


def _do(deed: Callable[[], dict[str, Any]], telling: int) -> NoReturn:
    """Do it in this process, tell what came of it, and end."""
    try:
        told = deed()
    except InUseError as error:
        told = {"what": "in use", "why": str(error)}
    except BaseException:  # noqa: BLE001 - whatever it is, it is told, and this process ends
        told = {"what": "failed", "problem": traceback.format_exc()}
    os.write(telling, json.dumps(told).encode())
    os._exit(0)


def _rotation(where: Place, wait: float) -> dict[str, Any]:
    done = operations.rotate_session(where, wait, silent, live=True)
    told: dict[str, Any] = {"deed": done.recovered.deed}
    if done.refusal is not None and NO_SUMMARY in str(done.refusal):
        return told | {"what": "in use", "why": "a client is between a compaction and the next row"}
    if done.refusal is not None and not isinstance(done.refusal, InUseError):
        raise done.refusal
    if done.refusal is not None:
        return told | {"what": "in use", "why": str(done.refusal)}
    if done.seconds is None:
        return told | {"what": "nothing to cut"}
    return told | {"what": "pending" if done.pending else "rotated", "seconds": done.seconds}


def _restoration(where: Place, wait: float) -> dict[str, Any]:
    done = operations.restore_session(where, wait, silent)
    return {"what": "restored" if done else "nothing to restore"}
