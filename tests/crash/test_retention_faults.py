"""A kill of the run that tidies, and a full disk: of all that changes sealed segments.

What else may end it, `test_deeds` has.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.errors import SessrotateError
from sessrotate.retention import trash
from support.crash.changes import Faults, Killed, Watch
from support.crash.deeds import PRUNINGS, Deed, after_power_losses, run_restore
from support.crash.judging import seen_of
from support.crash.scenes import Session, laid_out

if TYPE_CHECKING:
    from collections.abc import Callable

DEEDS: Final = [pruning.deed(name) for name, pruning in PRUNINGS.items()]
every_deed: Final = pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.name)


@every_deed
def test_a_kill_of_the_run_that_tidies_loses_nothing(deed: Deed) -> None:
    with laid_out(deed.before()) as found:
        states = {image.names: image for image in seen_of(found, deed.run)}
    for image in states.values():
        with laid_out(image) as found:
            again = seen_of(found, deed.run)
        for later in {entry.names: entry for entry in again}.values():
            deed.check(later)


class KilledAfter(Watch):
    """Is killed before the call that follows the rename number `at`."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._left = at
        self.is_dead = False

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._left == 0:
            self.is_dead = True
            raise Killed
        self._left -= name == "rename"
        return real(*args, **kwargs)


@every_deed
def test_a_power_loss_after_a_kill_and_during_the_next_run_loses_nothing(deed: Deed) -> None:
    """The kill comes when a name is new and not on the disk, which the next run must see to."""
    for renames in count(1):
        killed = KilledAfter(renames)

        def both(found: Session, killed: KilledAfter = killed) -> None:
            with killed.installed(), suppress(Killed):
                deed.run(found)
            deed.run(found)

        states = [*after_power_losses(deed, both)]
        if not killed.is_dead:
            return
        for image in states:
            deed.check(image)


class FullDisk(Faults):
    """Has no room for anything new from a call on; what removes or renames goes on."""

    def call(self, name: str, real: Callable[..., object], *args: object, **more: object) -> object:
        if name in {"write", "mkdir", "open"}:
            return super().call(name, real, *args, **more)
        return real(*args, **more)


@every_deed
def test_a_full_disk_leaves_everything_as_it_was(deed: Deed) -> None:
    for at in count(1):
        with laid_out(deed.before()) as found:
            with trash.begin(found.where, 1):  # the lock's folders are there
                pass
            was = found.image()
            fault = partial(OSError, errno.ENOSPC, os.strerror(errno.ENOSPC))
            faults = FullDisk(at, fault, lasting=True)
            with faults.installed(), suppress(SessrotateError):
                deed.run(found)
            if not faults.failed:
                break
            now = found.image()
            if deed.run is not run_restore:  # which has moved the files: the next run moves on
                assert (now.names, now.contents) == (was.names, was.contents)
        deed.check(now)
