"""Whatever call is the last before a crash, no byte of a session is lost or doubled."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest

from sessrotate.errors import DamagedError
from support.crash.changes import killed
from support.crash.disk import Image
from support.crash.judging import check_recovered, check_whole, crashes, seen_of
from support.crash.late import appended_late, killed_beside_a_client, late_states
from support.crash.scenes import (
    CHANGED,
    LATE,
    MEANWHILE,
    NAMES,
    laid_out,
    one_time,
    recovered,
    scene,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("name", NAMES)
def test_any_call_may_be_the_last_before_a_crash(name: str) -> None:
    of = scene(name)
    lives = of.live_files()
    count = 0
    for found in killed(partial(laid_out, of.before), of.run):
        count += 1
        check_whole(found, of, lives)
    assert count > 15


@pytest.mark.parametrize("name", NAMES)
def test_recoveries_may_crash_too_again_and_again(name: str) -> None:
    """Every state that any number of crashes, one after the other, leaves."""
    of = scene(name)
    pending, seen = [*crashes(name)], set(crashes(name))
    while pending:
        with one_time(), laid_out(pending.pop()) as found:
            assert found.stitched() == of.history
            for image in seen_of(found, recovered):
                if image not in seen:
                    seen.add(image)
                    pending.append(image)
            check_recovered(found, of)
    assert len(seen) > len(crashes(name))


# ── lines that come late ─────────────────────────────────────────────────────────────────────


def check_one_recovery(image: Image, history: bytes, again: bytes = b"") -> None:
    """Check what a recovery makes of a state: it says a row again behind all that came late."""
    with laid_out(image) as found:
        found.recover()
        assert found.stitched() == history + again, image.shown()
        found.check_clean()


_CHECKED: set[tuple[Image, bytes]] = set()


def check_all_crashes(image: Image, history: bytes, again: bytes = b"") -> None:
    """Check what a recovery makes of a state, and what crashes of it leave, and so on."""
    pending = [image]
    while pending:
        image = pending.pop()
        if (image, history) in _CHECKED:
            continue
        _CHECKED.add((image, history))
        with one_time(), laid_out(image) as found:
            told = found.stitched()
            assert told.startswith(history), image.shown()
            assert (history + again).startswith(told), image.shown()
            pending += seen_of(found, recovered)
            assert found.stitched() in {history, history + again}, image.shown()
            found.check_clean()
            assert found.recover() == "nothing"


once_or_again = pytest.mark.parametrize(
    "check",
    [
        pytest.param(check_one_recovery, id="recovered"),
        pytest.param(check_all_crashes, id="crashed again", marks=pytest.mark.scale),
    ],
)


@pytest.mark.parametrize("name", CHANGED)
@once_or_again
def test_lines_that_come_to_either_file_after_a_crash_are_there_once(
    name: str, check: Callable[[Image, bytes], None]
) -> None:
    of = scene(name)
    both = 0
    for found, client in killed_beside_a_client(of):
        expected = appended_late(found, client, of.history)
        if expected is None:
            continue
        both += client.is_replaced()
        check(found.image(), expected)
        of.run(found)
        assert found.stitched() == expected
        found.check_clean()
    assert both > 2


@pytest.mark.parametrize("name", CHANGED)
@once_or_again
def test_lines_that_come_between_two_crashes_are_there_once(
    name: str, check: Callable[[Image, bytes, bytes], None]
) -> None:
    of = scene(name)
    added = b'{"type":"user","uuid":"between two crashes"}\n'
    states: set[tuple[Image, bytes, bytes]] = set()
    for image in late_states(name):
        with laid_out(image) as found:
            between = seen_of(found, recovered)
        for other in between:
            with laid_out(other) as found:
                assert found.stitched() == of.history + MEANWHILE + LATE
                live = found.where.live.read_bytes()
                if not live.endswith(b"\n"):
                    continue  # half of what is brought over: nobody can write behind that unharmed
                found.append(added)
                is_over = live.endswith(LATE)
                both = LATE + added if is_over else added + LATE
                history = of.history + MEANWHILE + both
                assert found.stitched() == history
                states.add((found.image(), history, b"" if is_over else added))
    assert states
    for image, history, again in states:
        check(image, history, again)


@pytest.mark.parametrize("name", CHANGED)
def test_a_backup_that_is_a_hard_link_of_the_replaced_file_keeps_its_bytes(name: str) -> None:
    of = scene(name)
    swapped = 0
    for image in crashes(name):
        with laid_out(image) as found:
            pack, backup = found.where.pack, found.root / "backup"
            if not pack.exists() or os.path.samestat(pack.stat(), found.where.live.stat()):
                continue
            swapped += 1
            backup.hardlink_to(pack)
            data = backup.read_bytes()
            with suppress(DamagedError):  # lines of it are to go to the live file: it says so
                found.recover()
            assert backup.read_bytes() == data
            backup.unlink()
            found.recover()
            check_recovered(found, of)
    assert swapped
