"""The race: several writers, and several rotators of which every third is killed.

Promise: what it prints was measured in this run, and a fault is printed and is exit code 1.
Rule: a race is run in rounds, each with a session of its own, so that archives stay small.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.archive import state
from sessrotate.archive.place import Place
from sessrotate.in_place import operations, seal, waiting
from sessrotate.in_place.seal import NotQuietError
from sessrotate.reading import stitch
from sessrotate.system import lease
from support.homes import silent
from support.race.checking import faults
from support.race.mutants import MUTANTS
from support.race.rotators import Driver
from support.race.writers import Habits, Turns, Writer, Wrote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from support.race.rotators import Driven

ID: Final = "5e55107a-0000-4000-a000-000000000001"

FAST: Final = Habits()
SLOW: Final = Habits(pause=0.1, hold=0.05)
EDITOR: Final = Habits(pause=0.02, takes_back=0.5)

_COMPACTS: Final = 1000
"""The number of the first writer that only compacts."""

_FINISHED: Final = "recovered: finish"

_RUNS: Final = 5
"""Runs that must do what is left: without leases, each merge of late lines is a run of its own."""

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
    folder: Path | None = None
    each: int = 250
    """Rotations of a session, before the next one is begun."""
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
    problems: list[str] = field(default_factory=list)
    swaps: list[float] = field(default_factory=list)
    waits: list[list[float]] = field(default_factory=list)
    rows: int = 0
    removed: int = 0
    seconds: float = 0.0
    sessions: int = 0

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
            patch.setattr(lease, "_take", lambda _fd, _kind: "none")
            patch.setattr(seal, "_QUIET", _QUIET)
            # A restoration ends only when the files that it replaced have been quiet for a day.
            patch.setattr(waiting, "is_over", partial(waiting.is_over, quiet=_QUIET))
        while not result.problems and not _is_over(race, result, begun):
            folder = Path(tempfile.mkdtemp(prefix="sessrotate-race-", dir=race.folder)).resolve()
            try:
                _round(race, folder, result, begun)
            finally:
                shutil.rmtree(folder)
            result.seconds = time.monotonic() - begun
    return result


def _is_over(race: Race, result: Result, begun: float, rotations: int = 0, rows: int = 0) -> bool:
    if race.turns:
        return result.sessions > 0
    if time.monotonic() - begun >= race.seconds:
        return True
    rotations, rows = rotations + result.rotations, rows + result.rows
    return rotations >= race.rotations and rows >= race.lines


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
        if _is_over(race, result, begun, sum(shared.rotations), sum(shared.rows)):
            break
        if race.turns and min(shared.turns) == race.turns:
            break
        if not all(process.is_alive() for process in at_work):
            result.problems.append("a writer ended by itself")
            break
        time.sleep(_LOOK)
    shared.stop.value = 1
    wrote: dict[int, Wrote] = {}
    outcomes: Counter[str] = Counter()
    for _ in at_work:
        number, told = shared.results.get()
        wrote[number] = told if isinstance(told, Wrote) else _driven(told, result)
        outcomes += Counter() if isinstance(told, Wrote) else told.outcomes
    for process in at_work:
        process.join()
    result.rows += sum(did.rows for did in wrote.values())
    result.removed += sum(len(did.removed) for did in wrote.values())
    result.waits += [[*did.waits] for did in wrote.values() if did.waits]
    result.sessions += 1
    problems = finished(where, race)
    late = 0 if race.leases else sum(outcomes.values())
    result.outcomes += outcomes
    result.problems += problems
    result.problems += faults(history(where), wrote, late)


def _driven(driven: Driven, result: Result) -> Wrote:
    result.problems += driven.problems
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
    problems = [] if done.refusal is None else [str(done.refusal)]
    left = {entry.name for entry in where.archive.iterdir()} & {"pack", "intent.json"}
    problems += [f"{name} is left" for name in left]
    with state.opened(where) as found:
        problems += [one.detail for one in stitch.verify(found, lambda _done: None)]
    return problems


def history(where: Place) -> bytes:
    """Return the whole history of a session."""
    with state.opened(where) as found:
        return b"".join(bytes(piece) for piece in stitch.stream(found))


# ── the script ───────────────────────────────────────────────────────────────────────────────


def report(race: Race, result: Result) -> str:
    """Return the figures of a race as a table."""
    waits = sorted(wait for of_one in result.waits for wait in of_one)
    ended = result.outcomes
    rows = {
        "rotations": f"{result.rotations:,}",
        "restorations in between": f"{ended['restored']:,}",
        "rotators killed": f"{ended['killed']:,}",
        "of which found undone, finished": f"{ended['recovered: undo']:,}, {ended[_FINISHED]:,}",
        "rotators that found the session in use": f"{ended['in use']:,}",
        "lines": f"{result.rows:,}",
        "rows taken back by clients": f"{result.removed:,}",
        "sessions": f"{result.sessions}",
        "appenders": f"{race.appenders}, of which slow {round(race.appenders * race.slow)}",
        "editors": f"{race.editors}",
        "seconds": f"{result.seconds:.0f}",
        "swap, median and longest": _ms(statistics.median(result.swaps), max(result.swaps)),
        "wait of a writer, the highest median and the longest": _ms(
            result.median_wait, result.longest_wait
        ),
        "waits over 1 ms, 50 ms, 250 ms": _over(waits, 0.001, 0.05, 0.25),
        "faults": f"{len(result.problems)}",
    }
    table = [f"| {what} | {figure} |" for what, figure in rows.items()]
    return "\n".join(["| what | figure |", "| --- | --- |", *table])


def _ms(*seconds: float) -> str:
    return ", ".join(f"{second * 1000:.2f} ms" for second in seconds)


def _over(waits: list[float], *limits: float) -> str:
    shares: Iterable[float] = (sum(wait > limit for wait in waits) / len(waits) for limit in limits)
    return ", ".join(f"{share:.4%}" for share in shares)


def main() -> None:
    """Run a race and print its figures."""
    parser = argparse.ArgumentParser(prog="scripts/race", description="Rotates under writers.")
    parser.add_argument("--rotations", type=int, default=Race.rotations, help="at least so many")
    parser.add_argument("--lines", type=int, default=Race.lines, help="at least so many")
    parser.add_argument("--seconds", type=float, default=Race.seconds, help="at most so many")
    parser.add_argument("--appenders", type=int, default=Race.appenders, metavar="K")
    parser.add_argument("--editors", type=int, default=Race.editors, metavar="K")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="on which file system")
    parser.add_argument("--without-leases", action="store_true")
    parser.add_argument("--without-kills", action="store_true")
    parser.add_argument("--mutant", choices=MUTANTS, help="take this protection out")
    options = parser.parse_args()
    race = Race(
        rotations=options.rotations,
        lines=options.lines,
        seconds=options.seconds,
        appenders=options.appenders,
        editors=options.editors,
        folder=options.folder,
        leases=not options.without_leases,
        kills=not options.without_kills,
    )
    with pytest.MonkeyPatch.context() as patch:
        if options.mutant:
            MUTANTS[options.mutant](patch)
        result = run(race)
    sys.stdout.write(f"{report(race, result)}\n\n")
    sys.stdout.write(f"All that rotators told: {dict(result.outcomes)}\n")
    sys.stderr.write("".join(f"{problem}\n" for problem in result.problems[:20]))
    sys.exit(bool(result.problems))


if __name__ == "__main__":
    os.environ.pop("CLAUDE_CONFIG_DIR", None)
    main()
