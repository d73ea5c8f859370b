"""The schedule that is there for the client's folder: where, what it starts, how often. Only reads.

Promise: a schedule of another folder of the client is never taken for this one's.

Rule: what somebody else has written (a line of a crontab, a changed unit) is understood as far as
it is written as we do; the rest is unknown, and never a fault.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import clients
from sessrotate.clients.common import is_file, real
from sessrotate.errors import printable
from sessrotate.job import schedule
from sessrotate.job.schedule import cron, launchd, systemd
from sessrotate.job.schedule.work import MARK, NAME, PERIODS, Every
from sessrotate.system import user_folders

_CALL: Final = re.compile(r"""(?:^|[\s/'"])sessrotate['"]?\s+run(?=$|[\s;&|>])""")
"""A command of a crontab that is our job."""

_FOLDER: Final = "CLAUDE_CONFIG_DIR"


class Installed(Struct, frozen=True):
    """A schedule: where it is, and when it was made, in seconds since 1970.

    `line` is that of a crontab, None for a file. `program` and `every` are None where that cannot
    be told, and so is `since`.
    """

    where: str
    program: str | None
    every: Every | None
    since: float | None = None
    line: str | None = None

    @property
    def period(self) -> float:
        """The seconds between two starts; the longest that we know where that cannot be told."""
        return PERIODS[self.every or "weekly"]


def installed() -> Installed | None:
    """Return the schedule of the client's folder, None if there is none."""
    name = schedule.name_of(clients.in_place().files.config_folder())
    timer, agent = schedule.units() / systemd.timer(name), schedule.agents() / launchd.file(name)
    if is_file(timer):
        service = _text(timer.with_name(systemd.service(name)))
        program, every = systemd.program(service), systemd.every(_text(timer))
        return Installed(str(timer), program, every, timer.stat().st_mtime)
    if is_file(agent):
        program, every = launchd.told(agent.read_bytes())
        return Installed(str(agent), program, every, agent.stat().st_mtime)
    return in_crontab()


def in_crontab() -> Installed | None:
    """Return the line of the user's crontab for the client's folder, None if there is none."""
    return next((found for folder, found in _in_crontab() if folder == _here()), None)


def others() -> list[str]:
    """Return where the schedules of other folders of the client are."""
    name = schedule.name_of(clients.in_place().files.config_folder())
    ours = {systemd.timer(name), launchd.file(name)}
    files = [*schedule.units().glob(f"{NAME}*.timer"), *schedule.agents().glob(f"{NAME}*.plist")]
    there = [str(path) for path in sorted(files) if path.name not in ours and MARK in _text(path)]
    return there + [found.where for folder, found in _in_crontab() if folder != _here()]


def problem(found: Installed, last: float | None, now: float) -> str | None:
    """Return why a schedule does not do its work, None if it seems to.

    `last` is when the last run began, None if there was none; both are in seconds since 1970.
    """
    said = _unfinished(Path(found.where)) if found.line is None else None
    if said is not None:
        return said
    name = printable(found.where, 1000)
    if found.program is not None and not user_folders.can_start(found.program):
        how = (
            "`sessrotate schedule show` prints the line to put in its place"
            if found.line
            else "`sessrotate schedule install` rewrites it"
        )
        program = printable(found.program, 1000)
        return f"{name} starts {program}, which can no longer be started: {how}."
    newest = max(last or 0.0, found.since or 0.0)
    late = now - newest
    if newest and late > 2 * found.period:
        return (
            f"{name} should start `sessrotate run` every {found.period / 3600:,.0f} hours, but "
            f"no run has begun for {late / 3600:,.0f}: see whether the system starts it "
            f"({_shown(found)}), and run `sessrotate run` by hand to see whether it works."
        )
    return None


def _shown(found: Installed) -> str:
    """Return the command that shows what the system does with a schedule."""
    if found.line is not None:
        return "`crontab -l`, and the log of cron"
    name = Path(found.where).stem
    if found.where.endswith(".plist"):
        return f"`launchctl print gui/{os.getuid()}/{name}`"
    return f"`systemctl --user status {name}.timer`"


def _unfinished(timer: Path) -> str | None:
    """Return what to say of a timer that was written and that nothing starts; None if none.

    Only systemd leaves a sign of what it starts, in a folder beside the files.
    """
    if timer.suffix != ".timer":
        return None
    name = printable(str(timer), 1000)
    service = timer.with_suffix(".service")
    if "[Timer]" not in _text(timer) or not _text(service):
        lacks = name if is_file(service) else printable(str(service), 1000)
        return f"{lacks} is gone or damaged: `sessrotate schedule install` rewrites it."
    if not schedule.BOOTED.is_dir():
        return (
            f"{name} was written, but systemd does not run on this machine, so nothing starts it: "
            "run `sessrotate schedule remove`, then add the line that `sessrotate schedule show` "
            "prints with `crontab -e`."
        )
    if os.path.lexists(timer.parent / "timers.target.wants" / timer.name):
        return None
    return (
        f"{name} was written, but systemd does not start it: run `sessrotate schedule install` "
        "again in a login session."
    )


def _in_crontab() -> Iterator[tuple[Path, Installed]]:
    """Yield the lines of the user's crontab that start `sessrotate run`, and for which folder."""
    if shutil.which("crontab") is None:
        return
    done = schedule.run(("crontab", "-l"))
    above: str | None = None
    for line in [] if done is None else done.stdout.decode(errors="replace").splitlines():
        if line.lstrip().startswith("#"):
            continue
        if line.lstrip().startswith(f"{_FOLDER}="):  # for all lines below it
            above = cron.variable(line, _FOLDER)
        elif _CALL.search(line):
            named = cron.variable(line, _FOLDER) or above
            usual = clients.in_place().files.usual_folder()
            folder = usual if named is None else Path(_expanded(named))
            where = f"crontab: {printable(line, 1000)}"
            program = cron.program(line)
            if program is not None:  # a name alone is looked for by the variables of cron
                program = _expanded(program) if "/" in program else None
            yield real(folder), Installed(where, program, cron.every(line), line=line)


def _expanded(word: str) -> str:
    """Return a word as a shell has it, where it names the user's home."""
    home = str(user_folders.home())
    return re.sub(r"^(?:~(?=/|$)|\$HOME\b|\$\{HOME\})", lambda _: home, word)


def _here() -> Path:
    return real(clients.in_place().files.config_folder())


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
