"""Whatever becomes of the way back, every byte is there and the next `restore` ends it.

The session was rotated, pruned and put away: all three are undone by one command, each by changes
of its own. The oracle is what its client wrote.
"""

from __future__ import annotations

import errno
import os
from functools import cache, partial
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import names
from sessrotate.archive import state
from sessrotate.errors import SessrotateError
from sessrotate.retention import archive, prune, restore
from sessrotate.retention.policy import Policy
from support import sets
from support.crash.changes import Faults
from support.crash.disk import Image
from support.crash.judging import seen_of
from support.crash.power import recorded
from support.crash.scenes import MORE, OPENING, Session, laid_out, unseen
from support.crash.simulator import Disk

if TYPE_CHECKING:
    from collections.abc import Iterator

HISTORY: Final = OPENING + MORE
NOW: Final = 1_900_000_000.0


@cache
def put_away() -> Image:
    """Return a session that was rotated twice, pruned, and put away."""
    with laid_out(Image(frozenset(), (), ())) as found:
        found.rotated_twice()
        plan = prune.prepare([found.where], Policy(keep_last=2), NOW, lambda _done: None)
        assert [done.error for done in prune.execute(plan, 1)] == [None]
        archive.archive(found.where, 1)
        return found.image()


def run(found: Session) -> None:
    restore.restore(found.where, restore.ALL, 1, unseen)


def check(image: Image) -> None:
    with laid_out(image) as found:
        with state.opened(found.where) as opened:  # nothing but what is in the trash is missing
            gaps: list[str] = []
            told = sets.whole(opened, gaps.append)
        assert told == HISTORY or (gaps and HISTORY.endswith(told))
        run(found)
        assert found.where.live.read_bytes() == HISTORY
        emptied = found.where.archive / names.TRASH
        if emptied.exists():
            emptied.rmdir()  # a crash left it, with nothing in it
        found.check_clean()


def test_it_is_whole_again_and_nothing_else_is_left() -> None:
    with laid_out(put_away()) as found:
        run(found)
        assert found.where.live.read_bytes() == HISTORY
    check(put_away())


def test_a_kill_at_any_moment_loses_nothing_and_the_next_restore_ends_it() -> None:
    with laid_out(put_away()) as found:
        states = seen_of(found, run)
    assert len(states) > 30
    for image in states:
        check(image)


def after_power_losses() -> Iterator[Image]:
    disk = Disk.of(trace := recorded("restore", put_away(), HISTORY, run).trace)
    known = set()
    for event in trace.events:
        disk.apply(event)
        for image, _ in disk.states():
            if image not in known:
                known.add(image)
                yield image


def test_a_power_loss_at_any_moment_loses_nothing() -> None:
    number = 0
    for image in after_power_losses():
        number += 1
        check(image)
    assert number > 25


@pytest.mark.parametrize(
    "number",
    [errno.EIO, errno.ENOSPC, errno.EROFS],
    ids=errno.errorcode.get,
)
def test_any_call_may_fail_and_what_was_done_before_is_said(number: int) -> None:
    at, fault = 0, partial(OSError, number, os.strerror(number))
    told = set()
    while True:
        at += 1
        with laid_out(put_away()) as found:
            faults = Faults(at, fault, lasting=True)
            failure: SessrotateError | None = None
            with faults.installed():
                try:
                    run(found)
                except SessrotateError as error:
                    failure = error
            if not faults.failed:
                assert failure is None
                break
            assert failure is not None, f"call {at}, {faults.failed}, failed and nobody said so"
            assert os.strerror(number) in str(failure)
            told.add(str(failure).partition("Done before that: ")[2])
            image = found.image()
        check(image)
    back = "2 segments back from the trash"
    assert told >= {"", f"{back}.", f"{back}; back where its client looks."}
