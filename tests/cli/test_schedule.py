"""`schedule`: what is shown is what is installed, twice is once, and removing leaves nothing.

The system's own tools are stand-ins that note how they were called, and do what the real ones do.
"""

from __future__ import annotations

import json
import plistlib
import shlex
from pathlib import Path
from typing import Final

import pytest

from sessrotate.job import schedule
from sessrotate.job.schedule import cron
from sessrotate.job.schedule.installed import installed, others
from sessrotate.job.schedule.work import Work
from support import homes
from support.command_line import (
    COMMAND,
    Ended,
    assert_one_sentence,
    called,
    names_in,
    piped,
    write,
)
from support.homes import Home, snapshot

SYSTEMCTL: Final = """#!/bin/sh
echo "systemctl $*" >> "$HOME/calls"
wants="$XDG_CONFIG_HOME/systemd/user/timers.target.wants"
case "$2" in
enable) [ -f "$XDG_CONFIG_HOME/systemd/user/$4" ] || exit 1
  /bin/mkdir -p "$wants" "$XDG_DATA_HOME/systemd/timers" && /bin/ln -sf "../$4" "$wants/$4"
  : > "$XDG_DATA_HOME/systemd/timers/stamp-$4" ;;
disable) /bin/rm -f "$wants/$4" ;;
esac
"""
LAUNCHCTL: Final = """#!/bin/sh
echo "launchctl $*" >> "$HOME/calls"
case "$1" in
bootout) [ -f "$HOME/loaded" ] || exit 3; /bin/rm "$HOME/loaded" ;;
bootstrap) [ ! -f "$HOME/loaded" ] || exit 5; : > "$HOME/loaded" ;;
esac
"""
DARWIN: Final = {"PLATFORM": "darwin"}
NO_SYSTEMD: Final = {"BOOTED": Path("/nowhere")}
BOOTED: Final = {"BOOTED": Path("/")}
"""What `schedule` is told of the system: macOS, or whether systemd runs, whatever tools it has."""


class Machine:
    """A user's folders of their own, and stand-ins for the system's tools."""

    def __init__(self, folder: Path, home: Home) -> None:
        self.home = folder / "home"
        self.bin = folder / "bin"
        self.home.mkdir(exist_ok=True)
        self.bin.mkdir()
        self.env = {**home.env, "HOME": str(self.home), "PATH": str(self.bin)}
        self.xdg = Path(self.env["XDG_CONFIG_HOME"])
        self.units = self.xdg / "systemd" / "user"

    def tool(self, name: str, text: str) -> None:
        write(self.bin / name, text.encode()).chmod(0o700)

    def run(self, *arguments: str, **system: object) -> Ended:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in system.items():
                patch.setattr(schedule, name, value)
            return piped("schedule", *arguments, env=self.env)

    def files(self) -> dict[Path, bytes]:
        folders = (self.xdg, Path(self.env["XDG_DATA_HOME"]))
        found = (path for folder in folders for path in folder.rglob("*"))
        return {path: path.read_bytes() for path in found if path.is_file()}

    def doctor(self) -> Ended:
        return piped("doctor", "--json", env=self.env)

    def calls(self) -> list[str]:
        path = self.home / "calls"
        found = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return found


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path, homes.home(tmp_path / "home", monkeypatch))
    monkeypatch.setenv("HOME", str(made.home))
    return made


@pytest.fixture
def linux(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine.tool("systemctl", SYSTEMCTL)
    monkeypatch.setattr(schedule, "BOOTED", Path("/"))
    return machine


@pytest.fixture
def mac(machine: Machine) -> Machine:
    machine.tool("launchctl", LAUNCHCTL)
    return machine


ENABLED: Final = [
    "systemctl --user daemon-reload",
    "systemctl --user enable --now sessrotate.timer",
]
DISABLED: Final = [
    "systemctl --user disable --now sessrotate.timer",
    "systemctl --user daemon-reload",
]


def test_what_is_shown_is_what_is_installed_and_showing_changes_nothing(linux: Machine) -> None:
    before = snapshot(linux.home.parent)
    shown = linux.run("show", "--every", "hourly")
    assert (shown.code, shown.err) == (0, "")
    assert snapshot(linux.home.parent) == before
    assert linux.calls() == []
    assert linux.run("install", "--every", "hourly").code == 0
    for name in ("sessrotate.service", "sessrotate.timer"):
        path = linux.units / name
        assert f"# {path} (not installed)\n{path.read_text()}" in shown.out
        assert f"# {path} (as installed)" in linux.run("show", "--every", "hourly").out
    assert linux.calls() == ENABLED
    assert [f"$ {line}" for line in ENABLED] == shown.out.splitlines()[-2:]
    program = f'"{COMMAND}"' if " " in COMMAND else COMMAND
    assert f"ExecStart={program} run\n" in shown.out
    folder = f"CLAUDE_CONFIG_DIR={linux.env['CLAUDE_CONFIG_DIR']}"
    folder = f'"{folder}"' if " " in folder else folder
    assert f"Environment={folder}\n" in shown.out


def test_twice_is_once_and_another_time_changes_it(linux: Machine) -> None:
    first = linux.run("install")
    assert first.out.startswith("`sessrotate run` now starts every night between 0:00 and 1:00")
    before = snapshot(linux.xdg)
    assert linux.run("install").out.startswith("Already installed: ")
    after = snapshot(linux.xdg)
    assert {key: value for key, value in after.items() if "wants" not in key} == {
        key: value for key, value in before.items() if "wants" not in key
    }
    assert linux.run("install", "--every", "weekly").out.startswith(
        "`sessrotate run` now starts on M"
    )
    assert linux.doctor().document()["findings"] == []
    assert "OnCalendar=Mon 0" in (linux.units / "sessrotate.timer").read_text()
    assert linux.calls() == ENABLED * 3


def test_removing_leaves_nothing(linux: Machine) -> None:
    other = write(linux.xdg / "other" / "settings", b"x")
    assert linux.run("install", "--every", "weekly").code == 0
    assert (linux.units / "timers.target.wants" / "sessrotate.timer").is_symlink()
    linux.calls()
    ended = linux.run("remove")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("Removed ")
    assert linux.calls() == DISABLED
    assert names_in(linux.xdg) == ["other"]
    assert other.read_bytes() == b"x"
    assert not any(path.is_file() for path in Path(linux.env["XDG_DATA_HOME"]).rglob("*"))
    assert linux.run("remove").out == "Nothing to remove.\n"
    assert linux.calls() == []


def test_units_of_others_stay(linux: Machine) -> None:
    write(linux.units / "other.timer", b"[Timer]\n")
    assert linux.run("install").code == 0
    assert linux.run("remove").code == 0
    assert names_in(linux.units) == ["other.timer"]


@pytest.mark.parametrize("name", ["sessrotate.service", "sessrotate.timer"])
@pytest.mark.parametrize("command", ["install", "remove"])
def test_a_file_of_that_name_that_is_not_ours_is_left_alone(
    linux: Machine, name: str, command: str
) -> None:
    write(linux.units / name, b"[Unit]\nDescription=mine\n")
    before = snapshot(linux.xdg)
    ended = linux.run(command)
    assert_one_sentence(ended, 77)
    assert name in ended.err
    assert snapshot(linux.xdg) == before
    assert linux.calls() == []


def test_a_unit_that_is_masked_is_left_alone(linux: Machine) -> None:
    linux.units.mkdir(parents=True)
    (linux.units / "sessrotate.timer").symlink_to("/dev/null")
    assert_one_sentence(linux.run("install"), 77)


def test_machines_and_folders_start_at_times_of_their_own_that_stay(
    linux: Machine, tmp_path: Path
) -> None:
    def starts(machine: str, folder: str = "one") -> str:
        (tmp_path / folder).mkdir(exist_ok=True)
        linux.env["CLAUDE_CONFIG_DIR"] = str(tmp_path / folder)
        told = write(tmp_path / "machine-id", machine.encode())
        shown = linux.run("show", MACHINE=told).out
        return next(line for line in shown.splitlines() if line.startswith("OnCalendar="))

    assert starts("a") == starts("a")
    assert len({starts("a"), starts("b"), starts("c"), starts("a", "two")}) > 1
    linux.env["CLAUDE_CONFIG_DIR"] = str(tmp_path / "one")
    assert linux.run("show", MACHINE=tmp_path / "nowhere").code == 0


def test_a_unit_that_is_a_link_stays_one(linux: Machine) -> None:
    assert linux.run("install").code == 0
    unit = linux.units / "sessrotate.timer"
    kept = linux.home / "dotfiles.timer"
    unit.rename(kept)
    unit.symlink_to(kept)
    assert linux.run("install", "--every", "weekly").code == 0
    assert unit.is_symlink()
    assert "OnCalendar=Mon 0" in kept.read_text()


BROKEN: Final = '#!/bin/sh\necho "Failed to connect to bus: \x1b[31mNo medium found" >&2\nexit 1\n'


@pytest.mark.parametrize("tool", [None, BROKEN, SYSTEMCTL.replace("[ -f", "[ -d")])
@pytest.mark.parametrize("was_there", [False, True])
def test_a_system_that_cannot_be_told_leaves_everything_as_it_was(
    linux: Machine, tool: str | None, was_there: bool
) -> None:
    """There is no systemctl; it does not reach its manager (a container, sudo); it refuses."""
    if was_there:
        assert linux.run("install", "--every", "weekly").code == 0
    before = linux.files()
    (linux.bin / "systemctl").unlink()
    if tool is not None:
        linux.tool("systemctl", tool)
    ended = linux.run("install")
    assert (ended.code, ended.out) == (74, "")
    assert linux.files() == before
    assert linux.units.exists() == was_there
    if was_there:
        assert_one_sentence(ended, 74)
        assert "The schedule stays as it was: run this again in a login session." in ended.err
        return
    said, line = ended.err.splitlines()
    assert said.endswith(
        "Nothing was changed. Run this again in a login session, or use `crontab -e` to add this "
        "line:"
    )
    assert line.strip() == schedule_line(linux)


def test_a_tool_that_does_nothing_and_says_so_to_nobody_is_no_schedule(linux: Machine) -> None:
    linux.tool("systemctl", "#!/bin/sh\nexit 0\n")
    ended = linux.run("install")
    assert (ended.code, ended.out) == (74, "")
    assert "reported success, but it starts nothing. Nothing was changed." in ended.err
    assert schedule_line(linux) in ended.err
    assert not linux.units.exists()


def schedule_line(machine: Machine) -> str:
    variables = {
        name: machine.env[name]
        for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
    }
    return cron.line(Work(COMMAND, variables, "daily"))


def test_what_is_removed_and_cannot_be_told_is_gone_and_said(linux: Machine) -> None:
    assert linux.run("install").code == 0
    linux.tool("systemctl", BROKEN)
    ended = linux.run("remove")
    assert_one_sentence(ended, 74)
    assert "`systemctl --user disable --now sessrotate.timer` failed (1: Failed to" in ended.err
    assert "The files were removed, but" in ended.err
    assert "run `systemctl --user daemon-reload` in a login session" in ended.err
    assert not linux.units.exists()
    assert linux.doctor().document()["findings"] == []


def test_a_timer_where_systemd_does_not_run_is_a_finding_and_can_be_removed(linux: Machine) -> None:
    """As in a container, or a home that several machines share."""
    assert linux.run("install").code == 0
    linux.calls()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "BOOTED", Path("/nowhere"))
        (finding,) = linux.doctor().document()["findings"]
    assert (finding["kind"], finding["path"]) == ("schedule", str(linux.units / "sessrotate.timer"))
    assert "systemd does not run on this machine" in finding["detail"]
    ended = linux.run("remove", **NO_SYSTEMD)
    assert (ended.code, ended.err) == (0, "")
    assert linux.calls() == []
    assert not linux.units.exists()


@pytest.mark.parametrize(
    ("line", "is_ours"),
    [
        ("17 3 * * * {line}", True),
        ("* * * * * cd / && '/opt/a b/sessrotate' run >>log 2>&1", True),
        ("@daily sessrotate run;true", True),
        ("# 17 3 * * * {line}", False),
        ("17 3 * * * /usr/bin/sessrotate runaway", False),
        ("17 3 * * * mysessrotate run", False),
        ("17 3 * * * sessrotate search run", False),
        ("", False),
    ],
)
def test_a_crontab_that_calls_us_is_known(machine: Machine, line: str, is_ours: bool) -> None:
    line = line.format(line=schedule_line(machine))
    machine.tool("crontab", f"#!/bin/sh\nprintf '%s\\n' '# mine' {shlex.quote(line)}\n")
    found = machine.doctor().document()["settings"]["schedule"]
    assert found == (f"crontab: {line}" if is_ours else "none found")
    ended = machine.run("remove", **NO_SYSTEMD)
    assert (ended.code, ended.out) == (0, "Nothing to remove.\n")
    assert (line in ended.err) == (is_ours or not line)


@pytest.mark.parametrize("script", ["exit 1", "echo no crontab for somebody >&2; exit 1"])
def test_without_a_crontab_there_is_none(machine: Machine, script: str) -> None:
    machine.tool("crontab", f"#!/bin/sh\n{script}\n")
    assert machine.doctor().document()["settings"]["schedule"] == "none found"


@pytest.mark.parametrize(
    ("system", "every", "told"),
    [
        (BOOTED, "daily", "every night between 0:00 and 1:00, or later if the machine is off then"),
        (BOOTED, "hourly", "in the first 10 minutes of every hour"),
        (BOOTED, "weekly", "on Mondays between 0:00 and 6:00"),
        (NO_SYSTEMD, "daily", "every day at 3:17, if the machine is on then"),
        (NO_SYSTEMD, "weekly", "on Sundays at 3:17"),
        (DARWIN, "hourly", "17 minutes past every hour, or later if the machine sleeps then"),
    ],
)
def test_when_it_starts_is_said_in_words(
    machine: Machine, system: dict[str, object], every: str, told: str
) -> None:
    shown = machine.run("show", "--every", every, **system)
    assert shown.out.startswith(f"# `sessrotate run` starts {told}")


def test_where_there_is_no_such_system_the_line_for_cron_is_shown(machine: Machine) -> None:
    ended = machine.run("show", **NO_SYSTEMD)
    assert ended.code == 0
    line = schedule_line(machine)
    assert ended.out.splitlines()[2] == line
    ended = machine.run("install", **NO_SYSTEMD)
    assert (ended.code, ended.out) == (77, "")
    assert "Neither systemd nor launchd runs on this machine" in ended.err
    assert ended.err.splitlines()[1:] == [f"  {line}"]
    assert machine.run("remove", **NO_SYSTEMD).out == "Nothing to remove.\n"
    assert not machine.xdg.exists()


def test_on_macos_it_is_an_agent(mac: Machine) -> None:
    path = mac.home / "Library" / "LaunchAgents" / "sessrotate.plist"
    shown = mac.run("show", **DARWIN)
    assert not path.exists()
    assert mac.run("install", **DARWIN).code == 0
    assert path.read_text() in shown.out
    assert plistlib.loads(path.read_bytes())["ProgramArguments"] == [COMMAND, "run"]
    calls = mac.calls()
    assert [call.split()[1] for call in calls] == ["bootout", "bootstrap"]
    assert calls[1].endswith(str(path))
    before = snapshot(mac.home / "Library")
    assert mac.run("install", **DARWIN).out.startswith("Already installed")
    assert snapshot(mac.home / "Library") == before
    assert mac.run("remove", **DARWIN).code == 0
    assert not (mac.home / "loaded").exists()
    assert not path.exists()
    assert not mac.xdg.exists()


@pytest.mark.parametrize("refuses", ["weekly", "daily"])
def test_an_agent_that_macos_does_not_take_leaves_the_old_one_loaded_or_says_so(
    mac: Machine, refuses: str
) -> None:
    path = mac.home / "Library" / "LaunchAgents" / "sessrotate.plist"
    assert mac.run("install", "--every", "daily", **DARWIN).code == 0
    old = path.read_bytes()
    # It refuses what is new alone, or everything.
    is_new = "grep -q Weekday" if refuses == "weekly" else "true"
    refusal = f'bootstrap) if PATH=/usr/bin:/bin {is_new} "$3"; then exit 5; fi; '
    mac.tool("launchctl", LAUNCHCTL.replace("bootstrap) ", refusal))
    ended = mac.run("install", "--every", "weekly", **DARWIN)
    assert ended.code == 74
    assert path.read_bytes() == old
    assert (mac.home / "loaded").exists() == (refuses == "weekly")
    assert ("The schedule stays as it was" in ended.err) == (refuses == "weekly")
    assert ("run `launchctl bootstrap" in ended.err) == (refuses == "daily")
    assert "crontab" not in ended.err


def test_doctor_says_where_the_schedule_is(linux: Machine) -> None:
    def said() -> object:
        return called("doctor", "--json").document()["settings"]["schedule"]

    assert said() == "none found"
    assert linux.run("install").code == 0
    assert said() == str(linux.units / "sessrotate.timer")
    assert linux.run("remove").code == 0
    assert said() == "none found"


TOO_LONG: Final = "#!/bin/sh\n" + 3 * "'" + 'exec\' "/gone/python" "$0"\n'
"""What installers write where the path of the interpreter is too long for the first line."""


@pytest.mark.parametrize("script", ["#!/gone/python\n", TOO_LONG])
def test_a_schedule_or_a_hook_whose_program_cannot_be_started_is_a_finding(
    linux: Machine, script: str, tmp_path: Path
) -> None:
    program = write(tmp_path / "tool" / "sessrotate", b"#!/bin/sh\n")
    program.chmod(0o755)
    assert linux.run("install").code == 0
    service = linux.units / "sessrotate.service"
    service.write_text(service.read_text().replace(COMMAND, str(program)))
    settings = Path(linux.env["CLAUDE_CONFIG_DIR"]) / "settings.json"
    settings.write_text(json.dumps({"hooks": hooks(f"{program} hook --min-gain 1M")}))
    assert linux.doctor().document()["findings"] == []
    for spoil in (lambda: program.write_text(script), program.unlink):
        spoil()
        found = linux.doctor().document()["findings"]
        assert [each["kind"] for each in found] == ["schedule", "settings"]
        assert all(str(program) in each["detail"] for each in found)


def hooks(line: str) -> dict[str, object]:
    group = {"hooks": [{"type": "command", "command": line}]}
    return {"SessionStart": [{"matcher": "compact", **group}], "SessionEnd": [group]}


@pytest.mark.parametrize(("every", "days"), [("hourly", 0.2), ("daily", 3), ("weekly", 15)])
def test_a_schedule_that_nothing_starts_any_more_is_a_finding(
    linux: Machine, every: str, days: float
) -> None:
    assert linux.run("install", "--every", every).code == 0
    timer = linux.units / "sessrotate.timer"
    assert linux.doctor().code == 0
    homes.unused_for(timer, days)
    (finding,) = linux.doctor().document()["findings"]
    assert finding["kind"] == "schedule"
    assert "no run has begun for" in finding["detail"]
    assert "systemctl --user status sessrotate.timer" in finding["detail"]
    assert piped("run", env=linux.env).code == 0  # as the system does, without a terminal
    assert linux.doctor().code == 0


def test_a_crontab_for_another_folder_of_the_client_is_not_this_ones(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "0 3 * * * CLAUDE_CONFIG_DIR=~/.claude-work /opt/bin/sessrotate run"
    machine.tool("crontab", f"#!/bin/sh\necho '{line}'\n")
    monkeypatch.setenv("PATH", machine.env["PATH"])
    assert installed() is None
    assert others() == [f"crontab: {line}"]
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(machine.home / ".claude-work"))
    found = installed()
    assert found is not None
    assert (found.program, found.line) == ("/opt/bin/sessrotate", line)
    assert others() == []


def test_a_disk_that_is_full_is_an_error(linux: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in linux.env.items():
        monkeypatch.setenv(name, value)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sessrotate.fs.create_file_at_once", full)
    assert_one_sentence(called("schedule", "install"), 74)
    assert installed() is None
    assert linux.calls() == []
