"""`scripts/check-client` says what was found, and never "as before" of what was not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.real_clients import check
from support.real_clients.client import VERSIONS, install
from support.real_clients.installing import UnavailableError

REPOSITORY = Path(__file__).parents[2]


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "tests"), **variables}
    return subprocess.run(
        [sys.executable, "-m", "support.real_clients.check", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_what_is_no_version_is_an_error() -> None:
    told = run("2.1.x")
    assert told.returncode == 2
    assert "'2.1.x' is no version: name one such as 2.1.330" in told.stderr


def test_a_version_that_cannot_be_had_is_said_to_be_untested(tmp_path: Path) -> None:
    told = run("9.9.9", PATH=str(tmp_path), SESSROTATE_CLIENTS=str(tmp_path / "clients"))
    assert told.returncode == 1
    assert "9.9.9: cannot be tested here. Node.js with npm is not installed" in told.stdout
    assert "as before" not in told.stdout


# ── counting ─────────────────────────────────────────────────────────────────────────────────


def ended(name: str, outcome: str, when: str = "call", **more: Any) -> Any:
    crash = SimpleNamespace(reprcrash=SimpleNamespace(message=f"{name} is not equal"))
    return SimpleNamespace(
        nodeid=f"tests/clients/test_x.py::test_a_thing[2.1.7-{name}]",
        when=when,
        passed=outcome == "passed",
        skipped=outcome == "skipped",
        longrepr=crash,
        **{"user_properties": [], **more},
    )


def verdict_of(*reports: Any) -> check.Verdict:
    verdict = check.Verdict("2.1.7", lambda _text: None)
    for report in reports:
        verdict.pytest_runtest_logreport(report)
    return verdict


def test_each_case_counts_once_and_only_an_equal_one_as_before() -> None:
    verdict = verdict_of(
        ended("good", "passed", "setup"),
        ended("good", "passed"),
        ended("good", "passed", "teardown"),
        ended("old_trouble", "skipped", wasxfail="reason: a known difference"),
        ended("bad", "failed"),
        ended("bad", "failed", "teardown"),
        ended("no_start", "failed", "setup"),
        ended("no_end", "passed"),
        ended("no_end", "failed", "teardown"),
        ended("left_out", "skipped", "setup"),
    )
    assert verdict.lines()[0] == "2.1.7: resumes rotated sessions as before in 1 of 6 cases."
    assert verdict.known == ["a thing: old trouble"]
    assert [case.removeprefix("a thing: ") for case in verdict.different] == [
        "bad",
        "no start",
        "no end",
        "left out",
    ]
    assert "      bad is not equal" in verdict.lines()


def test_the_table_has_a_line_for_each_kind_of_case() -> None:
    def rare(name: str, outcome: str, *told: str) -> Any:
        report = ended(name, outcome, user_properties=[("rotation", one) for one in told])
        report.nodeid = f"tests/x.py::test_a_rare_session_is_equal[2.1.7-{name}]"
        return report

    verdict = verdict_of(
        rare("good", "passed", "rotated; 2.1.7; "),
        rare("sound", "passed", "rotated; 2.1.7; ", "refused; 2.1.7; Not now."),
        rare("bad", "failed"),
    )
    (line,) = verdict.table()
    assert line.split() == ["2.1.7", "rare", "sessions", "3", "2", "0", "1", "1"]


# ── with a real client ───────────────────────────────────────────────────────────────────────


@pytest.mark.clients
def test_a_real_client_is_judged_case_by_case() -> None:
    number = VERSIONS[-1].number
    try:
        install(number)
    except UnavailableError as error:
        pytest.skip(str(error))
    told = run(number, "--only", "nothing_preserved or four_preserved_by_their_ends_alone")
    assert told.returncode == 0, told.stdout
    assert told.stdout.endswith(
        f"{number}: resumes rotated sessions as before in 2 of 2 cases.\n"
    ), told.stdout
    assert told.stdout.count("  same: ") == 2
