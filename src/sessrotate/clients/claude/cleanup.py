"""When Claude Code deletes sessions by itself, which it spares, and what silences its hooks.

Promise: what its own settings say, as 2.0.28 to 2.1.330 read them (docs/internals/clients.md).
In come the settings of this machine and a session's file; out comes a time, or why there is none.

Rule: where versions differ, the one counts that deletes more. Only reads.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import platforms
from sessrotate.clients.claude import opening
from sessrotate.clients.claude.client import (
    CLEANUP_DAYS,
    session_of,
    sessions,
    settings_file,
    state_file,
)
from sessrotate.clients.common import is_file, listed
from sessrotate.clients.preview import EDGE
from sessrotate.errors import DamagedError, printable
from sessrotate.parsing import json_line
from sessrotate.system import inside
from sessrotate.units import DAY

_ENDLESS: Final = 10_000_000
"""Days that are taken for never: what is more overflows a date."""

_LARGEST: Final = 1 << 20
_LARGEST_STATE: Final = 1 << 24
"""Bytes of what the client notes for itself: older versions, every prompt."""

_MOST_PROJECTS: Final = 1000

_PERIOD: Final = "cleanupPeriodDays"

_REJECTS_0: Final = (2, 1, 112)
"""The first version seen that takes a period of 0 for a mistake, and deletes nothing then."""

_RELEASED: Final = ".desktop-released.json"
"""Beside a session: the client deletes it at once, or after its period, whoever began it."""

MANAGED: Final[dict[str, Path]] = {
    "linux": Path("/etc/claude-code"),
    "darwin": Path("/Library/Application Support/ClaudeCode"),
    "win32": Path("C:/Program Files/ClaudeCode"),
}
"""Where an administrator's settings are (read in the code of 2.1.112)."""


class Cleanup(Struct, frozen=True):
    """What the client does to old sessions of its own accord.

    `period` is after how many seconds without a change it deletes one, infinite if it never does;
    `paused` says why new versions do not. `ceiling` is the same for sessions that were begun in the
    desktop app, None where it spares them. `origin` is the file that sets the period, None for the
    client's default. `project` is the folder of the project whose own settings say it: a client
    that is started there deletes the sessions of all.
    """

    period: float
    paused: str = ""
    ceiling: float | None = None
    origin: Path | None = None
    project: Path | None = None

    def deletes_at(self, status: os.stat_result, *, is_desktop: bool) -> float | None:
        """Return when it deletes a session with this live file, in seconds since 1970.

        None if it never does. All versions go by the time of the file, whatever its records say.
        """
        period = self.ceiling if is_desktop else self.period
        return None if period is None or math.isinf(period) else status.st_mtime + period

    def saved_at(self, status: os.stat_result, margin: float, *, is_desktop: bool) -> float | None:
        """Return when a session with this live file is put away, `margin` seconds before that.

        In seconds since 1970; None if the client never deletes it.
        """
        period = self.ceiling if is_desktop else self.period
        at = self.deletes_at(status, is_desktop=is_desktop)
        if period is None or at is None:
            return None
        return status.st_mtime + self.saved_after(margin, period)

    def saved_after(self, margin: float, period: float | None = None) -> float:
        """Return after how many seconds without a change a session is put away.

        That is `margin` seconds before the client deletes it, which it does after `period` seconds.
        A third of the period at most, so that a short period does not put everything away; and
        never within a day of its last use.
        """
        period = self.period if period is None else period
        return max(period - min(margin, period / 3), DAY)

    def leaves_time(self, margin: float, every: float = DAY) -> bool:
        """Tell whether a run comes in time to save every session, one each `every` seconds."""
        is_endless = math.isinf(self.period)
        return is_endless or self.period - self.saved_after(margin) >= every

    def saving(self, margin: float, every: float = DAY, older_than: float | None = None) -> str:
        """Say which sessions are put away `margin` seconds before the client deletes them.

        Those unused for `older_than` seconds are in any case. A run comes each `every` seconds.
        Where that may be too late, it says what to change.
        """
        where = "its default" if self.origin is None else printable(str(self.origin), 1000)
        if math.isinf(self.period):
            return f"Claude Code deletes no session now: {self.paused} ({where})."
        after = self.saved_after(margin)
        said = f"Claude Code deletes sessions unused for {days(self.period)} ({where})."
        if self.leaves_time(margin, every):
            if older_than is not None:
                after = min(after, max(older_than, DAY))
            return (
                f"{said} The nightly run puts a session away, compressed, once it is unused for "
                f"{days(after)}: it leaves the client's list, and `sessrotate restore SESSION` "
                "brings it back."
            )
        late = (
            f"{said} A run every {days(every)} puts away what it finds unused for {days(after)}, "
            "and cannot save all of them in time."
        )
        if every > DAY:
            return f"{late} Have one each night: `sessrotate schedule install --every daily`."
        if self.period / 3 >= every:
            return f"{late} Raise `before_cleanup` in the settings of `run`, to 3d for example."
        file = where if self.origin is not None else printable(str(settings_file()), 1000)
        return (
            f"{late} Raise the period to 3 days or more, for example with "
            f'`"{_PERIOD}": {CLEANUP_DAYS}` in {file}.'
        )


def days(seconds: float) -> str:
    """Return a length of time in days, in words."""
    count = f"{round(seconds / DAY, 1):,g}"
    return f"{count} day{'' if count == '1' else 's'}"


class Settings(Struct, frozen=True):
    """The client's settings, as far as they matter here: the administrator's come first."""

    managed: tuple[tuple[Path, dict[str, Any]], ...]
    user: dict[str, Any]
    broken: Path | None = None
    """A file that is no JSON object: the client pauses its clean-up then (2.1.330)."""
    projects: tuple[tuple[Path, object], ...] = ()
    """The files of projects that set the period, each with what it says."""

    def value(self, key: str) -> object:
        """Return what is in force for a key, None if nobody set it."""
        origin = self.origin(key)
        return None if origin is None else origin[1][key]

    def origin(self, key: str) -> tuple[Path, dict[str, Any]] | None:
        """Return the file that sets a key, and what that says; None if nobody set it."""
        files = (*self.managed, (settings_file(), self.user))
        return next((each for each in files if key in each[1]), None)


def settings() -> Settings:
    """Return the settings of this machine and its user; `with_projects` has those of projects."""
    broken: list[Path] = []
    folder = MANAGED.get(platforms.NAME, MANAGED["linux"])
    parts = [path for path in listed(folder / "managed-settings.d") if path.suffix == ".json"]
    files = (folder / "managed-settings.json", *parts)
    managed = [(path, _read(path, broken)) for path in files]
    user = _read(settings_file(), broken)
    return Settings(tuple(each for each in managed if each[1]), user, next(iter(broken), None))


def with_projects(found: Settings) -> Settings:
    """Return the same with the settings of the projects that the client knows (2.0.28 and later).

    Which these are is what it notes for itself. A file that cannot be understood says nothing.
    """
    known = _read(state_file(), [], _LARGEST_STATE).get("projects")
    folders = [Path(name) for name in known][:_MOST_PROJECTS] if isinstance(known, dict) else []
    projects = []
    for folder in filter(Path.is_absolute, folders):
        files = (folder / ".claude" / f"settings{kind}.json" for kind in (".local", ""))
        said = ((path, _read(path, [])) for path in files)
        projects += [(path, each[_PERIOD]) for path, each in said if _PERIOD in each][:1]
    return replace(found, projects=tuple(projects))


def cleanup(found: Settings) -> Cleanup:
    """Return what the client's clean-up does under these settings."""
    default = CLEANUP_DAYS * DAY
    set_by = found.origin(_PERIOD)
    origin, count = (None, CLEANUP_DAYS) if set_by is None else (set_by[0], set_by[1][_PERIOD])
    if found.broken is not None:
        return Cleanup(default, f"{found.broken} cannot be understood")
    if not (_is_number(count) and 0 <= count < _ENDLESS):
        return Cleanup(default, f"{_PERIOD} is not a number of days", origin=origin)
    if count == 0 and _last_version() < _REJECTS_0:
        why = f"{_PERIOD} is 0: versions before 2.1.112 write no session then"
        return Cleanup(0.0, why, origin=origin)
    paused = f"{_PERIOD} is 0, which this version rejects" if count == 0 else ""
    period = count * DAY or math.inf
    ceiling = found.value("desktopSessionCleanupPeriodDays")
    if any(path == origin for path, _ in found.managed):  # an administrator's period is for all
        return Cleanup(period, paused, period, origin)
    least, file = min(_in_projects(found), key=lambda each: each[0], default=(math.inf, None))
    project = None
    if file is not None and least < period:
        period, paused, origin, project = least, "", file, file.parent.parent
    limit = None
    if _is_number(ceiling) and 0 < ceiling < _ENDLESS:
        limit = max(period, ceiling * DAY)
    return Cleanup(period, paused, limit, origin, project)


def doomed(
    rule: Cleanup, within: float, now: float, live: Iterable[Path] | None = None
) -> list[str]:
    """Return the ids of the sessions that the client deletes within so many seconds from `now`.

    `now` is in seconds since 1970, and `live` are the files of all, if somebody knows them. Empty
    files are nothing to lose.
    """
    found = []
    for path in sessions() if live is None else live:
        with suppress(OSError):
            status = path.stat()
            at = rule.deletes_at(status, is_desktop=False)
            if at is None or at > now + within or not status.st_size:
                continue
            at = rule.deletes_at(status, is_desktop=is_desktop(path))
            if at is not None and at <= now + within:
                found.append(session_of(path.name))
    return found


def in_force() -> Cleanup:
    """Return what the client's clean-up does on this machine, settings of projects included."""
    return cleanup(with_projects(settings()))


def _in_projects(found: Settings) -> Iterator[tuple[float, Path]]:
    """Yield the periods that projects have set for whoever starts a client there, in seconds."""
    for path, count in found.projects:
        if _is_number(count) and 0 < count < _ENDLESS:
            yield count * DAY, path


def _last_version() -> tuple[int, ...]:
    """Return the version of the client that wrote to a session last; nothing if none says so.

    What is installed cannot be asked without starting it.
    """
    changed: list[tuple[float, Path]] = []
    for path in sessions():
        with suppress(OSError):
            changed.append((path.stat().st_mtime, path))
    with suppress(DamagedError, OSError, ValueError):
        with os.fdopen(inside.opened_at(max(changed)[1]), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - EDGE))
            rows = file.read(EDGE).split(b"\n")
        for row in reversed(rows):
            version = (json_line.values([row], len(row), {"version": None}) or {}).get("version")
            if isinstance(version, str) and re.fullmatch(r"\d{1,9}(\.\d{1,9}){2}", version):
                return tuple(map(int, version.split(".")))
    return ()


def silenced(found: Settings) -> tuple[Path, str] | None:
    """Return what keeps the client from calling our hook: a file, and its setting.

    None if nothing does. A project's settings are not looked at: they are for its own sessions.
    """
    set_by = found.origin("disableAllHooks")
    if set_by is not None and set_by[1]["disableAllHooks"] is True:
        return set_by[0], "disableAllHooks"
    name = "allowManagedHooksOnly"
    return next(((path, name) for path, each in found.managed if each.get(name) is True), None)


def is_desktop(path: Path) -> bool:
    """Tell whether a session counts as one of the desktop app; one that cannot be read does not.

    By the first entry point in its file's first 64 KiB, or by the last in its last. One that the
    app has released counts no more (2.1.330).
    """
    if is_file(path.with_suffix(_RELEASED)):
        return False
    try:
        with os.fdopen(inside.opened_at(path), "rb") as file:  # no link is a session
            head = file.read(EDGE)
            file.seek(max(0, os.fstat(file.fileno()).st_size - EDGE))
            return opening.is_of_desktop(head, file.read(EDGE))
    except (DamagedError, OSError):
        return False


def _read(path: Path, broken: list[Path], largest: int = _LARGEST) -> dict[str, Any]:
    if not is_file(path, lambda *_: broken.append(path)):  # a pipe would wait
        return {}
    try:
        with path.open("rb") as file:
            found: Any = json.loads(file.read(largest))
    except (OSError, ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    broken.append(path)
    return {}


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
