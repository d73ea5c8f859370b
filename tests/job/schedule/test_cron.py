"""The line for cron: nothing in it is special to cron, and the shell reads it as it is meant."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.job.schedule import cron
from sessrotate.job.schedule.work import Every, Work
from support.units import TEXT


@given(TEXT, st.dictionaries(st.sampled_from(["CLAUDE_CONFIG_DIR", "XDG_STATE_HOME"]), TEXT))
def test_any_path_and_any_folder_arrive_as_they_are(path: str, variables: dict[str, str]) -> None:
    line = cron.line(Work(f"/{path}/sessrotate", variables, "daily"))
    assert not {*"%\\\n"} & {*line}  # which cron does not give to the shell as they are
    told = [f"{name}={value}" for name, value in sorted(variables.items())]
    words = shlex.split(line.split(" ", 5)[5])
    assert words == [*told, f"/{path}/sessrotate", "run", ">/dev/null"]
    assert cron.program(line) == f"/{path}/sessrotate"


@pytest.mark.parametrize("name", ["plain", "with space", "(é…; #1) &"])
def test_a_shell_starts_the_program_with_its_folders_and_mails_what_fails(
    name: str, tmp_path: Path
) -> None:
    program = tmp_path / name / "sessrotate"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s %s" "$CLAUDE_CONFIG_DIR" "$*" >&2\necho done\n')
    program.chmod(0o700)
    line = cron.line(Work(str(program), {"CLAUDE_CONFIG_DIR": f"/x/{name}"}, "daily"))
    done = subprocess.run(["/bin/sh", "-c", line.split(" ", 5)[5]], capture_output=True, check=True)
    assert (done.stdout, done.stderr.decode()) == (b"", f"/x/{name} run")


@pytest.mark.parametrize(
    ("every", "when"), [("hourly", "17 * * * *"), ("daily", "17 3 * * *"), ("weekly", "17 3 * * 0")]
)
def test_it_is_started_as_often_as_said(every: Every, when: str) -> None:
    line = f"{when} /usr/bin/sessrotate run >/dev/null"
    assert cron.line(Work("/usr/bin/sessrotate", {}, every)) == line
