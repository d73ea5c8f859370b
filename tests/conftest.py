"""What all tests share: hypothesis, no user, a disk that need not be waited for, a home, a browser.

The browser is for tests that are marked so, and left out by default. Without a Chromium they are
skipped, unless SESSROTATE_REQUIRE_BROWSER=1 says that it has to be there. `.ci/run` installs it
where Debian's packages are.
"""

from __future__ import annotations

import os
import secrets
import sys
from typing import TYPE_CHECKING

import pytest

from support import examples, homes, portable
from support.export import browser as chromium
from support.in_process import umask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.export.browser import Browser
    from support.homes import Home

examples.register_profiles()

# With PYTHONDONTWRITEBYTECODE each worker would rewrite the assertions of all modules anew: 6 s.
sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--portable", action="store_true", help="as on a system that has nothing of its own"
    )


def pytest_configure(config: pytest.Config) -> None:
    examples.draw_by_the_test_alone()
    if config.getoption("--portable"):  # before any test asks what the system can do
        portable.become_portable(pytest.MonkeyPatch())


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> str:
    """Give what `random` is to start from: always the same in the gate, a new one in each soak."""
    drawn = request.config.getoption("--hypothesis-seed")
    found = f"{0 if examples.is_gate() else drawn or secrets.randbits(32)} {request.node.nodeid}"
    print("seed", found)  # noqa: T201 - a red test shows it
    return found


_ELSEWHERE = ("CLAUDE_PROJECTS_DIR", "CODEX_SESSIONS_DIR", "GEMINI_SESSIONS_DIR")
"""What would have sessions looked for in other folders than those."""

_FOLDERS = (
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
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
            path = folder / name.lower()
            path.mkdir()  # `doctor` names a folder that is not there
            patch.setenv(name, str(path))
        for name in _ELSEWHERE:
            patch.delenv(name, raising=False)
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


@pytest.fixture(autouse=True)
def _umask_is_given_back() -> Iterator[None]:
    """Hold that no test leaves another umask: what the next one makes would depend on it."""
    before = umask()
    yield
    after = os.umask(before)
    assert after == before, f"the test left the umask {after:03o}"


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Give a client's folder with one session: the bytes that the test's module calls DATA."""
    return homes.home(tmp_path, monkeypatch, getattr(request.module, "DATA", None))


@pytest.fixture(params=["live", "rotated"])
def either(request: pytest.FixtureRequest, home: Home) -> Home:
    """Give that home as it is, and with its session rotated."""
    if request.param == "rotated":
        home.rotate()
        assert home.segments()
    return home


REQUIRED = os.environ.get("SESSROTATE_REQUIRE_BROWSER") == "1"


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Give a browser that all tests share."""
    if chromium.executable() is None:
        assert not REQUIRED, "There is no Chromium."
        pytest.skip("there is no Chromium here")
    with chromium.browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture
def browser(chrome: Browser) -> Iterator[Browser]:
    """Give the browser as if it were new, and check that nothing was asked for or said."""
    chrome.resize(1280, 800)
    chrome.noted.clear()
    yield chrome
    assert chrome.noted == []
