"""The race as a script: it prints what it measured, and every fault is exit code 1."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.race import everybody, racing
from support.race.mutants import MUTANTS
from support.race.racing import FINISHED, Race, Result
from support.race.writers import Habits

if TYPE_CHECKING:
    from collections.abc import Iterable


def report(race: Race, result: Result) -> str:
    """Return the figures of a race as a table."""
    if race.everybody:
        return _table(_of_everybody(result))
    waits = sorted(wait for of_one in result.waits for wait in of_one)
    ended = result.outcomes
    rows = {
        "rotations": f"{result.rotations:,}",
        "restorations in between": f"{ended['restored']:,}",
        "rotators killed": f"{ended['killed']:,}",
        "of which found undone, finished": f"{ended['recovered: undo']:,}, {ended[FINISHED]:,}",
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
    return _table(rows)


def _of_everybody(result: Result) -> dict[str, str]:
    return {
        "rotations": f"{result.rotations:,}",
        "rotators killed": f"{result.outcomes['killed']:,}",
        "lines": f"{result.rows:,}",
        "sessions": f"{result.sessions}",
        "of which a program put an older file back": f"{result.crossed}",
        "lines kept aside": f"{result.kept}",
        "refusals": f"{result.refusals.total():,}",
        "seconds": f"{result.seconds:.0f}",
        "faults": f"{len(result.problems)}",
    }


def _table(rows: dict[str, str]) -> str:
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
    parser.add_argument("--each", type=int, default=Race.each, help="rotations of a session")
    parser.add_argument("--life", type=float, default=Race.life, help="seconds of one, about")
    parser.add_argument("--pause", type=float, default=0.004, help="most between two rows")
    parser.add_argument("--appenders", type=int, default=Race.appenders, metavar="K")
    parser.add_argument("--editors", type=int, default=Race.editors, metavar="K")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="on which file system")
    parser.add_argument("--everybody", action="store_true", help="who saves, moves, loses, too")
    parser.add_argument("--without-savers", action="store_true", help="nobody saves by rename")
    parser.add_argument("--without-leases", action="store_true")
    parser.add_argument("--without-kills", action="store_true")
    parser.add_argument("--mutant", choices=MUTANTS, help="take this protection out")
    options = parser.parse_args()
    race = Race(
        rotations=options.rotations,
        lines=options.lines,
        seconds=options.seconds,
        each=options.each,
        life=options.life,
        habits=Habits(pause=options.pause),
        appenders=options.appenders,
        editors=options.editors,
        folder=options.folder,
        leases=not options.without_leases,
        kills=not options.without_kills,
        everybody=options.everybody,
        savers=not options.without_savers,
    )
    with pytest.MonkeyPatch.context() as patch:
        if options.mutant:
            MUTANTS[options.mutant](patch)
        result = (everybody if race.everybody else racing).run(race)
    sys.stdout.write(f"{report(race, result)}\n\n")
    sys.stdout.write(f"All that rotators told: {dict(result.outcomes)}\n")
    for told, count in result.refusals.most_common(20):
        sys.stdout.write(f"{count} times: {told}")
    sys.stderr.write("".join(f"{problem}\n" for problem in result.problems[:20]))
    sys.exit(bool(result.problems))


if __name__ == "__main__":
    os.environ.pop("CLAUDE_CONFIG_DIR", None)
    main()
