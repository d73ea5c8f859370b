"""Whatever comes between a kill and the next command costs no row: a table of all three.

`support.crash.matrix` has the rows (what is killed), the columns (what another program does to the
live file then), the commands that may follow, and the judge. The soak tries every kill with every
event and every command; the gate kills that differ by the names that are there, by turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from support import homes
from support.crash.matrix import EVENTS, NAMES, SETTINGS, Case, Cell, Event, after, cases
from support.tiers import in_gate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from support.crash.disk import Image

TURN: Final = 4
MOST: Final = 3
"""The gate tries one of `TURN` kills with each event, three at most, and one command."""

IN_GATE: Final = (
    "restore pruned",
    "restore all",
    "put away",
    "free what was restored",
    "rotate what was restored",
    "put together, never rotated",
    "put together, rotated",
    "put together, restored",
    "first rotation",
    "second rotation",
    "restore",
    "it is kept",
    "lines come over",
    "restore, and it goes",
)


FOUND: Final = (
    ("restore", "most of the history", "restore"),
    ("second rotation", "fewer rows", "run"),
    ("second rotation", "an older copy", "rotate"),
    ("put together, never rotated", "most of the history", "run"),
    ("it is kept", "delete", "restore"),
    ("put together, restored", "append", "rotate"),
)
"""Chains that lost rows once; each is tried with every kill."""


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sessrotate").mkdir()
    (tmp_path / "sessrotate" / "config.toml").write_text(SETTINGS)
    for name in homes.OWN_FOLDERS:
        monkeypatch.setenv(name, str(tmp_path))


def some(images: tuple[Image, ...], turn: int) -> list[Image]:
    """Return the last kill of some sets of names: of those whose turn it is."""
    shapes = [*{image.names: image for image in images}.values()]
    step = max(TURN, -(-len(shapes) // MOST))
    return shapes[turn * step // len(EVENTS) :: step]


def tried(case: Case, event: Event, kills: Iterable[Image], thens: Sequence[str], at: int) -> int:
    """Try one of the commands on what is left of each kill, by turns; return how many there were.

    The judge raises what is wrong.
    """
    cell = Cell(case, event, set())
    states = after(case, event, kills)
    for number, state in enumerate(states, at):
        cell.play(state, thens[number % len(thens)])
    return len(states)


@pytest.mark.parametrize("name", in_gate(NAMES, IN_GATE, "scale"))
def test_whatever_comes_between_a_kill_and_the_next_command_costs_no_row(name: str) -> None:
    case, count = cases()[name], 0
    images = case.killed()
    for turn, event in enumerate(EVENTS.values()):
        count += tried(case, event, some(images, turn), case.thens.split(), turn)
    assert count > 3


@pytest.mark.parametrize(("name", "event", "then"), FOUND)
def test_what_was_found_once_costs_no_row(name: str, event: str, then: str) -> None:
    case = cases()[name]
    kills = {image.names: image for image in case.killed()}.values()
    assert tried(case, EVENTS[event], kills, [then], 0) > 3


@pytest.mark.scale
@pytest.mark.parametrize("name", NAMES)
def test_everything_that_may_come_between_a_kill_and_any_command_costs_no_row(name: str) -> None:
    case = cases()[name]
    images = case.killed()
    for event in EVENTS.values():
        for then in case.thens.split():
            tried(case, event, images, [then], 0)
