"""Which folders are used and what they have, for a person who wonders why nothing is found.

Rule: only counts, and nothing here fails: what cannot be read is unknown. Only reads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import automation, clients, units
from sessrotate.archive import place, restored
from sessrotate.archive.place import Place
from sessrotate.automation.findings import WEEK
from sessrotate.clients.in_place import Cleanup
from sessrotate.errors import SessrotateError
from sessrotate.hook import installation
from sessrotate.job import config, run_log
from sessrotate.job.config import Key, Loaded
from sessrotate.job.schedule.installed import installed

_NAMED: Final = 5
"""Sessions that are named of those that the client will delete."""


class Setting(Struct, frozen=True):
    """One fact about where things are, for a person who wonders why nothing is found.

    `number` is the same for programs, in bytes or a count; None if it is not a number.
    """

    name: str
    value: str
    number: int | None = None


def settings(archives: Sequence[Place]) -> Iterator[Setting]:
    """Yield which folders are used, and how many sessions and archives they have.

    `archives` are all of this machine.
    """
    client = clients.in_place()
    projects = client.files.projects_folder()
    yield Setting("Claude Code projects", str(projects))
    yield _counted("sessions", sum(1 for _ in client.files.sessions()))
    yield Setting("archive", str(place.root()))
    yield _counted("archives", len(archives))
    yield _counted("archives put aside", len(place.aside()))
    marked = [*restored.marked()]
    yield _counted("archives of restored sessions", sum(1 for _ in restored.every(marked)))
    yield _counted("restored sessions, rotated by name only", len(marked))
    yield Setting("hook", _installed(client.calls.silenced()))
    timer = installed()
    yield Setting("schedule", "none found" if timer is None else timer.where)
    others = client.files.other_folders()
    if others:
        named = f"{', '.join(map(str, others))}; CLAUDE_CONFIG_DIR=FOLDER chooses one"
        yield Setting("other folders of Claude Code", named)
    yield Setting("last run", _last_run())
    present, cold = automation.present(), clients.cold().FORMAT.NAME
    if cold in present:
        yield Setting(f"{cold.title()} sessions are compressed", _compressed())
    if client.files.NAME in present:
        rule = client.cleanup.in_force()
        yield Setting("Claude Code deletes sessions", _rule(rule))
        yield _doomed(rule, time.time())
        yield Setting("saved before that", _saved(rule))


def _compressed() -> str:
    """Say whether each run compresses sessions that nobody uses."""
    try:
        loaded = config.read(None)
    except SessrotateError:
        return "unknown"
    after = loaded.settings.codex.compress_after
    if unread := clients.cold().unread_by(time.time()):
        return f"only by `tidy SESSION`. {unread}"
    if after is None:
        off = _turned_off(loaded, automation.COMPRESS_AFTER)
        by_tidy = "by `tidy`; `sessrotate setup` has each run do it"
        return f"only by `tidy SESSION`, because of {off}" if off else by_tidy
    return f"by `tidy`, and by each run once unused for {units.days(max(after, units.DAY))}"


def _turned_off(loaded: Loaded, key: Key) -> str:
    """Return the line that turns a setting off, which `setup` leaves alone; empty if none does."""
    return f"`{key.name} = false` in {loaded.path}" if key.title in loaded.settings.lines else ""


def _counted(name: str, number: int) -> Setting:
    return Setting(name, f"{number:,}", number)


def _last_run() -> str:
    try:
        last = run_log.last()
    except SessrotateError:
        return "unknown"
    if last is None:
        return "never"
    why = ": `sessrotate run` says what failed" if last.code else ""
    return f"{last.at}, exit code {last.code}{why}"


def _rule(rule: Cleanup) -> str:
    if math.isinf(rule.period):
        return f"never; {rule.paused} ({rule.origin})"
    days = f"after {units.days(rule.period)} without use"
    days += " (its default)" if rule.origin is None else ""
    if rule.project is not None:
        days += f" (started in {rule.project}, whose settings say so)"
    if rule.ceiling is not None:
        days += f", those of the desktop app after {units.days(rule.ceiling)}"
    return f"{days}; new versions do not, as {rule.paused}" if rule.paused else days


def _doomed(rule: Cleanup, now: float) -> Setting:
    """Say which sessions the client will delete soon."""
    found = clients.in_place().cleanup.doomed(rule, WEEK, now)
    named = f": {units.some(found, _NAMED)}; `sessrotate archive SESSION` saves one"
    what = named if found else ""
    return Setting("of those, within a week", f"{len(found):,}{what}", len(found))


def _saved(rule: Cleanup) -> str:
    """Say whether the nightly run puts sessions away before the client deletes them."""
    try:
        loaded = config.read(None)
    except SessrotateError:
        return "unknown"
    rules = loaded.settings.archive
    if (margin := rules.before_cleanup) is None:
        off = _turned_off(loaded, automation.SAVING)
        return f"no, because of {off}" if off else "no: `sessrotate setup` changes that"
    if math.isinf(rule.period):
        return "by each run; the client deletes nothing now"
    after = min(rule.saved_after(margin), max(rules.older_than or math.inf, units.DAY))
    return f"by each run, once unused for {units.days(after)}"


def _installed(silenced: tuple[Path, str] | None) -> str:
    try:
        found = installation.installed()
    except SessrotateError:
        return "unknown"
    if not found.commands:
        return "not installed"
    disabled = f" (but the client does not call it: {silenced[1]} is set)" if silenced else ""
    return f"{'; '.join(found.commands)}{disabled}"
