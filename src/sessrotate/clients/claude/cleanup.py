"""What Claude Code does by itself: it trims sessions, deletes them, and calls our hook.

Promise: the questions of `in_place.Trims`, `CleanUp` and `Calls`, by the client's own code and
settings, as 2.0.28 to 2.1.332 have them (docs/internals/clients.md). Only reads.

A client that is told to trim (`CLAUDE_CODE_TRANSCRIPT_LOCAL_GC`, 2.1.287 to 2.1.332) writes a new
file in the place of one that was compacted: the lines from before the last compaction that outlive
it, the compaction, the last setting of each kind from before it, and all behind it. Then it goes on
appending to that.

Rule: where versions differ in what they delete, the one counts that deletes more.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import names, platforms
from sessrotate.clients import common
from sessrotate.clients.claude import opening
from sessrotate.clients.claude.client import (
    CLEANUP_DAYS,
    session_of,
    sessions,
    settings_file,
    state_file,
)
from sessrotate.clients.claude.rows import compaction_of, shown_of, turn_of
from sessrotate.clients.common import is_file, listed, names_in
from sessrotate.clients.in_place import Cleanup, Compacted
from sessrotate.clients.preview import EDGE
from sessrotate.errors import DamagedError, printable
from sessrotate.model import Boundary
from sessrotate.parsing import json_line
from sessrotate.parsing.json_typed import DECLINED
from sessrotate.system import inside
from sessrotate.units import DAY

_KEPT: Final = re.compile(r"(\d{1,15})-[0-9a-f]{8}\.jsonl\.replaced", re.ASCII)
"""What it calls such a file: milliseconds since 1970, and eight random digits."""

SUPERSEDED: Final = frozenset({"attribution-snapshot", "artifact-autoreact-ledger"})
"""Settings of which only the last stays, also behind the compaction."""


def replaced(live: Path, session: str) -> list[Path]:
    """Return the files that were kept when a client trimmed this session, the oldest first.

    A second name of the live file itself is none yet. The client's own clean-up deletes all of
    them with the session.
    """
    kept = _kept(live, session)
    if kept:  # mostly nothing is: asked of thousands
        with suppress(OSError):
            itself = live.lstat()
            return [path for path in kept if not _is(path, itself)]
    return kept


def may_be_trimmed(live: Path, session: str) -> bool:
    """Tell whether anything is kept of this session, be it only a name for the next trim."""
    return bool(_kept(live, session))


def names_of(live: Path, session: str, status: os.stat_result) -> list[Path]:
    """Return which of the names for kept files the file with this status has.

    Our hook gives one to a live file that its client may trim.
    """
    return [path for path in _kept(live, session) if _is(path, status)]


def new_name(live: Path, session: str, at_ns: int | None = None) -> Path:
    """Return a name under which this live file is to be kept, and that nothing has.

    What is kept is put together in the order of names: `at_ns` is how old the file is, in
    nanoseconds since 1970, where it is not the live file any more.
    """
    at = (at_ns or time.time_ns()) // 10**6
    name = f"{at}-{os.urandom(4).hex()}.jsonl.replaced"
    return live.parent / session / names.KEPT / name


def _kept(live: Path, session: str) -> list[Path]:
    folder = Path(f"{live.parent}/{session}/{names.KEPT}")  # joined once, of thousands
    found = ((_KEPT.fullmatch(name), name) for name in names_in(folder))
    return [
        folder / name for _, name in sorted((int(match[1]), name) for match, name in found if match)
    ]


def _is(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.lstat(), status)
    except OSError:
        return False


def is_of_settings(line: bytes) -> bool:
    """Tell whether a line is a setting: clients write equal ones again and again."""
    row = turn_of(line)
    return row is not None and not row.uuid


def is_superseded(line: bytes) -> bool:
    """Tell whether a line is a setting of which only the last stays, behind a compaction, too."""
    row = turn_of(line)
    return row is not None and row.type in SUPERSEDED


# ── the clean-up ──────────────────────────────────────────────────────────────────────────────────

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
    rule = _rule(found)
    file = printable(str(rule.origin or settings_file()), 1000)
    return replace(rule, advice=f'`"{_PERIOD}": {CLEANUP_DAYS}` in {file}')


def _rule(found: Settings) -> Cleanup:
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
            told = (json_line.values([row], len(row), {"version": None}) or {}).get("version")
            if isinstance(told, str) and (version := common.version(told)) is not None:
                return version
    return ()


def silenced() -> tuple[Path, str] | None:
    """Return what keeps the client from calling our hook: a file, and its setting.

    None if nothing does. A project's settings are not looked at: they are for its own sessions.
    """
    found = settings()
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


# ── how it calls us ───────────────────────────────────────────────────────────────────────────────

_REPEATING: Final = ((2, 1, 112), (2, 1, 160))
"""Versions, from one to before another, that forget at a compaction which rows are on the disk."""


def compacted(line: bytes, boundary: Boundary) -> Compacted:
    """Return what the line of a boundary says of its compaction.

    2.1.112 writes all archived rows again at each further one, as a program's backend and where
    somebody asked for the compaction: it keeps the old rows in memory then, and looks in the file
    for those that it has written. After an automatic one, and in a terminal, it drops them.
    """
    try:
        row = compaction_of.fast(line)
    except DECLINED:
        return Compacted()
    version, (low, high) = common.version(row.version), _REPEATING
    is_such = version is not None and low <= version < high
    by_program = (row.entrypoint or "").startswith("sdk-")
    return Compacted(is_such and by_program and boundary.trigger == "manual")


def is_summary(line: bytes) -> bool:
    """Tell whether a line is the summary that ends the writing of a compaction."""
    try:
        return shown_of.fast(line).is_compact_summary
    except DECLINED:
        return False
