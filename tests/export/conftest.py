"""A browser for the tests that ask for one; they are marked, and left out by default.

Without a Chromium they are skipped, unless SESSROTATE_REQUIRE_BROWSER=1 says that it has to be
there. `scripts/browser` installs it where Debian's packages are.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from export import browser as chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

    from export.browser import Browser

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
