"""What all tests share: hypothesis, no user, and a disk that need not be waited for."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default", suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("default")


_FOLDERS = (
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
)
"""Where settings, logs and sessions are looked for."""


@pytest.fixture(autouse=True, scope="session")
def _nothing_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> object:
    """Have settings, logs and sessions of whoever runs the tests neither read nor written."""
    folder = tmp_path_factory.mktemp("user")
    with pytest.MonkeyPatch.context() as patch:
        for name in _FOLDERS:
            patch.setenv(name, str(folder / name.lower()))
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk() -> object:
    """Make `fsync` in this process cost nothing.

    Whether it is called, and when, is tested by tests that replace it themselves; commands that
    run as subprocesses keep the real one.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _fd: None)
        yield
