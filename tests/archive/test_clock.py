"""Nothing goes by age while the clock is not believed, and a right clock is believed soon."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.archive import clock
from sessrotate.archive.clock import DAY, Seen
from sessrotate.segments import one_line
from support.examples import examples

HOUR: Final = 3600.0
BEGIN: Final = 1_790_000_000.0
GRACE: Final = 7 * DAY


@dataclass
class Machine:
    """A machine whose clock is off by `ahead` seconds, and what is in its trash.

    What was pruned is known by its true time, the stamp that it got being the code's business.
    """

    true: float = BEGIN
    ahead: float = 0.0
    seen: Seen | None = None
    files: list[float] = field(default_factory=lambda: [BEGIN])
    trash: list[tuple[float, float]] = field(default_factory=list)
    freed: list[float] = field(default_factory=list)

    def write(self) -> None:
        """Let a client write a file."""
        self.files.append(self.true + self.ahead)

    def run(self) -> bool:
        """Prune something and empty the trash, if the clock is believed; tell whether it is."""
        now = self.true + self.ahead
        stamps = [stamp for _, stamp in self.trash]
        verdict = clock.judge(self.seen, self.files, min(stamps, default=None), now, GRACE)
        self.seen = verdict.seen
        if verdict.doubt:
            return False
        for entry in [entry for entry in self.trash if entry[1] <= now - GRACE]:
            self.trash.remove(entry)
            self.freed.append(self.true - entry[0])
        self.trash.append((self.true, max(now, self.seen.highest)))
        return True


def rested(*, runs: int = 9) -> Machine:
    """Return a machine that has run every night for a while."""
    machine = Machine()
    for _ in range(runs):
        machine.run()
        machine.true += DAY
    return machine


# ── a right clock ────────────────────────────────────────────────────────────────────────────


def test_a_right_clock_is_believed_every_night_and_frees_after_the_grace_time() -> None:
    machine = Machine()
    for _ in range(30):
        assert machine.run()
        machine.true += DAY
    assert set(machine.freed) == {GRACE}
    assert len(machine.freed) == 30 - 7


@given(st.lists(st.floats(0.1, 6.9), min_size=1, max_size=40))
def test_however_often_it_runs_a_right_clock_is_believed(days: list[float]) -> None:
    machine = Machine()
    for day in days:
        assert machine.run()
        machine.true += day * DAY
    assert all(age >= GRACE for age in machine.freed)


def test_a_machine_that_was_off_for_long_frees_a_day_later() -> None:
    machine = rested()
    machine.true += 30 * DAY
    before = len(machine.freed)
    assert not machine.run()
    machine.true += 0.9 * DAY
    assert not machine.run()
    assert len(machine.freed) == before
    machine.true += 0.1 * DAY
    assert machine.run()
    assert len(machine.freed) > before


def test_files_show_that_time_went_by_where_nothing_ran_for_long() -> None:
    machine = rested()
    for _ in range(30):
        machine.true += DAY
        machine.write()
    assert machine.run()


# ── a wrong one ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("days", [-3000, -30, -8, 8, 30, 3000])
def test_a_jump_frees_and_prunes_nothing_until_a_day_later(days: int) -> None:
    machine = rested()
    before = (list(machine.trash), len(machine.freed))
    machine.ahead = days * DAY
    for _ in range(3):
        assert not machine.run()
        machine.write()  # a client does not know better
        machine.true += 7 * HOUR
    assert (machine.trash, len(machine.freed)) == before
    machine.true += 4 * HOUR
    assert machine.run()


@pytest.mark.parametrize("days", [-30, 30])
def test_set_right_again_it_frees_nothing_at_once_and_what_it_should_in_the_end(days: int) -> None:
    machine = rested()
    before = len(machine.freed)
    machine.ahead = days * DAY
    machine.write()
    assert not machine.run()
    machine.ahead, machine.true = 0.0, machine.true + HOUR
    assert not machine.run()
    assert len(machine.freed) == before
    for _ in range(9):
        machine.true += DAY
        assert machine.run()
    assert all(age >= GRACE for age in machine.freed)
    assert len(machine.freed) > before


def test_a_file_from_the_future_is_noticed_once() -> None:
    machine = rested()
    machine.files.append(machine.true + 3000 * DAY)
    assert not machine.run()
    machine.true += DAY
    for _ in range(20):
        assert machine.run()
        machine.true += DAY


def test_what_is_pruned_under_a_clock_that_is_behind_is_not_stamped_as_older() -> None:
    machine = rested()
    believed = machine.true - DAY
    machine.ahead = -30 * DAY
    machine.run()
    machine.true += DAY
    assert machine.run()
    assert machine.trash[-1][1] >= believed


def test_files_from_before_do_not_show_that_time_went_by() -> None:
    """A clock that was behind for days is set right: between the two lie files of every day."""
    machine = Machine()
    for _ in range(40):
        machine.write()
        machine.run()
        machine.true += DAY
    machine.ahead = -30 * DAY
    for _ in range(3):
        machine.run()
        machine.true += DAY
    machine.ahead = 0.0
    before = len(machine.freed)
    assert not machine.run()
    assert len(machine.freed) == before


def test_without_a_memory_the_oldest_of_the_trash_is_what_is_known() -> None:
    now = BEGIN + 31 * DAY
    files = [BEGIN - DAY, now - HOUR]  # a client has written under the wrong clock
    assert clock.judge(None, files, BEGIN, now, GRACE).doubt
    assert not clock.judge(None, [], BEGIN, BEGIN + GRACE, GRACE).doubt
    assert not clock.judge(None, [], None, now, GRACE).doubt
    assert clock.judge(None, [BEGIN], None, now, GRACE).doubt
    assert clock.judge(None, [now], None, BEGIN, GRACE).doubt


@st.composite
def lives(draw: st.DrawFn) -> list[tuple[float, list[float]]]:
    """Return periods: how far the clock is off in days, and the hours between its runs.

    A right clock runs at least once in each of its periods. A wrong one is off by more than the
    grace time, and no run comes more than a day after its first.
    """
    periods = []
    for number in range(draw(st.integers(1, 12))):
        if number % 2:
            off = draw(st.floats(9.5, 4000)) * draw(st.sampled_from([-1, 1]))
            hours = draw(st.lists(st.floats(0, 7.9), max_size=3))
        else:
            off = 0.0
            hours = draw(st.lists(st.floats(0.1, 40), min_size=1, max_size=20))
        periods.append((off, hours))
    return periods


@given(lives(), st.data())
@examples(500)
def test_nothing_is_freed_before_its_true_time(
    periods: list[tuple[float, list[float]]], data: st.DataObject
) -> None:
    """Whatever the clock does, as long as it is right for a run in between."""
    machine = Machine()
    for off, hours in periods:
        machine.ahead = off * DAY
        machine.true += data.draw(st.floats(0, 30)) * HOUR
        for pause in hours:
            machine.true += pause * HOUR
            if data.draw(st.booleans()):
                machine.write()
            machine.run()
    assert all(age >= GRACE for age in machine.freed)


# ── what is remembered ───────────────────────────────────────────────────────────────────────


@given(st.builds(Seen, *[st.floats(allow_nan=False, allow_infinity=False)] * 4))
def test_what_is_remembered_reads_back(seen: Seen) -> None:
    assert clock.parse(one_line.dump(seen)) == seen


@given(st.binary(max_size=60) | st.sampled_from([b"{}", b"[]", b"3", b'{"format": 2}']))
def test_anything_else_is_nothing(data: bytes) -> None:
    assert clock.parse(data) is None


@pytest.mark.parametrize("wrong", [b'"x"', b"NaN", b"Infinity", b"null", b"1", b"true"])
def test_times_that_are_none_are_nothing(wrong: bytes) -> None:
    data = one_line.dump(Seen(1.5, 1.5, 1.5, 1.5)).replace(b"1.5", wrong, 1)
    assert clock.parse(data) is None
