"""Having the system start `sessrotate run`: what would be written, installing it, removing it.

Rule: what is installed is what was shown, or nothing: where the system cannot be told, the files
are put back as they were. Only files with our mark are replaced or removed, and doing either twice
is the same as once. `remove` also removes what systemd made of our files.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import clients, fs, platforms
from sessrotate.clients.common import real
from sessrotate.errors import RefusedError, StorageError, printable, storage
from sessrotate.job.schedule import cron, launchd, systemd
from sessrotate.job.schedule.work import MARK, NAME, TIMES, Every, Work
from sessrotate.system import inside, user_folders
from sessrotate.system.registered import MACHINE

PLATFORM: Final = platforms.NAME

BOOTED: Final = Path("/run/systemd/system")
"""Exists if systemd runs the machine (sd_booted(3))."""

CARRIED: Final = (*user_folders.CLIENTS, "XDG_CONFIG_HOME", "XDG_STATE_HOME")
"""Variables that say where things are, and that a service would not inherit."""

_SECONDS: Final = 60.0
"""How long to wait for systemctl, launchctl or crontab."""


class Command(Struct, frozen=True):
    """A command to run; `may_fail` if there may be nothing to do."""

    words: tuple[str, ...]
    may_fail: bool = False

    def __str__(self) -> str:
        return shlex.join(self.words)


class Plan(Struct, frozen=True):
    """A schedule: its files, and the commands that tell the system of them.

    `starts` says when, and `debris` is what the system makes of the files, first what tells that it
    starts them. Without files there is only the `line` for cron.
    """

    system: str
    work: Work
    starts: str
    files: tuple[tuple[Path, bytes], ...] = ()
    debris: tuple[Path, ...] = ()
    enable: tuple[Command, ...] = ()
    disable: tuple[Command, ...] = ()
    forget: tuple[Command, ...] = ()

    @property
    def line(self) -> str:
        """The line for cron that does the same."""
        return cron.line(self.work)

    @property
    def is_installed(self) -> bool:
        """Whether all files exist as planned, and the system starts what they say."""
        is_started = all(os.path.lexists(path) for path in self.debris[:1])
        return is_started and all(_content(path) == data for path, data in self.files)

    @property
    def changed(self) -> Iterator[tuple[Path, bytes, bytes]]:
        """The files that are there and not as planned: each with its content, before and after."""
        for path, data in self.files:
            before = _content(path)
            if before is not None and before != data:
                yield path, before, data

    @property
    def is_absent(self) -> bool:
        """Whether none of the files exists."""
        return not any(os.path.lexists(path) for path, _ in self.files)


def plan(every: Every) -> Plan:
    """Return the schedule for this machine.

    Raises RefusedError if it cannot hold a path, WrongUsageError if it needs a home that there is
    not.
    """
    return _planned(_work(every))


def _planned(work: Work) -> Plan:
    made = _SYSTEMS[_system()](work)
    for path, _ in made.files:
        user_folders.check_home(path)
    return made


def plan_removal() -> Plan:
    """Return what there is to remove: files for systemd, even where that does not run any more.

    Of the files, only the names are those that were written.
    """
    work = Work(NAME, {}, "daily", name_of(clients.in_place().files.config_folder()))
    if PLATFORM == "linux" and (units() / systemd.timer(work.name)).is_file():
        return _systemd(work)
    return _planned(work)


def _work(every: Every) -> Work:
    # The system starts it in another folder, so a relative path would name something else. Of
    # XDG_… a relative one counts nowhere: made absolute, it would name other settings for the job.
    named = {name: os.environ[name] for name in CARRIED if _counts(name, os.environ.get(name, ""))}
    carried = {name: str(absolute(path)) for name, path in named.items()}
    config = clients.in_place().files.config_folder()
    if "CLAUDE_CONFIG_DIR" in carried:
        carried["CLAUDE_CONFIG_DIR"] = str(config)
    return Work(user_folders.executable(), carried, every, name_of(config), _spread(config))


def _spread(config: Path) -> int:
    machine = b""
    with suppress(OSError):  # it has none
        machine = MACHINE.read_bytes()
    return int.from_bytes(hashlib.sha256(machine + os.fsencode(real(config))).digest()[:8])


def _counts(name: str, value: str) -> bool:
    return os.path.isabs(value) if name.startswith("XDG_") else bool(value)  # noqa: PTH117 - as set


def absolute(named: str) -> Path:
    """Return the folder that a variable names, by a path that means the same everywhere."""
    return Path(named).absolute()


def name_of(config: Path) -> str:
    """Return what the schedule is called that tidies this folder of the client."""
    config = real(config)
    if config == real(clients.in_place().files.usual_folder()):
        return NAME
    word = re.sub(r"[^A-Za-z0-9_]+", "-", config.name).strip("-")
    digest = hashlib.sha256(os.fsencode(config)).hexdigest()[:6]  # two may have the same name
    return f"{NAME}-{word[:40]}-{digest}"


def _system() -> str:
    if PLATFORM == "darwin":
        return "launchd"
    return "systemd" if PLATFORM == "linux" and BOOTED.is_dir() else "cron"


def units() -> Path:
    """Return the folder of the user's units of systemd."""
    return user_folders.config_home(PLATFORM) / "systemd" / "user"


def agents() -> Path:
    """Return the folder of the user's agents of launchd."""
    return user_folders.home() / "Library" / "LaunchAgents"


def _systemd(work: Work) -> Plan:
    folder, timer = units(), systemd.timer(work.name)
    files = systemd.files(work)
    reload = Command(("systemctl", "--user", "daemon-reload"))
    stop = Command(("systemctl", "--user", "disable", "--now", timer))
    runs = BOOTED.is_dir()
    return Plan(
        "systemd",
        work,
        f"{systemd.TIMES[work.every]}, or later if the machine is off then",
        files=tuple((folder / name, text.encode()) for name, text in files.items()),
        debris=(
            folder / "timers.target.wants" / timer,
            user_folders.data_home(PLATFORM) / "systemd" / "timers" / f"stamp-{timer}",
        ),
        enable=(reload, Command(("systemctl", "--user", "enable", "--now", timer))),
        disable=(stop,) if runs else (),
        forget=(reload,) if runs else (),
    )


def _launchd(work: Work) -> Plan:
    path = agents() / launchd.file(work.name)
    (text,) = launchd.files(work).values()
    domain = f"gui/{os.getuid()}"
    leave = Command(("launchctl", "bootout", f"{domain}/{work.name}"), may_fail=True)
    return Plan(
        "launchd",
        work,
        f"{TIMES[work.every]}, or later if the machine sleeps then",
        files=((path, text.encode()),),
        enable=(leave, Command(("launchctl", "bootstrap", domain, str(path)))),
        disable=(leave,),
    )


_SYSTEMS: Final[dict[str, Callable[[Work], Plan]]] = {
    "systemd": _systemd,
    "launchd": _launchd,
    "cron": lambda work: Plan("cron", work, f"{TIMES[work.every]}, if the machine is on then"),
}


def install(planned: Plan) -> None:
    """Write the files and have the system read them.

    Raises RefusedError if there is only cron, or a file is not ours; StorageError if the system
    does not accept the files, which are as before then.
    """
    if not planned.files:
        raise RefusedError(
            "Neither systemd nor launchd runs on this machine, and nothing was changed: use "
            f"`crontab -e` to add this line:\n  {planned.line}"
        )
    _check_ours(planned)
    before = {path: _content(path) for path, _ in planned.files}
    try:
        with storage("write the schedule"):
            _write(dict(planned.files))
    except StorageError:
        _put_back(planned, before)
        raise
    problem = _tell(planned.enable)
    if problem is None and not planned.is_installed:  # a stand-in that says yes to everything
        problem = f"`{planned.enable[-1]}` reported success, but it starts nothing."
    if problem is not None:
        _put_back(planned, before)
        advice = _again(planned) if None not in before.values() else _anew(planned)
        raise StorageError(f"{problem} {advice}")


def _anew(planned: Plan) -> str:
    """Forget what was tried where nothing was before; return what to say of that."""
    _tell(planned.forget)
    return (
        "Nothing was changed. Run this again in a login session, or use `crontab -e` to add this "
        f"line:\n  {planned.line}"
    )


def _again(planned: Plan) -> str:
    """Have the system read the files from before again; return what to say of that.

    systemd goes on with the old ones even where it cannot be reached. launchd has let go of the old
    agent by now, and starts only what it is given.
    """
    goes_on = bool(planned.forget)  # systemd, with what it has
    is_told = _tell(planned.forget if goes_on else planned.enable) is None
    if goes_on or is_told:
        return "The schedule stays as it was: run this again in a login session."
    told = " and ".join(f"`{command}`" for command in planned.enable if not command.may_fail)
    return (
        "The files are as before, but the system does not start the job any more: run "
        f"{told} in a login session, then run this again."
    )


def remove(planned: Plan) -> None:
    """Remove the files and what was made of them.

    Raises RefusedError for files that are not ours; StorageError if the system could not be told:
    the files are removed even then.
    """
    if planned.is_absent:
        return
    _check_ours(planned)
    problem = _tell(planned.disable)
    with storage("remove the schedule"):
        _remove((*planned.debris, *(path for path, _ in planned.files)))
    problem = problem or _tell(planned.forget)
    if problem is not None:
        told = " and ".join(f"`{command}`" for command in planned.forget or planned.disable)
        raise StorageError(
            f"{problem} The files were removed, but a job started from them may go on until you "
            f"log out: run {told} in a login session."
        )


def _put_back(planned: Plan, before: Mapping[Path, bytes | None]) -> None:
    with storage("put the schedule back as it was"):
        _write(before)
        if None in before.values():
            _remove(planned.debris)


def _write(files: Mapping[Path, bytes | None]) -> None:
    """Write each file as it is to be; None for none."""
    for path, data in files.items():
        if data is None:
            _remove((path,))
        elif _content(path) != data:
            target = Path(os.path.realpath(path))  # a link stays a link: dotfiles often are
            inside.check_owner(target)
            fs.create_folder(target.parent)
            fs.create_file_at_once(target, data)


def _remove(paths: tuple[Path, ...]) -> None:
    for path in paths:
        if os.path.lexists(path):
            fs.remove_files(path.parent, [path.name])
        with suppress(OSError):  # only folders that are empty by now
            fs.remove_folder(path.parent)
            fs.remove_folder(path.parent.parent)


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


def _tell(commands: tuple[Command, ...]) -> str | None:
    """Run commands up to the first that fails; return what to say of that, None if none does."""
    for command in commands:
        name = printable(str(command))
        if shutil.which(command.words[0]) is None:
            return f"`{name}` cannot be run: there is no {command.words[0]}."
        done = run(command.words)
        if done is None:
            return f"`{name}` cannot be run, or does not end."
        if done.returncode != 0 and not command.may_fail:
            message = done.stderr.decode(errors="replace").strip().split("\n")[0]
            return f"`{name}` failed ({done.returncode}: {printable(message)})."
    return None


def run(words: tuple[str, ...]) -> subprocess.CompletedProcess[bytes] | None:
    """Run a command; return what it said, None if it cannot be run or does not end."""
    try:
        return subprocess.run(  # noqa: S603 - our own words, and a path that is one of them
            words, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
