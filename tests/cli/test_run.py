"""`run`: what people, programs and monitors get of it; real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Final

import pytest

from sessrotate.archive import place
from sessrotate.job import steps
from sessrotate.system import locks, user_folders
from support import command_line
from support.command_line import (
    ENVIRONMENT,
    ID,
    assert_one_sentence,
    called,
    names_in,
    patched,
    piped,
    write,
)
from support.homes import Home, snapshot
from support.limits import UNPRIVILEGED, limited

DATA: Final = command_line.session(boundaries=4)
SETTINGS: Final = b"""
rotate.min_gain = 0
prune.keep_last = 2
trash.grace = "0"
"""


@pytest.fixture
def home(home: Home) -> Home:
    write(user_folders.config_file(), SETTINGS)
    return home


def test_a_run_ends_with_one_line_and_0(home: Home) -> None:
    ended = called("run")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("\n") == 1
    assert ended.out.startswith("Rotated 1 session (")
    assert ", pruned 1 session (" in ended.out
    assert ", emptied the trash of 1 session (" in ended.out
    assert home.archived() == {f"{ID}.2.jsonl.zst", f"{ID}.3.jsonl.zst", "manifest.json"}
    (end,) = (
        line for line in user_folders.log_file().read_text().splitlines() if '"session"' not in line
    )
    assert json.loads(end)["code"] == 0
    ended = called("run")
    assert (ended.code, ended.out, ended.err) == (0, "Nothing to do.\n", "")
    assert user_folders.log_file().read_bytes().count(b'"seconds"') == 2


@pytest.mark.usefixtures("home")
def test_it_says_that_it_passes_over_what_was_restored() -> None:
    assert called("rotate", ID).code == 0
    assert called("restore", ID).code == 0
    said = called("run")
    assert said.code == 0
    assert said.out.endswith("; 1 left as it is (`sessrotate run --dry-run` says why).\n")
    assert "You restored this session" in called("run", "--dry-run").out


def test_a_dry_run_shows_all_of_it_and_changes_nothing(home: Home) -> None:
    home.rotate()
    before = snapshot(home.config.parent)
    ended = called("run", "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    assert "xdg-config/sessrotate/config.toml" in ended.out
    assert "nothing to do" in ended.out
    assert "no keep rule applies" in ended.out
    assert "In each session, keep the last 2 segments." in ended.out
    assert ended.out.splitlines()[-1].startswith("Would prune 1 session (")
    assert snapshot(home.config.parent) == before


@pytest.mark.usefixtures("home")
def test_a_dry_run_without_rules_says_what_is_not_configured(tmp_path: Path) -> None:
    other = write(tmp_path / "o.toml", b"rotate.min_gain = false\n")
    ended = called("run", "-n", "--config", other)
    told, last = ended.out.splitlines()[1:]
    assert told.startswith("Not configured: rotate, ")
    assert last == "Would change nothing."


def test_programs_get_one_document(home: Home) -> None:
    before = snapshot(home.config.parent)
    would = called("run", "--dry-run", "--json").document()
    assert snapshot(home.config.parent) == before
    done = called("run", "--json").document()
    assert (would["dry_run"], done["dry_run"]) == (True, False)
    assert done["code"] == 0
    assert done["config"].endswith("config.toml")
    assert [step["name"] for step in done["steps"]] == [step.name for step in steps.STEPS]
    rotated, planned = (
        next(step for step in each["steps"] if step["name"] == "rotate") for each in (done, would)
    )
    (session,) = rotated["sessions"]
    assert (session["session"], session["result"]) == (ID, "done")
    assert session["bytes"] == rotated["bytes"] == planned["bytes"] > 0
    assert [entry["keep"] for entry in done["prune"]] == [False, False, True, True]


def test_a_failure_is_one_sentence_and_its_code(home: Home) -> None:
    home.live.with_suffix(".copy").hardlink_to(home.live)
    ended = called("run")
    assert ended.code == 77
    assert ended.out == "Nothing to do; 1 failed.\n"
    assert ended.err.startswith(f"sessrotate: rotate {ID}: ")
    assert ended.err.count("\n") == 1
    document = called("run", "--json").document()
    assert document["code"] == 77
    codes = [session["code"] for step in document["steps"] for session in step["sessions"]]
    assert codes == [77]


def test_two_at_once_are_one_and_a_75(home: Home) -> None:
    with locks.only_run(place.run_lock()):
        ended = called("run")
    assert_one_sentence(ended, 75)
    assert "is in progress: wait" in ended.err
    assert not user_folders.log_file().exists()
    assert home.live.read_bytes() == DATA


def test_the_lock_is_held_from_the_first_step_to_the_last(home: Home) -> None:
    go = home.config.parent / "go"
    os.mkfifo(go)
    program = patched(
        "from sessrotate.in_place import fleet\n"
        "real = fleet.sessions\n"
        "def waiting(*given):\n"
        f"    open({str(go)!r}).read()\n"
        "    return real(*given)\n"
        "fleet.sessions = waiting"
    )
    first = subprocess.Popen(
        [*program, "run"], env={**ENVIRONMENT, **home.env}, stdout=subprocess.PIPE
    )
    try:
        with go.open("w"):  # returns when the first one waits
            second = called("run")
        assert_one_sentence(second, 75)
        assert "is in progress: wait" in second.err
        out, _ = first.communicate(timeout=command_line.SECONDS)
    finally:
        first.kill()
        first.wait()
    assert first.returncode == 0
    assert out.startswith(b"Rotated 1 session")


def test_a_run_that_is_ended_by_the_system_is_logged_and_the_next_one_goes_on(home: Home) -> None:
    program = patched(
        "import os, signal\n"
        "from sessrotate.in_place import seal\n"
        "seal.finish = lambda *_: os.kill(os.getpid(), signal.SIGTERM)"
    )
    ended = piped("run", env=home.env, program=program)
    assert ended.code == 130
    (end,) = map(json.loads, user_folders.log_file().read_bytes().splitlines())
    assert (end["code"], [*end["steps"]]) == (130, ["recover", "heal"])  # where it was stopped
    ended = called("run")
    assert ended.code == 0
    assert ended.out.startswith("Recovered 1 session")
    assert {problem.kind for problem in home.problems()} == {"pruned"}


def test_a_run_that_was_killed_is_in_nobodys_way(home: Home) -> None:
    program = patched(
        "import os, signal\n"
        "from sessrotate.in_place import fleet\n"
        "fleet.sessions = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert piped("run", env=home.env, program=program).code == -signal.SIGKILL
    assert called("run").code == 0
    there = {*names_in(place.run_lock().parent)}
    assert there == {f"{ID}.lock", "run"}


def test_a_log_that_cannot_be_written_stops_no_run(home: Home) -> None:
    write(user_folders.log_file(), b"").chmod(0o400)
    ended = piped("run", env=home.env, program=UNPRIVILEGED)
    assert ended.code == 0
    assert ended.out.startswith("Rotated 1 session")
    assert ended.err.startswith("sessrotate: Cannot write the log of runs: Permission denied")


def test_a_full_disk_is_74_and_all_is_as_before(home: Home) -> None:
    ended = piped("run", env=home.env, program=limited("RLIMIT_FSIZE", 200))
    assert ended.code == 74
    assert home.live.read_bytes() == DATA
    assert called("run").code == 0


def test_doctor_tells_of_the_last_run(home: Home) -> None:
    assert called("doctor", "--json").document()["settings"]["last run"] == "never"
    home.live.with_suffix(".copy").hardlink_to(home.live)
    assert called("run").code == 77
    assert (
        called("doctor", "--json")
        .document()["settings"]["last run"]
        .endswith(", exit code 77: `sessrotate run` says what failed")
    )
