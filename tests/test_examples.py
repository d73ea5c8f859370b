"""The gate draws the same examples wherever it runs, and the soak new ones."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

from support import examples

TESTS: Final = Path(__file__).parent

DRAW: Final = "import %s, runpy; runpy.run_module('support.drawing', run_name='__main__')"


def drawn(modules: str = "sys", **variables: str) -> str:
    """Return what a process draws that has these variables, and has these modules loaded."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(TESTS), "PYTHONUTF8": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", DRAW % modules],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_nothing_of_a_process_changes_what_the_gate_draws() -> None:
    found = drawn(PYTHONHASHSEED="0")
    assert found.count("\n") >= 100
    place = {"TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8", "HOME": "/"}
    modules = "support.oracle, sessrotate.cli.app"
    assert found == drawn(modules, CI="true", PYTHONHASHSEED="1", **place)


@pytest.mark.parametrize("name", examples.PROFILES)
def test_a_profile_names_every_setting(name: str) -> None:
    assert {*examples.PROFILES[name]} == {*inspect.signature(settings).parameters} - {"parent"}


def test_the_gate_draws_what_it_drew_and_the_soak_keeps_what_failed() -> None:
    gate, soak = (settings.get_profile(name) for name in (examples.GATE, examples.SOAK))
    assert (gate.derandomize, gate.database, gate.print_blob) == (True, None, True)
    assert (soak.derandomize, soak.print_blob) == (False, True)
    assert isinstance(soak.database, DirectoryBasedExampleDatabase)


def test_the_gate_tries_half_of_what_a_test_says_and_the_soak_many_times_that() -> None:
    before = settings.get_current_profile_name()
    try:
        for profile, expected in (("gate", [3, 50, 200]), ("soak", [30, 500, 2000])):
            settings.load_profile(profile)
            assert [examples.examples(count).max_examples for count in (6, 100, 400)] == expected
    finally:
        settings.load_profile(before)
