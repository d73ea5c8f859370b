"""Having the system start `sessrotate run`: what would be written, installing it, removing it.

Rule: what is installed is what was shown. Only files with our mark are replaced or removed, and
doing either twice is the same as once. `remove` also removes what systemd made of our files.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate import fs, platforms
from sessrotate.errors import RefusedError, StorageError, printable, storage
from sessrotate.job.schedule import cron, launchd, systemd
from sessrotate.job.schedule.work import MARK, Work
from sessrotate.system import executable, ownership, user_folders

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessrotate.job.schedule.work import Every

PLATFORM: Final = platforms.NAME

BOOTED: Final = Path("/run/systemd/system")
"""Exists if systemd runs the machine (sd_booted(3))."""

CARRIED: Final = (
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_PROJECTS_DIR",
    "CODEX_HOME",
    "CODEX_SESSIONS_DIR",
    "GEMINI_CLI_HOME",
    "GEMINI_SESSIONS_DIR",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
)
"""Variables that say where things are, and that a service would not inherit."""

_SECONDS: Final = 60.0
"""How long to wait for systemctl or launchctl."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command to run; `may_fail` if there may be nothing to do."""

    words: tuple[str, ...]
    may_fail: bool = False

    def __str__(self) -> str:
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule: its files, and the commands that tell the system of them.

    `debris` is what the system makes of the files. Without files there is only the `line` for cron.
    """

    system: str
    files: tuple[tuple[Path, bytes], ...] = ()
    debris: tuple[Path, ...] = ()
    enable: tuple[Command, ...] = ()
    disable: tuple[Command, ...] = ()
    forget: tuple[Command, ...] = ()
    line: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether all files exist as planned."""
        return all(_content(path) == data for path, data in self.files)

    @property
    def is_absent(self) -> bool:
        """Whether none of the files exists."""
        return not any(os.path.lexists(path) for path, _ in self.files)


def plan(every: Every) -> Plan:
    """Return the schedule for this machine; raise RefusedError if it cannot hold a path."""
    return _SYSTEMS[_system()](_work(every))


def cron_line(every: Every) -> str:
    """Return the line for cron, whatever this machine has; raise RefusedError as `plan` does."""
    return cron.line(_work(every))


def _work(every: Every) -> Work:
    carried = {name: os.environ[name] for name in CARRIED if os.environ.get(name)}
    return Work(executable.path(), carried, every)


def _system() -> str:
    if PLATFORM == "darwin":
        return "launchd"
    has_systemd = shutil.which("systemctl") is not None or BOOTED.is_dir()
    return "systemd" if PLATFORM == "linux" and has_systemd else "cron"


def _units() -> Path:
    return user_folders.config_home(PLATFORM) / "systemd" / "user"


def _agent() -> Path:
    return Path.home() / "Library" / "LaunchAgents" / launchd.FILE


def _systemd(work: Work) -> Plan:
    folder = _units()
    files = systemd.files(work)
    reload = Command(("systemctl", "--user", "daemon-reload"))
    return Plan(
        "systemd",
        files=tuple((folder / name, text.encode()) for name, text in files.items()),
        debris=(
            folder / "timers.target.wants" / systemd.TIMER,
            user_folders.data_home(PLATFORM) / "systemd" / "timers" / f"stamp-{systemd.TIMER}",
        ),
        enable=(reload, Command(("systemctl", "--user", "enable", "--now", systemd.TIMER))),
        disable=(Command(("systemctl", "--user", "disable", "--now", systemd.TIMER)),),
        forget=(reload,),
    )


def _launchd(work: Work) -> Plan:
    path = _agent()
    (text,) = launchd.files(work).values()
    domain = f"gui/{os.getuid()}"
    leave = Command(("launchctl", "bootout", f"{domain}/{launchd.LABEL}"), may_fail=True)
    return Plan(
        "launchd",
        files=((path, text.encode()),),
        enable=(leave, Command(("launchctl", "bootstrap", domain, str(path)))),
        disable=(leave,),
    )


_SYSTEMS: Final[dict[str, Callable[[Work], Plan]]] = {
    "systemd": _systemd,
    "launchd": _launchd,
    "cron": lambda work: Plan("cron", line=cron.line(work)),
}


def found() -> Path | None:
    """Return the file of an installed schedule; None if none is found."""
    return next((path for path in (_units() / systemd.TIMER, _agent()) if path.is_file()), None)


def unfinished() -> str | None:
    """Return what to say of a schedule that was written and that nothing starts; None if none.

    Only systemd leaves a sign of what it starts, in a folder beside the files.
    """
    timer = _units() / systemd.TIMER
    wanted = timer.parent / "timers.target.wants" / timer.name
    if not timer.is_file() or os.path.lexists(wanted):
        return None
    return (
        f"{printable(str(timer), 1000)} was written, but systemd does not start it: run "
        "`sessrotate schedule install` again in a login session."
    )


def install(planned: Plan) -> tuple[Command, ...]:
    """Write the files and have the system read them; return the commands left to a person.

    Raises RefusedError if there is only cron, or a file is not ours; StorageError if the system
    does not accept the files.
    """
    if not planned.files:
        raise RefusedError(
            "This system has neither systemd nor launchd: use `crontab -e` to add the line that "
            "`sessrotate schedule show` prints."
        )
    _check_ours(planned)
    with storage("write the schedule"):
        for path, data in planned.files:
            if _content(path) != data:
                ownership.check(path)
                fs.create_folder(path.parent)
                fs.create_file_at_once(path, data)
    return _run_all(planned.enable)


def remove(planned: Plan) -> tuple[Command, ...]:
    """Remove the files and what was made of them; return the commands left to a person.

    Raises RefusedError for files that are not ours, StorageError if the system reports an error;
    the files are removed even then.
    """
    if planned.is_absent:
        return ()
    _check_ours(planned)
    try:
        left = _run_all(planned.disable)
    finally:
        with storage("remove the schedule"):
            for path in (*planned.debris, *(path for path, _ in planned.files)):
                if os.path.lexists(path):
                    fs.remove_files(path.parent, [path.name])
                with suppress(OSError):  # only folders that are empty by now
                    fs.remove_folder(path.parent)
                    fs.remove_folder(path.parent.parent)
    return left + _run_all(planned.forget)


def _check_ours(planned: Plan) -> None:
    for path, _ in planned.files:
        if os.path.lexists(path) and MARK.encode() not in (_content(path) or b""):
            raise RefusedError(
                f"{printable(str(path), 1000)} was not written by sessrotate, and is left alone: "
                "move it away first."
            )


def _content(path: Path) -> bytes | None:
    with storage("read the schedule"):
        return path.read_bytes() if path.is_file() else None


def _run_all(commands: tuple[Command, ...]) -> tuple[Command, ...]:
    """Run commands; return them instead if their program does not exist."""
    for command in commands:
        if shutil.which(command.words[0]) is None:
            return commands
        message = _run(command)
        if message is not None and not command.may_fail:
            raise StorageError(
                f"The files are in place, but `{printable(str(command))}` failed "
                f"({printable(message)}): run it again in a login session."
            )
    return ()


def _run(command: Command) -> str | None:
    """Run a command; return its error message if it failed."""
    try:
        done = subprocess.run(  # noqa: S603 - our own words, and a path that is one of them
            command.words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    message = done.stderr.decode(errors="replace").strip().split("\n")[0]
    return None if done.returncode == 0 else f"{done.returncode}: {message}"
