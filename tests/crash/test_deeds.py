"""Wherever what is done to a session ends, nothing is lost, and the next run ends it: a table.

Rotations and restorations of whole sessions, to which clients write meanwhile, have tests of their
own: `test_in_place_kills`, `test_in_place_faults`, `test_crash_states`.
"""

from __future__ import annotations

import errno
import os
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.errors import SessrotateError
from support.crash.changes import Faults
from support.crash.deeds import DEEDS, Deed, after_faults, after_kills, after_power_losses
from support.tiers import in_gate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from support.crash.disk import Image

every_deed: Final = pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.name)

DEAR: Final = {"put together, never rotated", "put together, not trimmed yet"}
"""Deeds of which a power loss leaves a thousand states."""

FAULTS: Final = [
    (number, lasting)
    for number in (errno.EIO, errno.ENOSPC, errno.EROFS)
    for lasting in (False, True)
]


def check(deed: Deed, images: Iterable[Image]) -> None:
    known = set[object]()
    for image in images:
        if image not in known:
            known.add(image)
            try:
                deed.check(image)
            except (SessrotateError, AssertionError, OSError) as error:
                raise AssertionError(f"{error}\n{image.shown()}") from error
    assert len(known) > 1


@every_deed
def test_a_kill_at_any_moment_loses_nothing(deed: Deed) -> None:
    check(deed, after_kills(deed))


@pytest.mark.parametrize(
    "deed",
    in_gate(DEEDS, [deed for deed in DEEDS if deed.name not in DEAR], "scale"),
    ids=lambda deed: deed.name,
)
def test_a_power_loss_at_any_moment_loses_nothing(deed: Deed) -> None:
    check(deed, after_power_losses(deed))


@every_deed
@pytest.mark.parametrize(
    "fault_of",
    in_gate(FAULTS, [(errno.EIO, False), (errno.ENOSPC, True), (errno.EROFS, True)], "scale"),
    ids=lambda fault: f"{errno.errorcode[fault[0]]} {'from then on' if fault[1] else 'once'}",
)
def test_any_call_may_fail_and_that_is_told(deed: Deed, fault_of: tuple[int, bool]) -> None:
    number, lasting = fault_of
    why = os.strerror(number)
    left: list[Image] = []
    fault = partial(OSError, number, why)
    for image, faults, failure in after_faults(deed, partial(Faults, fault=fault, lasting=lasting)):
        if failure is None:
            assert not deed.is_told, f"{faults.failed} failed and nobody said so"
        else:
            assert failure.exit_code == 74, failure
            assert why in str(failure)
        left.append(image)
    check(deed, left)


def test_what_was_done_before_a_failure_is_said() -> None:
    """The way back has three steps: from the trash, to where the client looks, and whole."""
    (deed,) = (deed for deed in DEEDS if deed.name == "restore all")
    fault = partial(OSError, errno.EIO, os.strerror(errno.EIO))
    ends = after_faults(deed, partial(Faults, fault=fault, lasting=True))
    told = {str(failure).partition("Done before that: ")[2] for _, _, failure in ends}
    back = "2 segments back from the trash"
    assert told >= {"", f"{back}.", f"{back}; back where its client looks."}
