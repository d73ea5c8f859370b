"""What another run moves away while a session is read is not called damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import state
from sessrotate.errors import DamagedError, InUseError
from sessrotate.in_place import operations
from sessrotate.retention import prune
from sessrotate.retention.policy import Policy
from support import command_line, homes, oracle, sets

if TYPE_CHECKING:
    from support.homes import Home

DATA: Final = command_line.session(boundaries=4, padding=400)
BODIES: Final = oracle.bodies(DATA)


def pruned(home: Home) -> None:
    plan = prune.prepare([home.where], Policy(keep_last=1), 1_800_000_000.0, lambda _done: None)
    assert [done.error for done in prune.execute(plan, 1)] == [None]


def test_who_reads_beside_a_restoration_reads_all(home: Home) -> None:
    home.rotate()
    with state.opened(home.where) as found:
        stitching = sets.holder(found).stream()
        begin = bytes(next(stitching))
        assert operations.restore_session(home.where, 1, homes.silent) is not None
        assert begin + b"".join(bytes(piece) for piece in stitching) == DATA
        assert sets.holder(found).verify(lambda _done: None) == []


def test_who_reads_beside_another_run_is_told_to_try_again(home: Home) -> None:
    home.rotate()
    with state.opened(home.where) as found:
        stitching = sets.holder(found).stream()
        assert bytes(next(stitching)) == BODIES[0]
        pruned(home)
        for read in (
            lambda: list(stitching),
            lambda: sets.holder(found).verify(lambda _done: None),
        ):
            with pytest.raises(InUseError, match="was replaced while it was read; try again"):
                read()


def test_what_is_damaged_is_said_to_be_damaged(home: Home) -> None:
    home.rotate()
    with state.opened(home.where) as found:
        stitching = sets.holder(found).stream()
        next(stitching)
        homes.rewrite(home.segment(2), b"something else")
        with pytest.raises(DamagedError, match=r"Segment 2 .* is damaged"):
            list(stitching)
