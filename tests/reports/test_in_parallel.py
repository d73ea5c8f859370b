"""Work that several processes share has the results of a loop, whatever becomes of one of them."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from sessrotate import platforms
from sessrotate.archive.place import Place
from sessrotate.reports import discovery, machine_report
from sessrotate.reports import in_parallel as module
from sessrotate.reports.in_parallel import mapped, streamed
from support import homes
from support.codex_sessions import FILES
from support.command_line import ID, called, session, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ITEMS = list(range(101))

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share the work whatever this machine has, and whatever threads the tests run in."""
    monkeypatch.setattr(platforms, "can_fork", lambda: True)


def process_of(_item: int) -> int:
    return os.getpid()


@pytest.mark.parametrize("count", [1, 2, 3, 100, 101])
def test_results_come_in_the_order_of_the_items(count: int) -> None:
    made = [*mapped(lambda item: (item, "x" * 10_000 * (item % 3)), ITEMS[:count], worth_it=1)]
    assert made == [(item, "x" * 10_000 * (item % 3)) for item in range(count)]


def test_every_other_64_items_are_another_process_s() -> None:
    made = [*mapped(process_of, [*range(200)], worth_it=1)]
    here, there, again, last = made[:64], made[64:128], made[128:192], made[192:]
    assert {*here, *again} == {os.getpid()}
    assert len({*there, *last}) == 1
    assert os.getpid() not in there


def test_few_items_stay_in_this_process() -> None:
    assert {*mapped(process_of, [*ITEMS], worth_it=len(ITEMS) + 1)} == {os.getpid()}


class Unreadable:
    """What cannot be made again of what was sent, as when a constructor takes other values."""

    def __init__(self, item: int) -> None:
        self.item = item

    def __reduce__(self) -> tuple[type, tuple[int, int]]:
        return Unreadable, (self.item, 0)


def test_what_cannot_be_read_of_another_process_is_done_here() -> None:
    assert [each.item for each in mapped(Unreadable, [*ITEMS], worth_it=1)] == ITEMS


def test_a_place_that_remembers_where_its_archive_is_crosses_processes(tmp_path: Path) -> None:
    def asked(number: int) -> Place:
        where = Place(tmp_path, "project", str(number), tmp_path / f"{number}.jsonl")
        assert where.archive.name == str(number)
        return where

    here = os.getpid()
    made = [*mapped(lambda number: (os.getpid(), asked(number)), [*ITEMS], worth_it=1)]
    assert [where for _, where in made] == [asked(number) for number in ITEMS]
    assert any(process != here for process, _ in made)


@contextmanager
def gone_children() -> Iterator[None]:
    """Check that every process forked in the block has ended and was waited for."""
    forked, real = list[int](), os.fork

    def noted() -> int:
        forked.append(real())
        return forked[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fork", noted)
        yield
    assert forked
    for process in forked:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)


@pytest.mark.parametrize("command", [("list", "--json"), ("report", "--all", "--json")])
def test_commands_say_the_same_with_a_second_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    home = homes.home(tmp_path, monkeypatch, session(boundaries=3))
    homes.another(home, "55555555-0000-4000-a000-000000000002", session(boundaries=2))
    home.rotate()
    alone = called(*command)
    monkeypatch.setattr(discovery, "WORTH_TWO", 1)
    monkeypatch.setattr(machine_report, "WORTH_TWO", 1)
    monkeypatch.setattr(module, "BATCH", 1)
    with gone_children():
        shared = called(*command)
    assert (shared.code, shared.out) == (0, alone.out)


@pytest.mark.scale
def test_five_thousand_sessions_are_in_two_processes_what_they_are_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as are worth a second process: of two clients, some rotated, put away or restored."""
    home = homes.home(tmp_path, monkeypatch, session())
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    thread = FILES[0].read_bytes()
    for number in range(5_100):
        name = f"{number:08x}-0000-4000-a000-000000000003"
        data = session(boundaries=number % 4, rows=1 + number % 5).replace(
            ID.encode(), name.encode()
        )
        write(home.config / "projects" / f"-project-{number % 40}" / f"{name}.jsonl", data)
    for number in range(300):
        stem = f"rollout-2026-11-21T23-20-23-c{number:07x}-3200-7812-9750-2eae4d402117"
        write(tmp_path / "codex" / "sessions" / "2026" / "11" / "21" / f"{stem}.jsonl", thread)
    assert called("rotate", "--all", "--min-size", "6K", "--quiet", "--yes").code == 0
    for number in (3, 7, 11):
        assert called("restore", f"{number:08x}").code == 0
        assert called("archive", f"{number + 1:08x}").code == 0
    commands = [("list", "--json"), ("report", "--all", "--json")]
    with gone_children():
        shared = [called(*command) for command in commands]
    monkeypatch.setattr(platforms, "can_fork", lambda: False)
    for command, each in zip(commands, shared, strict=True):
        assert (each.code, each.err) == (0, "")
        assert each.out == called(*command).out
        assert each.out.count(ID[8:24]) >= 5_100


def test_beside_another_thread_nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    done = threading.Event()
    waiting = threading.Thread(target=done.wait)
    waiting.start()
    try:
        assert {*mapped(process_of, [*ITEMS], worth_it=1)} == {os.getpid()}
    finally:
        done.set()
        waiting.join()


# ── results as they come ─────────────────────────────────────────────────────────────────────


def several(item: int) -> Iterator[tuple[int, int, str]]:
    for number in range(item % 7):
        yield item, number, "x" * 40_000 * (item % 3)


EXPECTED = [each for item in ITEMS for each in several(item)]


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 60])
def test_results_come_in_the_order_of_a_loop(workers: int, count: int) -> None:
    expected = [each for item in ITEMS[:count] for each in several(item)]
    assert [*streamed(several, ITEMS[:count], workers)] == expected


def test_the_work_of_several_is_all_done_by_them() -> None:
    def where(_item: int) -> Iterator[int]:
        yield os.getpid()

    assert os.getpid() not in {*streamed(where, [*ITEMS], 2)}
    here, *there = streamed(where, ITEMS[:2], 1)
    assert (here, os.getpid() in there) == (os.getpid(), False)


def test_a_result_comes_before_the_item_is_done() -> None:
    waiting, goes_on = os.pipe()

    def slow(item: int) -> Iterator[int]:
        yield item
        os.read(waiting, 1)

    results = streamed(slow, [*ITEMS], 2)
    assert next(results) == 0  # or waits for ever
    os.write(goes_on, b"x" * len(ITEMS))
    assert [*results] == ITEMS[1:]
    os.close(waiting)
    os.close(goes_on)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("at", [0, 3, 30])
@pytest.mark.parametrize(
    "end",
    [lambda: os._exit(3), lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: 1 // 0],
)
def test_what_a_process_that_dies_leaves_undone_is_done_here(
    end: object, at: int, workers: int
) -> None:
    here = os.getpid()

    def dies(item: int) -> Iterator[tuple[int, int, str]]:
        for number, each in enumerate(several(item)):
            if os.getpid() != here and item >= at and number == 2:
                assert callable(end)
                end()
            yield each

    assert [*streamed(dies, [*ITEMS], workers)] == EXPECTED


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_is_raised_where_a_loop_would_raise_it(workers: int) -> None:
    def fails(item: int) -> Iterator[int]:
        yield item
        if item == 20:
            raise ValueError(item)

    found: list[int] = []
    with gone_children(), pytest.raises(ValueError, match="20"):
        found.extend(streamed(fails, [*ITEMS], workers))
    assert found == [*range(21)]


@pytest.mark.parametrize("workers", [1, 2])
def test_whoever_stops_early_leaves_no_process_behind(workers: int) -> None:
    with gone_children():
        results = streamed(several, [*ITEMS], workers)
        next(results)
        del results


def test_a_worker_that_is_far_ahead_waits() -> None:
    made, note = os.pipe()

    def large(item: int) -> Iterator[bytes]:
        if item == 0:
            time.sleep(0.5)
        for _ in range(400):
            if item == 1:
                os.write(note, b"x")
            yield bytes(10_000)

    results = streamed(large, ITEMS[:4], 2)
    next(results)
    assert len(os.read(made, 1_000)) <= 3 * module.BATCH
    assert sum(map(len, results)) == 4 * 400 * 10_000 - 10_000
    os.close(made)
    os.close(note)
