"""Nothing goes by age while the clock is not believed, and a right clock is believed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.archive import clock
from sessrotate.archive.clock import YEAR
from sessrotate.units import DAY
from support.examples import examples

HOUR: Final = 3600.0
BEGIN: Final = 1_790_000_000.0
GRACE: Final = 7 * DAY


@dataclass
class Machine:
    """A machine whose clock is off by `ahead` seconds, and what is in its trash.

    What was pruned is known by its true time, the stamp that it got being the code's business, and
    how long before we had last written something by a `right` clock.
    """

    true: float = BEGIN
    ahead: float = 0.0
    written: dict[str, float] = field(default_factory=lambda: {"archive": BEGIN})
    right: float = BEGIN
    trash: list[tuple[float, float, float]] = field(default_factory=list)
    freed: list[float] = field(default_factory=list)

    @property
    def now(self) -> float:
        return self.true + self.ahead

    def run(self) -> bool:
        """Prune something and empty the trash, if the clock is believed; tell whether it is."""
        is_believed = not clock.judged(self.written, self.now)
        if is_believed:
            for entry in [entry for entry in self.trash if entry[1] <= self.now - GRACE]:
                self.trash.remove(entry)
                self.freed.append(self.true - entry[0] + entry[2])
            self.prune()
        if not self.ahead:
            self.right = self.true
        self.written["log"] = max(self.now, self.written.get("log", 0.0))
        return is_believed

    def prune(self) -> None:
        """Move something to the trash by a rule that goes by no clock."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(clock, "_written", lambda: self.written)
            stamp = clock.stamp(self.now)
        self.trash.append((self.true, stamp, self.true - self.right if self.ahead else 0.0))


def rested() -> Machine:
    """Return a machine that has run every night for a while."""
    machine = Machine()
    for _ in range(9):
        machine.run()
        machine.true += DAY
    return machine


# ── a right clock ────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.floats(0, 365), min_size=1, max_size=40))
def test_however_often_it_runs_a_right_clock_is_believed(days: list[float]) -> None:
    machine = Machine()
    for day in days:
        assert machine.run()
        machine.true += day * DAY
    assert all(age >= GRACE for age in machine.freed)


@pytest.mark.parametrize("days", [400, 4000])
def test_after_a_year_without_a_run_the_second_run_frees_what_is_due(days: int) -> None:
    machine = rested()
    before = len(machine.freed)
    machine.true += days * DAY
    assert not machine.run()
    assert len(machine.freed) == before
    assert machine.run()
    assert len(machine.freed) == before + 7  # of nine nights, two had been freed


# ── a wrong one ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("days", [-3000, -30, -3, 368, 3000])
def test_a_clock_that_is_far_off_frees_nothing_in_that_run(days: int) -> None:
    machine = rested()
    before = (list(machine.trash), len(machine.freed))
    machine.ahead = days * DAY
    assert not machine.run()
    assert (machine.trash, len(machine.freed)) == before


@pytest.mark.parametrize("days", [-3000, -30, -2, -0.5])
def test_set_right_again_it_frees_nothing_at_once(days: float) -> None:
    machine = rested()
    machine.ahead = days * DAY
    for _ in range(3):
        machine.run()
        machine.prune()
        machine.true += HOUR
    machine.ahead = 0.0
    machine.run()
    assert all(age >= GRACE for age in machine.freed)


def test_after_a_clock_that_was_ahead_nothing_goes_before_what_it_dated_is_touched() -> None:
    machine = rested()
    machine.ahead = 3000 * DAY
    machine.written["archive"] = machine.now
    machine.ahead = 0.0
    for _ in range(9):
        assert not machine.run()
        machine.true += DAY
    machine.written["archive"] = machine.now
    assert machine.run()


@given(st.lists(st.tuples(st.floats(-4000, 0), st.floats(0, 40)), max_size=12), st.data())
@examples(500)
def test_nothing_is_freed_before_its_true_time(
    periods: list[tuple[float, float]], data: st.DataObject
) -> None:
    """However far the clock is behind, but for how long we had written nothing by a right one."""
    machine = Machine()
    for off, hours in periods:
        machine.true += hours * HOUR
        machine.ahead = data.draw(st.sampled_from([0.0, off * DAY]))
        machine.run()
        if data.draw(st.booleans()):
            machine.prune()
    assert all(age >= GRACE for age in machine.freed)


# ── what is said ─────────────────────────────────────────────────────────────────────────────


def test_where_we_wrote_nothing_any_clock_is_believed() -> None:
    assert not clock.judged({}, 0.0)


def test_it_is_said_until_when_and_what_ends_it_sooner() -> None:
    path = "/a b/archive"
    said = clock.judged({path: BEGIN, "log": BEGIN - DAY}, BEGIN - 2 * DAY)
    assert "/a b/archive, which sessrotate wrote, is from 2026-09-21T14:13:20Z" in said
    assert said.endswith("wait until then, or run `touch '/a b/archive'`.")
    said = clock.judged({path: BEGIN}, BEGIN + YEAR + 1)
    assert "suspended until the next rotation or `sessrotate run`" in said
    assert "touch" not in said
