"""A rotation under clients that write loses, repeats, tears and reorders nothing."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from homes import home, snapshot
from race.checking import faults
from race.racing import FAST, Race, Result, run
from race.writers import Habits, Wrote, compaction, row, take_back, told, written_anew
from sessrotate import in_place
from sessrotate.errors import InUseError
from support_cli import assert_one_sentence, piped, session

if TYPE_CHECKING:
    from collections.abc import Iterator

linux: Final = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux has leases"
)


def raced(race: Race) -> Result:
    """Run a race that must find no fault, and that must have been one."""
    result = run(race)
    assert result.problems == []
    assert result.rotations > 0
    assert result.rows > 100
    return result


# ── quick ones ───────────────────────────────────────────────────────────────────────────────


@linux
@pytest.mark.parametrize(
    "race",
    [
        Race(seconds=3, appenders=3, slow=0.34, rotators=1, kills=False),
        Race(seconds=3, appenders=3, slow=0.34),
        Race(seconds=3, appenders=1, slow=0, editors=1),
        Race(seconds=3, appenders=2, slow=0.5, leases=False),
    ],
    ids=["slow ones too", "rotators are killed", "a client takes rows back", "no leases"],
)
def test_a_race_of_three_seconds_loses_nothing(race: Race) -> None:
    raced(race)


# ── thirty seconds of the long one ───────────────────────────────────────────────────────────


@linux
@pytest.mark.scale
def test_thirty_seconds_of_the_long_race() -> None:
    result = raced(Race(seconds=30))
    assert result.rotations >= 60
    assert result.outcomes["killed"] >= 20
    # A machine that is busy with other tests may stop anybody for longer than the promised second.
    assert result.median_wait < 0.05
    assert result.longest_wait < 5
