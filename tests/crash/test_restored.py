"""A crash while what a restoration left is freed, or taken over by a rotation, loses nothing."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import restored, state
from sessrotate.errors import SessrotateError
from sessrotate.retention import trash
from sessrotate.units import DAY
from support import sets
from support.crash.disk import Image
from support.crash.judging import seen_of
from support.crash.power import recorded
from support.crash.scenes import MORE, OPENING, Session, laid_out
from support.crash.simulator import Disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HISTORY: Final = OPENING + MORE
NOW: Final = 1_800_000_000.0


@cache
def whole_again() -> tuple[Image, bytes]:
    """Return what a restoration leaves, and the live file from before it."""
    with laid_out(Image(frozenset(), (), ())) as found:
        found.rotated_twice()
        short = found.where.live.read_bytes()
        found.restore()
        return found.image(), short


def free(found: Session) -> None:
    trash.empty(found.where, 7 * DAY, NOW + 8 * DAY, 1)


def rotate(found: Session) -> None:
    found.rotate()


def check_freed(image: Image) -> None:
    with laid_out(image) as found:
        assert found.stitched() == HISTORY
        assert found.where.live.read_bytes() == HISTORY
        assert restored.is_marked(found.where)
        free(found)
        assert found.stitched() == HISTORY
        found.check_clean()
        assert [path.name for path in found.where.archive.iterdir()] == ["record.json"]


def check_rotated(image: Image) -> None:
    with laid_out(image) as found:
        assert found.stitched() == HISTORY
        found.recover()
        assert found.stitched() == HISTORY
        found.check_clean()
        free(found)
        rotate(found)
        assert found.stitched() == HISTORY
        assert not restored.is_marked(found.where)
        found.check_clean()


def states(run: Callable[[Session], None]) -> Iterator[Image]:
    """Yield what a kill at any moment leaves, and what a power loss may."""
    image, _ = whole_again()
    with laid_out(image) as found:
        yield from seen_of(found, run)
    trace = recorded(run.__name__, image, HISTORY, run).trace
    disk = Disk.of(trace)
    for event in trace.events:
        disk.apply(event)
        yield from (state for state, _ in disk.states())


@pytest.mark.parametrize(("run", "check"), [(free, check_freed), (rotate, check_rotated)])
def test_a_kill_or_a_power_loss_at_any_moment_loses_nothing(
    run: Callable[[Session], None], check: Callable[[Image], None]
) -> None:
    known = set(states(run))
    assert len(known) > 3
    for image in known:
        check(image)


def test_half_of_an_archive_never_passes_for_the_history() -> None:
    """Where a program writes the short file back while the archive is freed, that is said."""
    _, short = whole_again()
    told = 0
    for image in set(states(free)):
        with laid_out(image) as found:
            found.where.live.write_bytes(short)
            with suppress(SessrotateError), state.opened(found.where) as opened:
                assert sets.whole(opened) == HISTORY
                told += 1
    assert told
