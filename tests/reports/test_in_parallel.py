"""Work that two processes share has the results of a loop, whatever becomes of one of them."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from sessrotate import platforms
from sessrotate.archive.place import Place
from sessrotate.reports import discovery, machine_report
from sessrotate.reports.in_parallel import mapped
from support import homes
from support.codex_sessions import FILES
from support.command_line import ID, called, session, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ITEMS = list(range(101))


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share the work whatever this machine has, and whatever threads the tests run in."""
    monkeypatch.setattr(platforms, "can_fork", lambda: True)


def process_of(_item: int) -> int:
    return os.getpid()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("count", [1, 2, 3, 100, 101])
def test_results_come_in_the_order_of_the_items(count: int) -> None:
    made = [*mapped(lambda item: (item, "x" * 10_000 * (item % 3)), ITEMS[:count], worth_it=1)]
    assert made == [(item, "x" * 10_000 * (item % 3)) for item in range(count)]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_every_other_item_is_another_process_s() -> None:
    made = [*mapped(process_of, [*ITEMS], worth_it=1)]
    assert set(made[::2]) == {os.getpid()}
    assert len(set(made[1::2])) == 1
    assert os.getpid() not in made[1::2]


def test_few_items_stay_in_this_process() -> None:
    assert {*mapped(process_of, [*ITEMS], worth_it=len(ITEMS) + 1)} == {os.getpid()}


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    "end",
    [lambda: os._exit(3), lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: 1 // 0],
)
def test_what_a_process_that_dies_leaves_undone_is_done_here(end: object) -> None:
    here = os.getpid()

    def square(item: int) -> int:
        if os.getpid() != here and item > 50:
            assert callable(end)
            end()
        return item * item

    assert [*mapped(square, [*ITEMS], worth_it=1)] == [item * item for item in ITEMS]


class Unreadable:
    """What cannot be made again of what was sent, as when a constructor takes other values."""

    def __init__(self, item: int) -> None:
        self.item = item

    def __reduce__(self) -> tuple[type, tuple[int, int]]:
        return Unreadable, (self.item, 0)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_cannot_be_read_of_another_process_is_done_here() -> None:
    assert [each.item for each in mapped(Unreadable, [*ITEMS], worth_it=1)] == ITEMS


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
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


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_error_is_raised_and_the_other_process_is_gone() -> None:
    def fails(item: int) -> int:
        if item == 20:
            raise ValueError(item)
        return item

    with gone_children(), pytest.raises(ValueError, match="20"):
        list(mapped(fails, [*ITEMS], worth_it=1))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_whoever_stops_early_leaves_no_process_behind() -> None:
    with gone_children():
        results = mapped(process_of, [*ITEMS], worth_it=1)
        next(results)
        del results


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
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
    with gone_children():
        shared = called(*command)
    assert (shared.code, shared.out) == (0, alone.out)


@pytest.mark.scale
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
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
