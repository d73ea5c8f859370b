"""What tests of a report's page in a browser share: a session, a machine of 300, their pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support import report_samples
from support.report_browsing import made

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.reports import MachineReport, SessionReport


@pytest.fixture(scope="module")
def session() -> SessionReport:
    return report_samples.session()


@pytest.fixture(scope="module")
def machine() -> MachineReport:
    return report_samples.machine(300)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory, session: SessionReport) -> Path:
    return made(tmp_path_factory.mktemp("one"), "one", [session])


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory, machine: MachineReport) -> Path:
    return made(tmp_path_factory.mktemp("every"), "every", machine)
