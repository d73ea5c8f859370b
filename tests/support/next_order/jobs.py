"""Which histories are tried: a sample in the gate, a sweep in the soak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from support.next_order.histories import Job

if TYPE_CHECKING:
    from collections.abc import Iterator

BOTH: Final = (True, False)
"""With leases, and without."""

LIVES: Final = ("r", "rR", "rcr", "rRr", "rpRr", "rpeRr", "rRgr")
"""Rotate; restore; compact between; restore and rotate; prune, empty the trash, free."""

LOSING: Final = ("rlr", "rcrlr", "rRlr", "rmr", "rcrmr", "rRmr", "rpmr")
"""The record is lost, the manifest is lost."""

ALONE: Final = ("", "A", "F", "R", "S", "s", "Q", "q", "E", "D", "X", "O", "o", "H")
PAIRS: Final = ("OC", "oC", "HC", "TU", "TV", "GP")
"""What belongs together."""

MORE: Final = (
    *("AR", "AS", "RR", "SA", "EA", "DA", "XA", "AOC", "ROC", "AHC", "RRR"),
    *("OCE", "HCE", "sTU", "ATV", "ETV", "sGP", "RTU", "SGP"),
)
"""What found a mistake, or may."""


def sample() -> Iterator[Job]:
    """Yield what the gate tries, in seconds."""
    for leases in BOTH:
        for events in ("", "A", "R", "E", "O"):
            yield Job("r", events, 1, 0, leases)
        for life in (*LIVES, *LOSING):
            yield Job(life, "", 1, 0, leases)
            yield Job(life, "O", 0, 0, leases)
        for events in (*ALONE, *PAIRS):
            yield Job("rR", events, 0, 0, leases)
        for events in MORE:
            if len(events) == 2:
                yield Job("r", events, 0, 0, leases)
        yield Job("r", "", 0, 1, leases)
        yield Job("rd", "oC", 0, 0, leases)
        yield Job("rRgr", "q", 0, 0, leases)


def sweep() -> Iterator[Job]:
    """Yield what the soak tries besides, in minutes."""
    for leases in BOTH:
        for life in (*LIVES, *LOSING):
            for events in (*ALONE, *PAIRS):
                yield Job(life, events, 1, 0, leases)
            for events in ("", "A", "R", "S", "O"):
                yield Job(life, events, 0, 1, leases)
            yield Job(life, "", 2, 0, leases)
        for events in (*ALONE, "OC", "TV"):
            yield Job("r", events, 0, 1, leases)
            yield Job("r", events, 2, 0, leases)
        for events in MORE:
            yield Job("r", events, 1, 0, leases)


def deep() -> Iterator[Job]:
    """Yield more than the soak has time for: whoever changes a rule runs it once, in an hour."""
    for leases in BOTH:
        for events in (*ALONE, *PAIRS):
            for life in ("rR", "rcr", "rRr"):
                yield Job(life, events, 2, 0, leases)
            for life in LIVES:
                yield Job(life, events, 0, 1, leases)
            for first in ALONE[1:]:
                yield Job("r", first + events, 1, 0, leases)
        for one in PAIRS:
            for other in PAIRS:
                yield Job("r", one + other, 1, 0, leases)
