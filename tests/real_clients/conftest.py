"""What tests with the real client share: the mock, the versions, and sessions made once a run.

Rule: where a client cannot be had the test is skipped and says why, unless
SESSROTATE_REQUIRE_CLIENTS=1, which makes it fail.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.real_clients.client import VERSIONS, Client, ClientVersion, install
from support.real_clients.client import version as numbered
from support.real_clients.installing import UnavailableError
from support.real_clients.making import Sessions
from support.real_clients.mock_api import MockApi
from support.real_clients.required import cannot_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WANTED = os.environ.get("SESSROTATE_CLIENT_VERSIONS", "").split()
"""Versions to run instead of those in the table; `scripts/check-client` names one."""

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything here: real clients take minutes, and are left out unless asked for."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.clients)


@pytest.fixture(scope="session")
def api(shared: Path) -> Iterator[MockApi]:
    known = shared / "known"
    known.mkdir(exist_ok=True)
    with MockApi(known) as running:
        yield running


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of this run share."""
    own = tmp_path_factory.getbasetemp()
    is_one_of_many = "PYTEST_XDIST_WORKER" in os.environ
    return own.parent if is_one_of_many else own


@pytest.fixture(scope="session", params=[*map(numbered, WANTED)] or VERSIONS, ids=str)
def version(request: pytest.FixtureRequest) -> ClientVersion:
    return _there(request.param)


@pytest.fixture(scope="session")
def one_that_takes_back() -> ClientVersion:
    """A version that takes back a row: it shortens the file and writes its end again."""
    return _there(numbered("2.1.80"))


def _there(wanted: ClientVersion) -> ClientVersion:
    """Return a version that is installed; where it cannot be had, the test ends."""
    try:
        install(wanted.number)
    except UnavailableError as error:
        cannot_test(f"NOT TESTED with Claude Code {wanted}: {error}")
    return wanted


@pytest.fixture
def client(version: ClientVersion, tmp_path: Path, api: MockApi) -> Client:
    return Client(version, tmp_path / "home", api)


@pytest.fixture
def later(version: ClientVersion, tmp_path: Path, api: MockApi) -> list[Client]:
    """The clients that are later than the one that writes, which read its sessions too."""
    numbers = [each for each in VERSIONS if each.key > version.key]
    return [Client(each, tmp_path / each.number, api) for each in numbers]


@pytest.fixture(scope="session")
def sessions_of(
    tmp_path_factory: pytest.TempPathFactory, shared: Path, api: MockApi
) -> Callable[[ClientVersion], Sessions]:
    def of(version: ClientVersion) -> Sessions:
        own = tmp_path_factory.mktemp("sessions")
        return Sessions(_there(version), shared / "made", own, api)

    return of


@pytest.fixture(scope="session")
def sessions(version: ClientVersion, sessions_of: Callable[[ClientVersion], Sessions]) -> Sessions:
    return sessions_of(version)
