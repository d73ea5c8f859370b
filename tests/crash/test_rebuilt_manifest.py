"""A crash while a manifest is made again loses no segment, and the next run goes on."""

from __future__ import annotations

from functools import cache
from typing import Final

import pytest

from sessrotate.archive import state
from sessrotate.errors import SessrotateError
from sessrotate.retention import prune, transaction
from sessrotate.retention.policy import Policy
from support import homes, oracle, sets
from support.crash.disk import Image
from support.crash.judging import seen_of
from support.crash.power import recorded
from support.crash.scenes import MORE, OPENING, Session, laid_out
from support.crash.simulator import Disk

HISTORY: Final = OPENING + MORE
BODIES: Final = oracle.bodies(HISTORY)


@cache
def before(damage: bytes | None) -> Image:
    """Return an archive with a segment in the trash, and a manifest that is gone or damaged."""
    with laid_out(Image(frozenset(), (), ())) as found:
        found.rotated_twice()
        plan = prune.prepare([found.where], Policy(keep_last=2), 1.9e9, lambda _done: None)
        assert [done.error for done in prune.execute(plan, 1)] == [None]
        path = found.where.archive / "manifest.json"
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
        return found.image()


def run(found: Session) -> None:
    found.recover()


def check(image: Image, damage: bytes | None) -> None:
    with laid_out(image) as found:
        found.recover()
        with transaction.begin(found.where, 1) as listed:
            assert listed.is_rebuilt
        gone = [entry.segment.index for entry in listed.segments if entry.pruned is not None]
        with state.opened(found.where) as opened:
            told = sets.whole(opened, lambda _gap: None)
        assert told == b"".join(body for index, body in enumerate(BODIES) if index not in gone)
        files = [path for path in found.where.archive.rglob("*") if path.is_file()]
        for body in BODIES[:-1]:
            assert any(homes.content(path).endswith(body) for path in files)
        if damage is not None:
            assert damage in {path.read_bytes() for path in files if "damaged" in path.name}


@pytest.mark.parametrize("damage", [None, b'{"format": 1, "sess'], ids=["gone", "half"])
def test_a_kill_or_a_power_loss_at_any_moment_loses_nothing(damage: bytes | None) -> None:
    with laid_out(before(damage)) as found:
        images = {*seen_of(found, run)}
    disk = Disk.of(trace := recorded("rebuild", before(damage), HISTORY, run).trace)
    for event in trace.events:
        disk.apply(event)
        images |= {image for image, _ in disk.states()}
    assert len(images) > 5
    for image in images:
        try:
            check(image, damage)
        except (SessrotateError, AssertionError) as error:
            raise AssertionError(f"{error}\n{image.shown()}") from error
