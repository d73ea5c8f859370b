"""The parts of a full run are the same in the markers, in the table of costs and in the page."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings

from support import cost
from support.examples import examples
from support.tiers import by_day

REPOSITORY: Final = Path(__file__).parents[1]
PAGE: Final = REPOSITORY / "docs" / "internals" / "testing.md"


def options() -> Any:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    return project["tool"]["pytest"]["ini_options"]


def test_every_marker_is_left_out_by_day_counted_and_described() -> None:
    markers = {line.partition(":")[0] for line in options()["markers"]}
    assert markers == set(cost.MARKERS)
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)) == markers
    left_out = options()["addopts"][options()["addopts"].index("-m") + 1]
    assert {part.removeprefix("not ") for part in left_out.split(" and ")} == markers


def test_of_parameters_all_are_there_and_the_daily_ones_unmarked() -> None:
    for daily in (2, ["a", "b"]):
        found = by_day("abcd", daily, "scale")
        assert [parameter.values for parameter in found] == [("a",), ("b",), ("c",), ("d",)]
        assert [bool(parameter.marks) for parameter in found] == [False, False, True, True]


def test_a_daily_parameter_that_is_none_is_an_error() -> None:
    with pytest.raises(AssertionError):
        by_day("abcd", ["e"], "scale")


def test_the_full_profile_tries_what_a_test_says_and_the_quick_one_a_tenth() -> None:
    before = settings.get_current_profile_name()
    try:
        for profile, expected in (("full", [6, 100, 400]), ("quick", [5, 10, 40])):
            settings.load_profile(profile)
            assert [examples(count).max_examples for count in (6, 100, 400)] == expected
    finally:
        settings.load_profile(before)
