"""What the tests of crashes share."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from support.limits import HANGS

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _nobody_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for no writers among the processes, and grant late ones no time: there are none."""
    monkeypatch.setattr("sessrotate.system.in_use.writers", lambda _file: iter(()))
    monkeypatch.setattr("sessrotate.system.locks.GRACE", 0)
    monkeypatch.setattr("sessrotate.in_place.seal.MOMENT", 0)
    # Drafts are synced side by side, in any order: here in that in which they were written.
    monkeypatch.setattr("sessrotate.fs.replacing._SYNCED", 1)
    monkeypatch.setattr("sessrotate.segments.compressed.workers", lambda _: 1)
    monkeypatch.setattr("sessrotate.system.locks.PAUSE", 0)
    # A trash is named after the time: here it is always the same, so that states can be compared.
    stamp = "sessrotate.archive.clock.stamp"
    monkeypatch.setattr(stamp, lambda now=1_800_000_000.0: now)


@pytest.fixture(autouse=True)
def _no_endless_recovery() -> Iterator[None]:
    """Fail, rather than hang, where late lines are brought over again and again."""

    def end(_signal: int, _frame: object) -> None:
        pytest.fail(f"not done in {HANGS} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(HANGS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
