"""A crash on the way out of the trash of restored sessions loses nothing."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import state
from sessrotate.errors import SessrotateError
from sessrotate.reading import stitch
from sessrotate.retention import restore, trash
from sessrotate.retention.policy import DAY
from support.crash.disk import Image
from support.crash.judging import seen_of
from support.crash.power import recorded
from support.crash.scenes import MORE, OPENING, Session, laid_out, unseen
from support.crash.simulator import Disk

if TYPE_CHECKING:
    from collections.abc import Iterator

HISTORY: Final = OPENING + MORE
NOW: Final = 1_800_000_000.0


@cache
def restored(*, is_short: bool) -> Image:
    """Return what a restoration leaves, or where the client wrote the short file back after it."""
    with laid_out(Image(frozenset(), (), ())) as found:
        found.rotated_twice()
        short = found.where.live.read_bytes()
        found.restore()
        if is_short:
            found.where.live.write_bytes(short)
        return found.image()


def run_back(found: Session) -> None:
    restore.restore(found.where, restore.SHORT, 1, unseen)


def run_empty(found: Session) -> None:
    trash.empty(found.where, 7 * DAY, NOW + 8 * DAY, 1)


def check_back(image: Image) -> None:
    with laid_out(image) as found:
        with suppress(SessrotateError):  # as long as its archive is in the trash
            assert found.stitched() == HISTORY
        run_back(found)
        found.recover()
        assert found.stitched() == HISTORY
        found.check_clean()
        assert not list(found.root.glob("sessrotate/trash/*/*"))


def check_emptied(image: Image) -> None:
    with laid_out(image) as found:
        assert found.stitched() == HISTORY
        live = found.where.live.read_bytes()
        run_back(found)
        assert found.where.live.read_bytes() == live
        run_empty(found)
        assert found.stitched() == HISTORY
        assert not list(found.root.glob("sessrotate/trash/*/*/*"))


def states(run_name: str) -> Iterator[Image]:
    image = restored(is_short=run_name == "back")
    run = run_back if run_name == "back" else run_empty
    with laid_out(image) as found:
        yield from seen_of(found, run)
    trace = recorded(run_name, image, HISTORY, run).trace
    disk = Disk.of(trace)
    for event in trace.events:
        disk.apply(event)
        yield from (state for state, _ in disk.states())


@pytest.mark.parametrize("run_name", ["back", "empty"])
def test_a_kill_or_a_power_loss_at_any_moment_loses_nothing(run_name: str) -> None:
    known = set(states(run_name))
    assert len(known) > 3
    for image in known:
        (check_back if run_name == "back" else check_emptied)(image)


def test_half_of_an_archive_never_comes_back() -> None:
    """Where a program writes the short file back while the trash is emptied, that is said."""
    short = next(
        content
        for (path, number) in restored(is_short=True).names
        for content in [restored(is_short=True).contents[number]]
        if path.startswith("projects")
    )
    for image in set(states("empty")):
        with laid_out(image) as found:
            found.where.live.write_bytes(short)
            run_back(found)
            with state.opened(found.where) as opened, suppress(SessrotateError):
                assert b"".join(bytes(piece) for piece in stitch.stream(opened)) == HISTORY
