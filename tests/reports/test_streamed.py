"""What several processes find comes as a loop would give it, and as soon as it is known."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from sessrotate import platforms
from sessrotate.reports import streamed as module
from sessrotate.reports.streamed import streamed

ITEMS = list(range(60))

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(autouse=True)
def _may_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share the work whatever this machine has, and whatever threads the tests run in."""
    monkeypatch.setattr(platforms, "can_fork", lambda: True)


def several(item: int) -> Iterator[tuple[int, int, str]]:
    for number in range(item % 7):
        yield item, number, "x" * 40_000 * (item % 3)


EXPECTED = [each for item in ITEMS for each in several(item)]


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 60])
def test_results_come_in_the_order_of_a_loop(workers: int, count: int) -> None:
    expected = [each for item in ITEMS[:count] for each in several(item)]
    assert [*streamed(several, ITEMS[:count], workers)] == expected


def test_the_work_is_done_by_other_processes() -> None:
    def where(_item: int) -> Iterator[int]:
        yield os.getpid()

    assert os.getpid() not in {*streamed(where, ITEMS, 2)}


def test_a_result_comes_before_the_item_is_done() -> None:
    waiting, goes_on = os.pipe()

    def slow(item: int) -> Iterator[int]:
        yield item
        os.read(waiting, 1)

    results = streamed(slow, ITEMS, 2)
    assert next(results) == 0  # or waits for ever
    os.write(goes_on, b"x" * len(ITEMS))
    assert [*results] == ITEMS[1:]
    os.close(waiting)
    os.close(goes_on)


@pytest.mark.parametrize("at", [0, 3, 30])
@pytest.mark.parametrize("end", [lambda: os._exit(3), lambda: os.kill(os.getpid(), signal.SIGKILL)])
def test_what_a_process_that_dies_leaves_undone_is_done_here(end: object, at: int) -> None:
    here = os.getpid()

    def dies(item: int) -> Iterator[tuple[int, int, str]]:
        for number, each in enumerate(several(item)):
            if os.getpid() != here and item >= at and number == 2:
                assert callable(end)
                end()
            yield each

    assert [*streamed(dies, ITEMS, 2)] == EXPECTED


def test_an_error_is_raised_where_a_loop_would_raise_it() -> None:
    def fails(item: int) -> Iterator[int]:
        yield item
        if item == 20:
            raise ValueError(item)

    found: list[int] = []
    with pytest.raises(ValueError, match="20"):
        found.extend(streamed(fails, ITEMS, 2))
    assert found == [*range(21)]


def test_whoever_stops_early_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    forked, real = list[int](), os.fork

    def noted() -> int:
        forked.append(real())
        return forked[-1]

    monkeypatch.setattr(os, "fork", noted)
    results = streamed(several, ITEMS, 2)
    next(results)
    del results
    assert len(forked) == 2
    for process in forked:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)


def test_a_worker_that_is_far_ahead_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AHEAD", 100_000)
    held: list[int] = []

    def receive(worker: module.Worker) -> int:
        done = real(worker)
        held.append(worker.held)
        return done

    def large(item: int) -> Iterator[bytes]:
        if item == 0:
            time.sleep(0.5)
        for _ in range(200):
            yield bytes(10_000)

    real = module.Worker.receive
    monkeypatch.setattr(module.Worker, "receive", receive)
    results = streamed(large, ITEMS[:4], 2)
    next(results)
    assert max(held) < 100_000 + 2 * module.READ + 64 * 10_000
    assert sum(map(len, results)) == 4 * 200 * 10_000 - 10_000
