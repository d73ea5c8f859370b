"""What is not in the gate is in a part of the soak, and the page says both."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from support.tiers import in_gate

REPOSITORY: Final = Path(__file__).parents[1]
PAGE: Final = REPOSITORY / "docs" / "internals" / "testing.md"
SOAK: Final = REPOSITORY / "scripts" / "soak"
NIGHTLY: Final = REPOSITORY / ".github" / "workflows" / "soak.yml"


def options() -> Any:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    return project["tool"]["pytest"]["ini_options"]


def parts() -> list[str]:
    found = re.search(r'^parts="(.*)"$', SOAK.read_text(), re.MULTILINE)
    assert found
    return found[1].split()


def test_every_marker_is_left_out_of_the_gate_and_is_a_part_of_the_soak() -> None:
    markers = {line.partition(":")[0] for line in options()["markers"]}
    left_out = options()["addopts"][options()["addopts"].index("-m") + 1]
    assert {part.removeprefix("not ") for part in left_out.split(" and ")} == markers
    assert markers < {*parts()}


def test_the_page_and_the_nightly_run_have_every_part_of_the_soak() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert rows == parts()
    if NIGHTLY.exists():  # it is not in the sdist
        listed = re.search(r"part: \[(.*)\]", NIGHTLY.read_text())
        assert listed
        assert listed[1].split(", ") == parts()


@pytest.mark.parametrize("listed", ["smoke.txt", "portable.txt"])
def test_what_a_list_of_tests_names_is_there(listed: str) -> None:
    words = ["--collect-only", "-q", "-n", "0", "-m", "", f"@tests/{listed}"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
    )
    assert ended.returncode == 0, ended.stdout
    found = ended.stdout.splitlines()
    named = [
        line
        for line in (REPOSITORY / "tests" / listed).read_text().splitlines()
        if line.startswith("tests/")
    ]
    assert named
    for line in named:
        assert any(test.startswith(line) for test in found), line


def test_of_parameters_all_are_there_and_those_of_the_gate_unmarked() -> None:
    for some in (2, ["a", "b"]):
        found = in_gate("abcd", some, "scale")
        assert [parameter.values for parameter in found] == [("a",), ("b",), ("c",), ("d",)]
        assert [bool(parameter.marks) for parameter in found] == [False, False, True, True]
    with pytest.raises(AssertionError):
        in_gate("abcd", ["e"], "scale")
