"""Whatever comes in the way of putting a trimmed session together, every byte is there.

Its client trimmed it three times and kept what was there, before or after it was rotated. The
oracle is what the client wrote.
"""

from __future__ import annotations

import errno
import os
from functools import cache, partial
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.clients.claude import trim
from sessrotate.errors import SessrotateError
from support.crash.changes import Faults
from support.crash.disk import Image
from support.crash.judging import seen_of
from support.crash.power import recorded
from support.crash.scenes import OPENING, Session, compaction, laid_out
from support.crash.simulator import Disk
from support.lines import row
from support.tiers import in_gate
from support.trimming import keep

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES: Final = ("never rotated", "rotated", "not trimmed yet")

MORE: Final = tuple(
    row(cut) + b"\n" + compaction(cut) + row(cut * 10) + b"\n" for cut in (17, 18, 19)
)
FAULTS: Final = (
    (errno.EIO, True),
    (errno.ENOSPC, True),
    (errno.ENOSPC, False),
    (errno.EROFS, True),
)
HISTORY: Final = OPENING + b"".join(MORE) + row(20) + b"\n"


@cache
def trimmed(name: str) -> Image:
    """Return a session that its client trimmed three times, as it is before it is rotated."""
    with laid_out(Image(frozenset(), (), ())) as found:
        found.begin(OPENING)
        if name == "rotated":
            found.rotate()
        for more in MORE:
            found.append(more)
            if name != "not trimmed yet":
                keep(found.where.live)
        if name == "not trimmed yet":
            path = trim.new_name(found.where.live, found.where.session)
            path.parent.mkdir(parents=True)
            path.hardlink_to(found.where.live)
        found.append(row(20) + b"\n")
        return found.image()


def run(found: Session) -> None:
    found.rotate()


def check(image: Image) -> None:
    with laid_out(image) as found:
        run(found)
        assert found.stitched() == HISTORY
        folder = found.where.live.with_suffix("") / "before-cleanup"
        for path in folder.iterdir():
            assert path.samefile(found.where.live)
            path.unlink()
        folder.rmdir()  # the client's, and nothing else is in it
        folder.parent.rmdir()
        found.check_clean()


@pytest.mark.parametrize("name", NAMES)
def test_a_kill_at_any_moment_loses_nothing_and_the_next_rotation_ends_it(name: str) -> None:
    with laid_out(trimmed(name)) as found:
        states = seen_of(found, run)
    assert len(states) > 30
    for image in states:
        check(image)


def after_power_losses(name: str) -> Iterator[Image]:
    disk = Disk.of(trace := recorded("put together", trimmed(name), HISTORY, run).trace)
    known = set()
    for event in trace.events:
        disk.apply(event)
        for image, _ in disk.states():
            if image not in known:
                known.add(image)
                yield image


@pytest.mark.parametrize("name", in_gate(NAMES, ["rotated", "not trimmed yet"], "scale"))
def test_a_power_loss_at_any_moment_loses_nothing(name: str) -> None:
    number = 0
    for image in after_power_losses(name):
        number += 1
        check(image)
    assert number > 30


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", in_gate(FAULTS, [(errno.ENOSPC, True)], "scale"))
def test_any_call_may_fail(name: str, fault: tuple[int, bool]) -> None:
    number, lasting = fault
    at, fails = 0, partial(OSError, number, os.strerror(number))
    while True:
        at += 1
        with laid_out(trimmed(name)) as found:
            faults = Faults(at, fails, lasting=lasting)
            failure: SessrotateError | None = None
            with faults.installed():
                try:
                    run(found)
                except SessrotateError as error:
                    failure = error
            if not faults.failed:
                assert failure is None
                break
            assert failure is None or os.strerror(number) in str(failure)
            image = found.image()
        check(image)
    assert at > 30
