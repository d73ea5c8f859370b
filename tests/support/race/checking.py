"""The check of a history that several writers wrote: nothing lost, repeated, torn or reordered.

Rule: what must be there is computed from each writer's count, byte for byte.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from sessrotate.system import zstd
from support.race.writers import compaction, is_same, row, told

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from support.race.writers import Wrote


def faults(
    history: bytes,
    wrote: Mapping[int, Wrote],
    late: int = 0,
    kept: bytes = b"",
    said: Iterable[bytes] = (),
    moved: Iterable[bytes] = (),
) -> list[str]:
    """Return everything that is wrong with a history.

    Every line must be there once, whole, and in its writer's order. But a row that its writer took
    back may be there too, once: the client may have taken it from a file that was being replaced.
    And `late` is how many swaps had no leases, or were killed before all lines were over: for each,
    a writer may have written one line to the replaced file, or as many as it writes to a file that
    it holds (`Wrote.held`), and those may stand behind later ones. For each, one line of a writer
    that is the same as others may be missing. Lines `kept` aside for a person are somewhere, and
    nothing is said of their order, nor of that of lines that were `moved`. Each of the rows that
    were `said` again may be there once more, behind the first.
    """
    found: list[str] = []
    seen: dict[int, list[int | None]] = {writer: [] for writer in wrote}
    aside: dict[int, list[int | None]] = {writer: [] for writer in wrote}
    first = _without(history.splitlines(keepends=True), said)
    for lines, of in ((first, seen), (kept.splitlines(keepends=True), aside)):
        for line in lines:
            whose = told(line)
            if whose is None or whose[0] not in of:
                found.append(f"torn: {line[:80]!r}")
            else:
                of[whose[0]].append(whose[1])
    placed = {*filter(None, map(told, moved))}
    for writer, did in wrote.items():
        free = {number for whose, number in placed if whose == writer}
        one = _of_one(seen[writer], aside[writer], did, late, free)
        found += [f"writer {writer}: {fault}" for fault in one]
    return found


def _without(lines: list[bytes], said: Iterable[bytes]) -> list[bytes]:
    """Return the lines without those that were said again."""
    again, there, found = Counter(said), Counter(lines), list[bytes]()
    for line in reversed(lines):
        if again[line] and there[line] > 1:
            again[line] -= 1
            there[line] -= 1
        else:
            found.append(line)
    return found[::-1]


def missing(there: Counter[bytes], wrote: Mapping[int, Wrote], late: int = 0) -> list[str]:
    """Return which lines are in no file, or less often in all files than they were written.

    `late` is as in `faults`. Copies of a line hide one that is lost, which `faults` then finds.
    """
    found: list[str] = []
    for writer, did in wrote.items():
        make = compaction if did.compacts else row
        for line, count in Counter(make(writer, number) for number in range(did.rows)).items():
            whose = told(line)
            is_alike = whose is not None and whose[1] is None
            if there[line] < count - (late if is_alike else 0):
                found.append(f"writer {writer}: {there[line]} in all files, of {count}: {line!r}")
    return found


def lines_in(files: Iterable[Path]) -> Counter[bytes]:
    """Return every line of these files, compressed ones too, and how often it is there."""
    found: Counter[bytes] = Counter()
    for path in files:
        data = path.read_bytes()
        if path.suffix == ".zst":
            with path.open("rb") as file:
                data = b"".join(zstd.decompressed(file.read, 1 << 20))
        found.update(data.splitlines(keepends=True))
    return found


def _of_one(
    seen: list[int | None], kept: list[int | None], did: Wrote, late: int, free: set[int | None]
) -> list[str]:
    """Return what is wrong with the lines of one writer; None is one that is like others.

    Those that are `free` may stand anywhere.
    """
    numbers = [number for number in seen if number is not None]
    everywhere = [number for number in (*seen, *kept) if number is not None]
    written = {number for number in range(did.rows) if did.compacts or not is_same(number)}
    alike, alike_seen = did.rows - len(written), len(seen) + len(kept) - len(everywhere)
    found: list[str] = []
    if lost := written - did.removed - {*everywhere}:
        found.append(f"lost {_some(lost)}")
    if twice := {number for number, count in Counter(everywhere).items() if count > 1}:
        found.append(f"repeated {_some(twice)}")
    if strange := {*everywhere} - written:
        found.append(f"never written {_some(strange)}")
    # What came late to the old file may be the very bytes that the client then wrote to the new one
    # (`archive.late_lines`): of lines that are all the same, one may be missing for each such swap.
    if not alike - late <= alike_seen <= alike:
        found.append(f"{alike_seen} lines that are all the same, of {alike}")
    bound = [number for number in numbers if number not in free]
    if (displaced := len(bound) - _in_order(bound)) > late * did.held:
        found.append(f"{displaced} lines behind later ones, near {_some(_turned(bound))}")
    if not found and not late and not kept:
        gone = did.removed - {*numbers}
        order = [number for number in range(did.rows) if number not in gone]
        if seen != [number if number in written else None for number in order]:
            found.append("lines that are all the same stand elsewhere")
    return found


def _in_order(numbers: list[int]) -> int:
    """Return how many numbers at most can be picked that rise: what is left was displaced."""
    ends: list[int] = []
    for number in numbers:
        at = bisect_left(ends, number)
        ends[at : at + 1] = [number]
    return len(ends)


def _turned(numbers: list[int]) -> Iterable[int]:
    return (after for before, after in pairwise(numbers) if after < before)


def _some(numbers: Iterable[int]) -> str:
    found = sorted(numbers)
    return f"{', '.join(map(str, found[:5]))}{' …' if len(found) > 5 else ''}"
