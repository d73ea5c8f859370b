"""When Claude Code deletes sessions by itself, which it spares, and what silences its hooks.

Promise: what its own settings say, as 2.0.28 to 2.1.330 read them (docs/internals/clients.md).
In come the settings of this machine and a session's file; out comes a time, or why there is none.

Rule: where versions differ, the one counts that deletes more. Only reads.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import platforms
from sessrotate.clients.claude import opening
from sessrotate.clients.claude.client import CLEANUP_DAYS, settings_file, state_file
from sessrotate.clients.common import is_file, listed
from sessrotate.clients.preview import EDGE
from sessrotate.errors import DamagedError
from sessrotate.system import inside

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY: Final = 86_400.0
_ENDLESS: Final = 10_000_000
"""Days that are taken for never: what is more overflows a date."""

_LARGEST: Final = 1 << 20
_LARGEST_STATE: Final = 1 << 24
"""Bytes of what the client notes for itself: older versions, every prompt."""

_MOST_PROJECTS: Final = 1000

_PERIOD: Final = "cleanupPeriodDays"

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

    `period` is after how many seconds without a change it deletes one; `paused` says why new
    versions do not. `ceiling` is the same for sessions that were begun in the desktop app, None
    where it spares them. `is_default`: nobody has set the period. `project` is the folder of the
    project whose own settings say it: a client that is started there deletes the sessions of all.
    """

    period: float
    paused: str = ""
    ceiling: float | None = None
    is_default: bool = True
    project: Path | None = None

    def deletes_at(self, status: os.stat_result, *, is_desktop: bool) -> float | None:
        """Return when it deletes a session with this live file, in seconds since 1970.

        None if it never does. All versions go by the time of the file, whatever its records say.
        """
        period = self.ceiling if is_desktop else self.period
        return None if period is None else status.st_mtime + period


class Settings(Struct, frozen=True):
    """The client's settings, as far as they matter here: the administrator's come first."""

    managed: tuple[dict[str, Any], ...]
    user: dict[str, Any]
    broken: Path | None = None
    """A file that is no JSON object: the client pauses its clean-up then (2.1.330)."""
    projects: tuple[tuple[Path, dict[str, Any]], ...] = ()

    def value(self, key: str) -> object:
        """Return what is in force for a key, None if nobody set it."""
        for each in (*self.managed, self.user):
            if key in each:
                return each[key]
        return None


def settings() -> Settings:
    """Return the settings of this machine and its user; `with_projects` has those of projects."""
    broken: list[Path] = []
    folder = MANAGED.get(platforms.NAME, MANAGED["linux"])
    parts = [path for path in listed(folder / "managed-settings.d") if path.suffix == ".json"]
    managed = [_read(path, broken) for path in (folder / "managed-settings.json", *parts)]
    user = _read(settings_file(), broken)
    return Settings(tuple(each for each in managed if each), user, next(iter(broken), None))


def with_projects(found: Settings) -> Settings:
    """Return the same with the settings of the projects that the client knows (2.0.28 and later).

    Which these are is what it notes for itself. A file that cannot be understood says nothing.
    """
    known = _read(state_file(), [], _LARGEST_STATE).get("projects")
    folders = [Path(name) for name in known][:_MOST_PROJECTS] if isinstance(known, dict) else []
    projects = []
    for folder in filter(Path.is_absolute, folders):
        local, shared = (folder / ".claude" / f"settings{kind}.json" for kind in (".local", ""))
        said = {**_read(shared, []), **_read(local, [])}
        if said:
            projects.append((folder, said))
    return replace(found, projects=tuple(projects))


def cleanup(found: Settings) -> Cleanup:
    """Return what the client's clean-up does under these settings."""
    days = found.value(_PERIOD)
    if found.broken is not None:
        return Cleanup(CLEANUP_DAYS * DAY, f"{found.broken} cannot be understood")
    if days is not None and not (_is_number(days) and 0 <= days < _ENDLESS):
        return Cleanup(CLEANUP_DAYS * DAY, "cleanupPeriodDays is no number of days")
    if days == 0:  # 2.1.112 and later reject it
        return Cleanup(0.0, "cleanupPeriodDays is 0: versions before 2.1.112 write no session then")
    is_default = days is None
    period = float(CLEANUP_DAYS if days is None else days) * DAY
    ceiling = found.value("desktopSessionCleanupPeriodDays")
    if any(_PERIOD in each for each in found.managed):  # an administrator's period is for all
        return Cleanup(period, "", period, is_default)
    period, project = min([(period, None), *_in_projects(found)], key=lambda each: each[0])
    limit = None
    if _is_number(ceiling) and 0 < ceiling < _ENDLESS:
        limit = max(period, ceiling * DAY)
    return Cleanup(period, "", limit, is_default and project is None, project)


def in_force() -> Cleanup:
    """Return what the client's clean-up does on this machine, settings of projects included."""
    return cleanup(with_projects(settings()))


def _in_projects(found: Settings) -> Iterator[tuple[float, Path]]:
    """Yield the periods that projects have set for whoever starts a client there, in seconds."""
    for folder, said in found.projects:
        days = said.get(_PERIOD)
        if _is_number(days) and 0 < days < _ENDLESS:
            yield days * DAY, folder


def silenced(found: Settings) -> str:
    """Return the name of what keeps the client from calling our hook, empty if nothing does."""
    if found.value("disableAllHooks") is True:
        return "disableAllHooks"
    if any(each.get("allowManagedHooksOnly") is True for each in found.managed):
        return "allowManagedHooksOnly"
    return ""


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
