"""The agent of launchd: read back by plistlib, and by another parser of XML."""

from __future__ import annotations

import plistlib
from typing import Any
from xml.dom import minidom

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.job.schedule import launchd
from sessrotate.job.schedule.work import MARK, Every, Work
from support.units import TEXT


def agent(work: Work) -> Any:
    (text,) = launchd.files(work).values()
    return plistlib.loads(text.encode())


@given(TEXT, st.dictionaries(st.sampled_from(["CLAUDE_CONFIG_DIR", "XDG_STATE_HOME"]), TEXT))
def test_any_path_and_any_folder_arrive_as_they_are(path: str, variables: dict[str, str]) -> None:
    work = Work(f"/{path}/sessrotate", variables, "daily")
    found = agent(work)
    assert found["ProgramArguments"] == [work.program, "run"]
    assert found["EnvironmentVariables"] == variables
    (text,) = launchd.files(work).values()
    strings = minidom.parseString(text).getElementsByTagName("string")
    assert work.program in [
        "".join(part.nodeValue or "" for part in node.childNodes) for node in strings
    ]


@pytest.mark.parametrize(
    ("every", "when"),
    [
        ("hourly", {"Minute": 17}),
        ("daily", {"Minute": 17, "Hour": 3}),
        ("weekly", {"Minute": 17, "Hour": 3, "Weekday": 0}),
    ],
)
def test_it_is_started_as_often_as_said_and_in_nobodys_way(
    every: Every, when: dict[str, int]
) -> None:
    found = agent(Work("/s", {}, every))
    assert found["StartCalendarInterval"] == when
    assert found["Label"] == "sessrotate"
    assert found["LowPriorityIO"] is True
    assert found["ProcessType"] == "Background"
    assert "RunAtLoad" not in found


def test_the_file_has_our_mark() -> None:
    ((name, text),) = launchd.files(Work("/s", {}, "daily")).items()
    assert name == "sessrotate.plist"
    assert f"<!-- {MARK} -->" in text
