"""Clients that append to a live file while it is rotated, and the check that nothing is missing.

Rule: an appender does what Claude Code does: it opens the path for appending, writes, and closes.
What it wrote is known from its own count, and not from any file that is rotated.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

EVERY = 40
"""Rows of the first appender between two compactions."""


@dataclass(frozen=True)
class Habits:
    """How appenders behave: for how many seconds, and how they are held up."""

    seconds: float
    pause: float = 0.004
    """Most seconds between open and write, in one of twenty cases."""
    same: bool = False
    """Whether all rows of an appender are the same bytes."""


@dataclass(frozen=True)
class Wrote:
    """What an appender did: how many rows, and its longest and its middle wait for an open."""

    rows: int
    longest: float
    median: float


def row(writer: int, number: int, padding: int, habits: Habits) -> bytes:
    """Return one line."""
    if writer == 0 and number % EVERY == EVERY - 1:
        fields: dict[str, Any] = {"type": "system", "subtype": "compact_boundary"}
        fields["compactMetadata"] = {"trigger": "auto"}
        fields["uuid"] = f"boundary-{number}"
    elif habits.same:
        return b'{"type":"mode","sessionId":"%d"}\n' % writer
    else:
        fields = {"type": "user", "uuid": f"{writer}-{number}", "message": "x" * padding}
    fields |= {"writer": writer, "number": number}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def append(live: Path, writer: int, habits: Habits, results: Any) -> None:
    """Append rows until the time is over; then say what was written."""
    chance = random.Random(writer)
    waits: list[float] = []
    number = 0
    end = time.monotonic() + habits.seconds
    while time.monotonic() < end:
        line = row(writer, number, chance.randrange(20, 400), habits)
        begun = time.perf_counter()
        fd = os.open(live, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        waits.append(time.perf_counter() - begun)
        if chance.random() < 0.05:
            time.sleep(chance.random() * habits.pause)
        os.write(fd, line)
        os.close(fd)
        number += 1
        if chance.random() < 0.2:
            time.sleep(chance.random() * 0.002)
    waits.sort()
    results.put((writer, Wrote(number, waits[-1], waits[len(waits) // 2])))


class Appenders:
    """So many appenders at work; `finished` waits for them."""

    def __init__(self, live: Path, count: int, habits: Habits) -> None:
        context = multiprocessing.get_context("fork")
        self._results: Any = context.Queue()
        self._processes = [
            context.Process(target=append, args=(live, number, habits, self._results))
            for number in range(count)
        ]
        for process in self._processes:
            process.start()

    def are_at_work(self) -> bool:
        """Tell whether all of them still append."""
        return all(process.is_alive() for process in self._processes)

    def finished(self) -> dict[int, Wrote]:
        """Return what each wrote."""
        found = dict(self._results.get(timeout=60) for _ in self._processes)
        for process in self._processes:
            process.join()
        return found


def missing(history: bytes, wrote: dict[int, Wrote], habits: Habits) -> list[str]:
    """Return everything that is wrong with a history: nothing lost, repeated, torn, reordered."""
    problems: list[str] = []
    seen: dict[int, list[int]] = {writer: [] for writer in wrote}
    alike = dict.fromkeys(wrote, 0)
    for line in history.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            problems.append(f"torn: {line[:60]!r}")
            continue
        if found["type"] == "mode":
            alike[int(found["sessionId"])] += 1
        elif found["type"] != "segment_header":
            seen[found["writer"]].append(found["number"])
    for writer, did in wrote.items():
        wanted = [*range(did.rows)]
        if habits.same:
            wanted = [number for number in wanted if writer == 0 and number % EVERY == EVERY - 1]
            if alike[writer] != did.rows - len(wanted):
                problems.append(f"{alike[writer]} of {did.rows - len(wanted)} rows of {writer}")
        if seen[writer] != wanted:
            lost = sorted({*wanted} - {*seen[writer]})[:5]
            problems.append(f"writer {writer}: lost {lost} or in another order")
    return problems
