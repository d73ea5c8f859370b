"""The race: several writers, and several rotators of which every third is killed.

Promise: what it prints was measured in this run, and a fault is printed and is exit code 1.
Rule: a race is run in rounds, each with a session of its own, so that archives stay small.
"""

from __future__ import annotations

import multiprocessing
import random
import shutil
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate import fs
from sessrotate.archive import late_lines, state
from sessrotate.archive.place import Place
from sessrotate.in_place import operations, swap, waiting
from sessrotate.in_place.seal import NotQuietError
from sessrotate.system import locks
from support import sets
from support.homes import silent
from support.portable import have_quiet, lack
from support.race.checking import faults
from support.race.rotators import NO_SUMMARY, Driver
from support.race.writers import Habits, Turns, Writer, Wrote

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.race.rotators import Driven

ID: Final = "5e55107a-0000-4000-a000-000000000001"

FAST: Final = Habits()
SLOW: Final = Habits(pause=0.1, hold=0.05)
EDITOR: Final = Habits(pause=0.02, takes_back=0.5)

_COMPACTS: Final = 1000
"""The number of the first writer that only compacts."""

FINISHED: Final = "recovered: finish"

_RUNS: Final = 5
"""Runs that must do what is left: without leases, one must find the replaced file quiet."""

_append: Final = fs.append
_take_place: Final = fs.take_place

_LOOK: Final = 0.05
_QUIET: Final = 0.5
"""Seconds after which the old file counts as done with where there are no leases."""


@dataclass(frozen=True)
class Race:
    """What is run until there are so many `rotations` and `lines`, or `seconds` are over.

    With `turns`, until each rotator had so many, however long that takes.
    """

    rotations: int = 2000
    lines: int = 1_000_000
    seconds: float = 3600.0
    turns: int = 0
    appenders: int = 10
    slow: float = 0.3
    editors: int = 0
    rotators: int = 2
    kills: bool = True
    leases: bool = True
    everybody: bool = False
    savers: bool = True
    folder: Path | None = None
    each: int = 250
    """Rotations of a session, before the next one is begun."""
    life: float = 3600.0
    """Seconds after which the next one is begun if it was rotated at all, with everybody in it."""
    uncrossed: int = 0
    """At least so many sessions that are judged to the end, so not `crossed`, whatever it takes."""
    habits: Habits = FAST
    seed: str = "0"
    """What the writers' pauses and the moments of the kills are drawn from."""

    def of_writers(self) -> list[Habits]:
        """Return how each writer behaves."""
        slow = round(self.appenders * self.slow)
        fast = self.appenders - slow
        return [*[self.habits] * fast, *[SLOW] * slow, *[EDITOR] * self.editors]


@dataclass
class Result:
    """What a race came to."""

    outcomes: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    swaps: list[float] = field(default_factory=list)
    waits: list[list[float]] = field(default_factory=list)
    rows: int = 0
    removed: int = 0
    seconds: float = 0.0
    sessions: int = 0
    crossed: int = 0
    """Sessions that a program replaced by what it had read before a rotation."""
    kept: int = 0
    """Lines that are in a file kept aside, for a person to compare."""

    def __str__(self) -> str:
        """Say in a line how much was done."""
        return f"{self.rows} rows, {self.removed} taken back, {dict(self.outcomes)}"

    @property
    def rotations(self) -> int:
        """How many live files were replaced, as far as it was told: by none that was killed."""
        return self.outcomes["rotated"] + self.outcomes["pending"]

    @property
    def longest_wait(self) -> float:
        """The longest that any writer waited for a file to open, in seconds."""
        return max(max(waits) for waits in self.waits)

    @property
    def median_wait(self) -> float:
        """The largest of the writers' medians, in seconds."""
        return max(statistics.median(waits) for waits in self.waits)


class Shared:
    """What all processes of a round look at: when to stop, and how far each one is."""

    def __init__(self, writers: int, drivers: int) -> None:
        self.context = multiprocessing.get_context("fork")
        self.stop = self.context.RawValue("b", 0)
        self.rows = self.context.RawArray("Q", writers)
        self.rotations = self.context.RawArray("Q", drivers)
        self.turns = self.context.RawArray("Q", drivers)
        self.results: Any = self.context.SimpleQueue()


def write(
    shared: Shared, race: Race, live: Path, number: int, habits: Habits, turns: Turns | None
) -> None:
    """Be a writer until it is time to stop."""
    writer = Writer(live, number, habits, turns, random.Random(f"{race.seed} {number}"))
    while not shared.stop.value:
        writer.write()
        shared.rows[number] = writer.rows
    shared.results.put((number, writer.wrote))


def drive(shared: Shared, race: Race, where: Place, number: int, turns: Turns | None) -> None:
    """Be one who starts rotators until it is time to stop."""
    writer = _COMPACTS + number
    chance = random.Random(f"{race.seed} {writer}")
    driver = Driver(where, writer, turns, chance, kills=race.kills)
    while not shared.stop.value:
        if race.turns and shared.turns[number] == race.turns:
            time.sleep(_LOOK)  # the others are not done yet
            continue
        driver.turn()
        outcomes = driver.driven.outcomes
        shared.rotations[number] = outcomes["rotated"] + outcomes["pending"]
        shared.turns[number] += 1
    shared.results.put((_COMPACTS + number, driver.driven))


def run(race: Race) -> Result:
    """Run a race and check every session of it."""
    result, begun = Result(), time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        if not race.leases:
            lack(patch, "leases")
            # A restoration ends only when the files that it replaced have been quiet for a day.
            have_quiet(patch, _QUIET)
        while not result.problems and not is_over(race, result, begun):
            folder = Path(tempfile.mkdtemp(prefix="sessrotate-race-", dir=race.folder)).resolve()
            try:
                with pytest.MonkeyPatch.context() as telling:
                    Told(folder).install(telling)
                    _round(race, folder, result, begun)
            finally:
                shutil.rmtree(folder)
            result.seconds = time.monotonic() - begun
    return result


def is_over(race: Race, result: Result, begun: float, rotations: int = 0, rows: int = 0) -> bool:
    """Tell whether there are enough rotations and lines, or enough seconds, since `begun`."""
    if race.turns:
        return result.sessions > 0
    if time.monotonic() - begun >= race.seconds:
        return True
    rotations, rows = rotations + result.rotations, rows + result.rows
    return rotations >= race.rotations and rows >= race.lines


@dataclass(frozen=True)
class Told:
    """What swaps tell of themselves, whatever process does them: each by a byte or line in a file.

    One when it is begun, one when late lines come no more, the lines that come even later and are
    brought over by sealing, and the rows that are said again behind those.
    """

    folder: Path

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Have all swaps be told from now on."""
        drain = swap._Swap._drain  # noqa: SLF001 - it is when lines come late no more

        def begun(draft: Path, path: Path, is_it: Callable[[Path], bool]) -> None:
            self._tell("begun", b".")
            _take_place(draft, path, is_it)

        def drained(self_: Any) -> None:
            drain(self_)
            old = self_._old.fd  # noqa: SLF001 - as above
            if locks.read_lease(old) != "busy":  # or it gave up on somebody who is slow to write
                locks.release_lease(old)
                self._tell("drained", b".")

        def said(*late: Any) -> bytes:
            line = late_lines.said_again(*late)
            self._tell("said", line)
            return line

        def moved(path: Path, data: bytes) -> None:
            self._tell("moved", data)
            _append(path, data)

        patch.setattr(fs, "append", moved)
        patch.setattr(fs, "take_place", begun)
        patch.setattr(swap._Swap, "_drain", drained)  # noqa: SLF001 - as above
        patch.setattr(waiting, "said_again", said)

    def late(self, *, leases: bool) -> int:
        """Return how many swaps may have left lines to come late.

        Without leases that is each; else those that were killed, or gave up, before all was over.
        """
        begun, drained = (len(self._told(name)) for name in ("begun", "drained"))
        return begun - drained if leases else begun

    def said(self) -> list[bytes]:
        """Return the rows that were said again."""
        return self._told("said").splitlines(keepends=True)

    def moved(self, *, leases: bool) -> list[bytes]:
        """Return the lines that may stand behind later ones.

        Without leases these are all that came between our last look and the rename, and after.
        """
        return [] if leases else self._told("moved").splitlines(keepends=True)

    def _tell(self, name: str, told: bytes) -> None:
        with (self.folder / f"told {name}").open("ab", buffering=0) as file:
            file.write(told)

    def _told(self, name: str) -> bytes:
        file = self.folder / f"told {name}"
        return file.read_bytes() if file.exists() else b""


def _round(race: Race, folder: Path, result: Result, begun: float) -> None:
    where = Place(folder, "p", ID, folder / "projects" / "p" / f"{ID}.jsonl")
    where.live.parent.mkdir(parents=True)
    where.live.touch()
    turns = Turns(folder) if race.editors else None
    habits = race.of_writers()
    shared = Shared(len(habits), race.rotators)
    start = shared.context.Process
    at_work = [
        start(target=write, args=(shared, race, where.live, number, one, turns))
        for number, one in enumerate(habits)
    ]
    at_work += [
        start(target=drive, args=(shared, race, where, n, turns)) for n in range(race.rotators)
    ]
    for process in at_work:
        process.start()
    while sum(shared.rotations) < race.each:
        if is_over(race, result, begun, sum(shared.rotations), sum(shared.rows)):
            break
        if race.turns and min(shared.turns) == race.turns:
            break
        if not all(process.is_alive() for process in at_work):
            result.problems.append("a writer ended by itself")
            break
        time.sleep(_LOOK)
    shared.stop.value = 1
    wrote: dict[int, Wrote] = {}
    for _ in at_work:
        number, told = shared.results.get()
        wrote[number] = told if isinstance(told, Wrote) else _driven(told, result)
    for process in at_work:
        process.join()
    result.rows += sum(did.rows for did in wrote.values())
    result.removed += sum(len(did.removed) for did in wrote.values())
    result.waits += [[*did.waits] for did in wrote.values() if did.waits]
    result.sessions += 1
    problems = finished(where, race)
    swapped, leases = Told(folder), race.leases
    late, moved = swapped.late(leases=leases), swapped.moved(leases=leases)
    result.problems += problems
    result.problems += faults(history(where), wrote, late, said=swapped.said(), moved=moved)


def _driven(driven: Driven, result: Result) -> Wrote:
    result.problems += driven.problems
    result.outcomes += driven.outcomes
    result.swaps += driven.seconds
    return driven.wrote


def finished(where: Place, race: Race) -> list[str]:
    """Finish what is left to do, all being quiet; return what is wrong then."""
    done = None
    for _ in range(_RUNS):
        if not race.leases:
            time.sleep(_QUIET)
        try:
            done = operations.rotate_session(where, 10, silent, live=True)
        except NotQuietError:
            if race.leases:
                raise
        if done is not None and not done.pending:
            break
    else:
        return [f"after {_RUNS} runs something is left to do"]
    refusals = [] if done.refusal is None else [str(done.refusal)]
    problems = [text for text in refusals if NO_SUMMARY not in text]
    # A restored session that cannot be rotated now stays restored, and its record says so.
    gone = {"pack"} if refusals else {"pack", "record.json"}
    left = {entry.name for entry in where.archive.iterdir()} & gone
    problems += [f"{name} is left" for name in left]
    with state.opened(where) as found:
        problems += [one.detail for one in sets.holder(found).verify(lambda _done: None)]
    return problems


def history(where: Place) -> bytes:
    """Return the whole history of a session."""
    with state.opened(where) as found:
        return sets.whole(found)
