"""Units of systemd: any path and any folder come out as they are, and systemd finds no fault."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.job.schedule import systemd
from sessrotate.job.schedule.work import MARK, Every, Work
from support import units as support_units
from support.command_line import ENVIRONMENT, SECONDS
from support.units import TEXT

NEEDS_VERIFY: Final = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="systemd-analyze is not here: nobody has looked at the units (apt-get install systemd)",
)


def started(work: Work) -> tuple[list[str], dict[str, str]]:
    """Return what systemd would execute, and the environment."""
    service = support_units.assignments(systemd.files(work)["sessrotate.service"])["Service"]
    (line,) = service["ExecStart"]
    environment: dict[str, str] = {}
    for value in service.get("Environment", []):
        (word,) = support_units.words(value)
        name, _, content = word.partition("=")
        environment[name] = content
    return support_units.words(line), environment


@given(TEXT, st.dictionaries(st.sampled_from(["CLAUDE_CONFIG_DIR", "XDG_STATE_HOME"]), TEXT))
def test_any_path_and_any_folder_arrive_as_they_are(text: str, variables: dict[str, str]) -> None:
    path = f"/{text}/sessrotate"
    work = Work(path, variables, "daily")
    assert started(work) == ([path, "run"], variables)
    assert systemd.program(systemd.files(work)["sessrotate.service"]) == path


@pytest.mark.parametrize("every", ["hourly", "daily", "weekly"])
def test_the_timer_makes_up_at_once_for_what_was_missed(every: Every) -> None:
    """A delay, even a random one, would come before each start that was missed, too."""
    text = systemd.files(Work("/s", {}, every))["sessrotate.timer"]
    timer = support_units.assignments(text)
    assert timer["Timer"].keys() == {"OnCalendar", "Persistent"}
    assert timer["Timer"]["Persistent"] == ["true"]
    assert timer["Install"]["WantedBy"] == ["timers.target"]
    assert systemd.every(text) == every


PERIODS: Final[dict[Every, tuple[int, int]]] = {
    "hourly": (3600, 600),
    "daily": (86_400, 3600),
    "weekly": (7 * 86_400, 6 * 3600),
}
"""The seconds of a period, and of its beginning in which all machines start."""


@NEEDS_VERIFY
@pytest.mark.parametrize("every", PERIODS)
@pytest.mark.parametrize("spread", [0, 59, 61, 599, 3599, 21_599, 2**64 - 1])
def test_systemd_starts_it_at_the_machines_own_time_of_each_period(
    every: Every, spread: int
) -> None:
    timer = systemd.files(Work("/s", {}, every, spread=spread))["sessrotate.timer"]
    (calendar,) = support_units.assignments(timer)["Timer"]["OnCalendar"]
    command = ["systemd-analyze", "calendar", "--iterations=3", "--base-time=2026-01-01 UTC"]
    said = subprocess.run(
        [*command, calendar],
        env={**ENVIRONMENT, "TZ": "UTC", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    ).stdout
    found = re.findall(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC$", said, re.MULTILINE)
    starts = [datetime.fromisoformat(f"{each}+00:00").timestamp() for each in dict.fromkeys(found)]
    period, within = PERIODS[every]
    monday = datetime(2026, 1, 5, tzinfo=UTC).timestamp()
    assert [(at - monday) % period for at in starts] == [spread % within] * 3
    assert {later - at for at, later in pairwise(starts)} == {period}


def test_the_service_is_in_nobodys_way_and_needs_no_namespace_of_users() -> None:
    text = systemd.files(Work("/s", {}, "daily"))["sessrotate.service"]
    service = support_units.assignments(text)["Service"]
    assert service["IOSchedulingClass"] == ["idle"]
    assert service["Nice"] == ["19"]
    assert service["Type"] == ["oneshot"]
    # What needs one, in systemd 252 and later; in it /proc/<pid>/fd of others cannot be read.
    for name in service:
        assert not name.startswith(("Private", "Protect", "ReadOnly", "ReadWrite", "Bind", "Inacc"))
    for unit in systemd.files(Work("/s", {}, "daily")).values():
        assert MARK in unit.split("\n")[0]


NAMES: Final = ("with space", "(é…; #1)")


@NEEDS_VERIFY
@pytest.mark.parametrize(
    ("name", "every"),
    [("plain", "hourly"), ("plain", "weekly"), *((name, "daily") for name in NAMES)],
)
def test_systemd_itself_finds_no_fault(name: str, every: Every, tmp_path: Path) -> None:
    assert verified(name, every, tmp_path) == (0, "")


@NEEDS_VERIFY
def test_systemd_itself_would_find_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(systemd, "_calendar", lambda *_: "daily\nNicer=19")
        assert "Nicer" in verified("plain", "daily", tmp_path)[1]
    monkeypatch.setattr(systemd, "_quoted", lambda _: "/nowhere/sessrotate")
    assert "not executable" in verified("plain", "daily", tmp_path / "2")[1]


def verified(name: str, every: Every, folder: Path) -> tuple[int, str]:
    """Have systemd look at the units of a program in a folder of that name."""
    program = folder / name / "sessrotate"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    units = folder / "units"
    units.mkdir()
    work = Work(str(program), {"CLAUDE_CONFIG_DIR": str(folder / name)}, every)
    for file, text in systemd.files(work).items():
        (units / file).write_text(text)
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", *map(str, units.iterdir())],
        env={**ENVIRONMENT, "HOME": str(folder), "XDG_RUNTIME_DIR": str(runtime)},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    # It looks at what the machine itself has, too: sockets whose paths are too long below here.
    ours = [line for line in done.stderr.splitlines() if "sessrotate" in line]
    return done.returncode, "\n".join(ours)
