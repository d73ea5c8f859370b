"""What all tests share: hypothesis, no user, a disk that need not be waited for, a browser.

The browser is for tests that are marked so, and left out by default. Without a Chromium they are
skipped, unless SESSROTATE_REQUIRE_BROWSER=1 says that it has to be there. `scripts/browser`
installs it where Debian's packages are.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from support import cost, portable
from support.examples import register_profiles
from support.export import browser as chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.export.browser import Browser

register_profiles()

# With PYTHONDONTWRITEBYTECODE each worker would rewrite the assertions of all modules anew: 6 s.
sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--portable", action="store_true", help="as on a system that has nothing of its own"
    )
    parser.addoption("--cost", action="store_true", help="say what each part of the run cost")


@pytest.hookimpl(trylast=True)  # when every conftest has marked its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.user_properties.append(("part", cost.part_of(item)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.config.getoption("--cost"):
        reports = [
            report
            for found in terminalreporter.stats.values()
            for report in found
            if isinstance(report, pytest.TestReport)
        ]
        terminalreporter.section("cost by part")
        terminalreporter.write("\n".join([*cost.table(reports), ""]))


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


@pytest.fixture(autouse=True)
def _portable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.config.getoption("--portable"):
        portable.become_portable(monkeypatch)


REQUIRED = os.environ.get("SESSROTATE_REQUIRE_BROWSER") == "1"


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Give a browser that all tests share."""
    if chromium.executable() is None:
        assert not REQUIRED, "There is no Chromium; scripts/browser installs one."
        pytest.skip("there is no Chromium here; scripts/browser installs one")
    with chromium.browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture
def browser(chrome: Browser) -> Iterator[Browser]:
    """Give the browser as if it were new, and check that nothing was asked for or said."""
    chrome.resize(1280, 800)
    chrome.noted.clear()
    yield chrome
    assert chrome.noted == []
