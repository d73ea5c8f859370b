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

if TYPE_CHECKING:
    from collections.abc import Iterator

WANTED = os.environ.get("SESSROTATE_CLIENT_VERSIONS", "").split()
"""Versions to run instead of those in the table; `scripts/check-client` names one."""

HERE = Path(__file__).parent
REQUIRED = os.environ.get("SESSROTATE_REQUIRE_CLIENTS") == "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything here: real clients take minutes, and are left out unless asked for."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.clients)


@pytest.fixture(scope="session")
def api() -> Iterator[MockApi]:
    with MockApi() as running:
        yield running


@pytest.fixture(scope="session", params=[*map(numbered, WANTED)] or VERSIONS, ids=str)
def version(request: pytest.FixtureRequest) -> ClientVersion:
    wanted: ClientVersion = request.param
    try:
        install(wanted.number)
    except UnavailableError as error:
        reason = f"NOT TESTED with Claude Code {wanted}: {error}"
        if REQUIRED:
            pytest.fail(reason)
        pytest.skip(reason)
    return wanted


@pytest.fixture
def client(version: ClientVersion, tmp_path: Path, api: MockApi) -> Client:
    return Client(version, tmp_path / "home", api)


@pytest.fixture(scope="session")
def sessions(
    version: ClientVersion, tmp_path_factory: pytest.TempPathFactory, api: MockApi
) -> Sessions:
    own = tmp_path_factory.getbasetemp()
    is_one_of_many = "PYTEST_XDIST_WORKER" in os.environ
    made = (own.parent if is_one_of_many else own) / "made"
    return Sessions(version, made, tmp_path_factory.mktemp("sessions"), api)
