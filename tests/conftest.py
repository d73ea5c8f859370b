"""What all tests share: settings of hypothesis, and a disk that need not be waited for."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default", suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("default")


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk() -> object:
    """Make `fsync` in this process cost nothing.

    Whether it is called, and when, is tested by tests that replace it themselves; commands that
    run as subprocesses keep the real one.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _fd: None)
        yield
