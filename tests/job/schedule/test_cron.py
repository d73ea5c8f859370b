"""The line for cron: read as cron reads it, and as the shell then does."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.errors import RefusedError
from sessrotate.job.schedule import cron
from sessrotate.job.schedule.work import Every, Work

TEXT: Final = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r")) | st.text(
    "a%\\'\"$ #`"
)


def command(line: str) -> str:
    """Return what cron gives to the shell: what it does with `%` and backslashes, by its source.

    A backslash makes the next character plain; a `%` behind it loses the backslash, anything else
    keeps it; a bare `%` ends the command.
    """
    rest = line.split(" ", 5)[5]
    found: list[str] = []
    is_escaped = False
    for letter in rest:
        if is_escaped:
            if letter == "%":
                found.pop()
            found.append(letter)
            is_escaped = False
        elif letter == "%":
            raise AssertionError("the command ends here")
        else:
            found.append(letter)
            is_escaped = letter == "\\"
    return "".join(found)


@given(TEXT, st.dictionaries(st.sampled_from(["CLAUDE_CONFIG_DIR", "XDG_STATE_HOME"]), TEXT))
def test_any_path_and_any_folder_arrive_as_they_are(path: str, variables: dict[str, str]) -> None:
    line = cron.line(Work(f"/{path}/sessrotate", variables, "daily"))
    assert "\n" not in line
    told = [f"{name}={value}" for name, value in sorted(variables.items())]
    assert shlex.split(command(line)) == [*told, f"/{path}/sessrotate", "run", ">/dev/null"]


@pytest.mark.parametrize("name", ["plain", "with space", "50%", "a\\%b", "a\\\\%%b", "it's $HOME"])
def test_a_shell_starts_the_program_with_its_folders_and_mails_what_fails(
    name: str, tmp_path: Path
) -> None:
    program = tmp_path / name / "sessrotate"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s %s" "$CLAUDE_CONFIG_DIR" "$*" >&2\necho done\n')
    program.chmod(0o700)
    line = cron.line(Work(str(program), {"CLAUDE_CONFIG_DIR": f"/x/{name}"}, "daily"))
    done = subprocess.run(["/bin/sh", "-c", command(line)], capture_output=True, check=True)
    assert (done.stdout, done.stderr.decode()) == (b"", f"/x/{name} run")


@pytest.mark.parametrize(
    ("every", "when"), [("hourly", "17 * * * *"), ("daily", "17 3 * * *"), ("weekly", "17 3 * * 0")]
)
def test_it_is_started_as_often_as_said(every: Every, when: str) -> None:
    line = f"{when} /usr/bin/sessrotate run >/dev/null"
    assert cron.line(Work("/usr/bin/sessrotate", {}, every)) == line


@pytest.mark.parametrize("letter", ["\n", "\r"])
def test_a_line_break_is_refused(letter: str) -> None:
    with pytest.raises(RefusedError, match="does not fit"):
        cron.line(Work(f"/a{letter}b/sessrotate", {}, "daily"))
