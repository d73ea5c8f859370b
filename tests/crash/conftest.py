"""What the tests of crashes share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _nobody_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for no writers among the processes, and grant late ones no time: there are none."""
    monkeypatch.setattr("sessrotate.inuse.writers", lambda _device, _inode: iter(()))
    monkeypatch.setattr("sessrotate.swap._GRACE", 0)
    monkeypatch.setattr("sessrotate.swap._PAUSE", 0)
