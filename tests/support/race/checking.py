"""The check of a history that several writers wrote: nothing lost, repeated, torn or reordered.

Rule: what must be there is computed from each writer's count, byte for byte.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from support.race.writers import is_same, told

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from support.race.writers import Wrote


def faults(history: bytes, wrote: Mapping[int, Wrote], late: int = 0) -> list[str]:
    """Return everything that is wrong with a history.

    Every line must be there once, whole, and in its writer's order. But a row that its writer took
    back may be there too, once: the client may have taken it from a file that was being replaced.
    And `late` lines of each writer may stand behind later ones of the same: one for each swap that
    had no leases.
    """
    found: list[str] = []
    seen: dict[int, list[int | None]] = {writer: [] for writer in wrote}
    for line in history.splitlines(keepends=True):
        whose = told(line)
        if whose is None or whose[0] not in seen:
            found.append(f"torn: {line[:80]!r}")
        else:
            seen[whose[0]].append(whose[1])
    for writer, did in wrote.items():
        found += [f"writer {writer}: {fault}" for fault in _of_one(seen[writer], did, late)]
    return found


def _of_one(seen: list[int | None], did: Wrote, late: int) -> list[str]:
    """Return what is wrong with the lines of one writer; None is one that is like others."""
    numbers = [number for number in seen if number is not None]
    written = {number for number in range(did.rows) if did.compacts or not is_same(number)}
    alike = did.rows - len(written)
    found: list[str] = []
    if lost := written - did.removed - {*numbers}:
        found.append(f"lost {_some(lost)}")
    if twice := {number for number, count in Counter(numbers).items() if count > 1}:
        found.append(f"repeated {_some(twice)}")
    if strange := {*numbers} - written:
        found.append(f"never written {_some(strange)}")
    if len(seen) - len(numbers) != alike:
        found.append(f"{len(seen) - len(numbers)} lines that are all the same, of {alike}")
    if (displaced := len(numbers) - _in_order(numbers)) > late:
        found.append(f"{displaced} lines behind later ones, near {_some(_turned(numbers))}")
    if not found and not late:
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
