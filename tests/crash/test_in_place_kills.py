"""Whatever call is the last before a crash, no byte of a session is lost or doubled."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

import pytest

from crash.changes import Faults, Killed
from crash.disk import Image
from crash.judging import check_recovered, check_whole, crashes, recovered, seen_of
from crash.scenes import LATE, MEANWHILE, NAMES, Session, laid_out, scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def killed(before: Image, run: Callable[[Session], None]) -> Iterator[Session]:
    """Run with the 1st call the last that never was, then the 2nd …; yield what is left."""
    at = 0
    while True:
        at += 1
        with laid_out(before) as found:
            faults = Faults(at, Killed, lasting=True)
            with faults.installed():
                try:
                    run(found)
                except Killed:
                    pass
                else:
                    assert not faults.failed, "something caught what nothing may catch"
                    return
            yield found


@pytest.mark.parametrize("name", NAMES)
def test_any_call_may_be_the_last_before_a_crash(name: str) -> None:
    of = scene(name)
    lives = of.live_files()
    count = 0
    for found in killed(of.before, of.run):
        count += 1
        check_whole(found, of, lives)
    assert count > 30


@pytest.mark.parametrize("name", NAMES)
def test_recoveries_may_crash_too_again_and_again(name: str) -> None:
    """Every state that any number of crashes, one after the other, leaves."""
    of = scene(name)
    pending, seen = [*crashes(name)], set(crashes(name))
    while pending:
        with laid_out(pending.pop()) as found:
            assert found.stitched() == of.history
            for image in seen_of(found, recovered):
                if image not in seen:
                    seen.add(image)
                    pending.append(image)
            check_recovered(found, of)
    assert len(seen) > len(crashes(name))


# ── lines that come late ─────────────────────────────────────────────────────────────────────


class Client:
    """One who found the live file under its name before it was replaced, and writes only now."""

    def __init__(self, found: Session) -> None:
        self._found = found
        self._fd = os.open(found.where.live, os.O_RDONLY)
        self._size = os.fstat(self._fd).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def is_replaced(self) -> bool:
        return not os.path.samestat(os.fstat(self._fd), self._found.where.live.stat())

    def is_heard(self) -> bool:
        """Tell whether it was not yet proved that there is no such client.

        The replaced file is shortened, renamed or removed only after that.
        """
        status = os.fstat(self._fd)
        pack = self._found.where.pack
        is_there = not self.is_replaced() or (
            pack.exists() and os.path.samestat(status, pack.stat())
        )
        return is_there and status.st_size >= self._size

    def write(self, data: bytes) -> None:
        with open(f"/proc/self/fd/{self._fd}", "ab") as file:  # noqa: PTH123 - a link of the system
            file.write(data)


def check_late(found: Session, client: Client, history: bytes) -> bytes | None:
    """Let lines come to both files after a crash; return the history, None if none may come."""
    if not client.is_heard():
        return None
    is_replaced = client.is_replaced()
    client.write(LATE)
    found.append(MEANWHILE)
    return history + (MEANWHILE + LATE if is_replaced else LATE + MEANWHILE)


def check_one_recovery(image: Image, history: bytes) -> None:
    """Check what a recovery makes of a state."""
    with laid_out(image) as found:
        found.recover()
        assert found.stitched() == history, image.shown()
        found.check_clean()


CHANGED = NAMES[:3]
"""The runs that replace a live file."""


@pytest.mark.parametrize("name", CHANGED)
def test_lines_that_come_to_either_file_after_a_crash_are_there_once_and_in_order(
    name: str,
) -> None:
    of = scene(name)
    both = 0
    at = 0
    while True:
        at += 1
        with of.begun() as found, Client(found) as client:
            faults = Faults(at, Killed, lasting=True)
            with faults.installed():
                try:
                    of.run(found)
                except Killed:
                    pass
                else:
                    break
            expected = check_late(found, client, of.history)
            if expected is None:
                continue
            both += client.is_replaced()
            check_all_crashes(found.image(), expected)
            of.run(found)
            assert found.stitched() == expected
            found.check_clean()
    assert both > 2


_CHECKED: set[tuple[Image, bytes]] = set()


def check_all_crashes(image: Image, history: bytes) -> None:
    """Check what a recovery makes of a state, and what crashes of it leave, and so on."""
    pending = [image]
    while pending:
        image = pending.pop()
        if (image, history) in _CHECKED:
            continue
        _CHECKED.add((image, history))
        with laid_out(image) as found:
            assert found.stitched() == history, image.shown()
            pending += seen_of(found, recovered)
            assert found.stitched() == history, image.shown()
            found.check_clean()
            assert found.recover() == "nothing"


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check_one_recovery, id="recovered"),
        pytest.param(check_all_crashes, id="crashed again", marks=pytest.mark.scale),
    ],
)
def test_lines_that_come_between_two_crashes_are_there_once(
    name: str, check: Callable[[Image, bytes], None]
) -> None:
    """What comes to the new file while late lines are brought over is before or behind them.

    Unless the crash tore our own write in two. Then the client's line goes on from a piece of a
    late one, as it would from a piece of another client's, and that one follows whole.
    """
    of = scene(name)
    added = b'{"type":"user","uuid":"between two crashes"}\n'
    half = len(LATE) // 2
    torn = LATE.rindex(b"\n", 0, half) + 1
    states: set[tuple[Image, bytes]] = set()
    for image in late_states(name):
        with laid_out(image) as found:
            between = seen_of(found, recovered)
        for other in between:
            with laid_out(other) as found:
                before = found.stitched()
                assert before == of.history + MEANWHILE + LATE
                found.append(added)
                after = found.stitched()
                assert after in {
                    before + added,
                    of.history + MEANWHILE + added + LATE,
                    of.history + MEANWHILE + LATE[:half] + added + LATE[torn:],
                }
                states.add((found.image(), after))
    assert states
    for image, history in states:
        check(image, history)


def late_states(name: str) -> set[Image]:
    """Return the states with lines in both files that a kill after the swap leaves."""
    of = scene(name)
    images: set[Image] = set()
    at = 0
    while True:
        at += 1
        with of.begun() as found, Client(found) as client:
            faults = Faults(at, Killed, lasting=True)
            with faults.installed():
                try:
                    of.run(found)
                except Killed:
                    pass
                else:
                    return images
            if check_late(found, client, of.history) and client.is_replaced():
                images.add(found.image())
