"""Each protection of a live rotation is needed: without it, the check of the race finds a fault.

Rule: no luck. A client is let go on, or is seen to wait, at the very moment that counts.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate import fs
from sessrotate.archive.place import Place
from sessrotate.in_place import operations, swap
from sessrotate.system import locks
from support.abilities import needs_leases
from support.command_line import SECONDS
from support.homes import silent
from support.race.checking import faults
from support.race.mutants import MUTANTS
from support.race.racing import ID, history
from support.race.rotators import rotated
from support.race.writers import Wrote, append, compaction, is_same, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


pytestmark: Final = needs_leases

COMPACTOR: Final = 1000
BEFORE: Final = 9
"""Rows of the writer before the rotation."""


@pytest.fixture
def where(tmp_path: Path) -> Place:
    """Return a session with a compaction, and two of its rows before it."""
    made = Place(tmp_path, "p", ID, tmp_path / "projects" / "p" / f"{ID}.jsonl")
    made.live.parent.mkdir(parents=True)
    rows = [row(0, number) for number in range(BEFORE)]
    made.live.write_bytes(b"".join([*rows[:2], compaction(COMPACTOR, 0), *rows[2:]]))
    return made


def until(condition: Callable[[], bool]) -> None:
    """Wait for what is sure to come."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.0005)


def wrote(rows: int) -> dict[int, Wrote]:
    return {0: Wrote(rows), COMPACTOR: Wrote(1, compacts=True)}


def rotate(where: Place) -> str | None:
    """Rotate once; return why it is not sealed yet."""
    done = operations.rotate_session(where, 5, silent, live=True)
    assert done.refusal is None
    assert done.seconds is not None
    return done.pending


# ── a client between open and write ──────────────────────────────────────────────────────────


@dataclass
class Between:
    """A client that found the old file just before it was replaced, and then appends once more.

    `hold` lets it wait between open and write, until the rotation has looked for it.
    """

    where: Place
    rows: int = 2
    old: int = -1
    new: int = -1
    is_second_held: bool = False
    is_swapped: bool = False
    done: Future[None] | None = None
    seen: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Have the client come to the rotation in the block."""
        read, write, release, rename = (
            locks.read_lease,
            locks.write_lease,
            locks.release_lease,
            fs.take_place,
        )

        def reading(fd: int) -> locks.Answer:
            if not self.is_swapped:
                self.old = fd
            return read(fd)

        def writing(fd: int) -> locks.Answer:
            answer = write(fd)
            if self.is_swapped:
                return answer
            self.new = fd
            self.is_second_held = fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_WRLCK
            return answer

        def renaming(draft: Path, path: Path, is_it: Callable[[Path], bool]) -> None:
            if path == self.where.live and self.done is None:
                self.done = pool.submit(self._append)
                until(lambda: locks.is_lease_wanted(self.old))
            rename(draft, path, is_it)
            self.is_swapped = self.is_swapped or path == self.where.live

        def releasing(fd: int) -> None:
            release(fd)
            if self.is_swapped and fd == self.old and "late" not in self.seen:
                self.seen.append("late")
                until(self._is_late)
            if self.is_swapped and fd == self.new:
                until(self._is_done)

        with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as pool:
            patch.setattr(locks, "read_lease", reading)
            patch.setattr(locks, "write_lease", writing)
            patch.setattr(locks, "release_lease", releasing)
            patch.setattr(fs, "take_place", renaming)
            yield
            assert self.done is not None
            self.done.result(SECONDS)

    def _append(self) -> None:
        for number in range(BEFORE, BEFORE + self.rows):
            append(self.where.live, row(0, number))
            self.seen.append(f"row {number}")

    def _is_done(self) -> bool:
        return self.done is not None and self.done.done()

    def _is_late(self) -> bool:
        """Tell whether the client has written to the old file, and waits for the new one or not."""
        waits = self.is_second_held and fcntl.fcntl(self.new, fcntl.F_GETLEASE) != fcntl.F_WRLCK
        return self._is_done() or (f"row {BEFORE}" in self.seen and waits)


def between(where: Place) -> list[str]:
    """Rotate with a client between open and write; return what the check says."""
    client = Between(where)
    with client.at_work():
        pending = rotate(where)
    if pending is not None:
        operations.rotate_session(where, 5, silent, live=True)
    return faults(history(where), wrote(BEFORE + 2))


def test_a_client_between_open_and_write_has_its_lines_in_order(where: Place) -> None:
    assert between(where) == []


@pytest.mark.parametrize(
    ("mutant", "told"),
    [
        ("second-lease", "behind later ones"),
        ("drain", "behind later ones"),
        ("late-lines", f"lost {BEFORE}"),
    ],
)
def test_without_it_a_client_between_open_and_write_loses_its_line_or_its_place(
    where: Place, monkeypatch: pytest.MonkeyPatch, mutant: str, told: str
) -> None:
    MUTANTS[mutant](monkeypatch)
    assert told in "; ".join(between(where))


# ── lines that are all the same ──────────────────────────────────────────────────────────────


def alike(where: Place) -> list[str]:
    """Rotate while a line comes that is there already; return what the check says."""
    rows = BEFORE
    real = fs.add_name

    def linking(path: Path, name: Path) -> None:
        nonlocal rows
        real(path, name)
        while rows < BEFORE + 4:
            append(where.live, row(0, rows))
            rows += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fs, "add_name", linking)
        rotate(where)
    assert any(is_same(number) for number in range(BEFORE, rows))
    return faults(history(where), wrote(rows))


def test_a_line_that_is_there_already_comes_again(where: Place) -> None:
    assert alike(where) == []


def test_by_likeness_a_line_that_is_there_already_would_be_lost(
    where: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    MUTANTS["positional-compare"](monkeypatch)
    assert "all the same" in "; ".join(alike(where))


# ── the signal of a lease that somebody wants ────────────────────────────────────────────────


def signalled(where: Place) -> dict[str, Any]:
    """Have somebody want the old file when its lease was taken again; return how that ended."""
    real = locks.is_lease_wanted

    def wanted(fd: int) -> bool:
        if where.pack.exists():
            with contextlib.suppress(BlockingIOError):
                os.close(os.open(where.pack, os.O_WRONLY | os.O_NONBLOCK))
        return real(fd)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locks, "is_lease_wanted", wanted)
        patch.setattr(swap, "_LATE", 0.05)
        return rotated(where, 5)


def test_who_wants_a_lease_that_was_taken_again_does_not_end_the_rotation(where: Place) -> None:
    assert signalled(where)["what"] == "rotated"
    assert faults(history(where), wrote(BEFORE)) == []


def test_without_the_signal_said_again_who_wants_the_lease_ends_the_rotation(
    where: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    MUTANTS["signal"](monkeypatch)
    assert signalled(where)["what"] == "died"
