"""Whether what is to happen by itself happens: folders, settings, the schedule, saving, the hook.

Promise: "on" means that it runs. What keeps it from running is a finding, the worst first, with
what to do. `doctor` shows them all, and `sessrotate` alone the worst.

Rule: only what somebody has turned on can be wrong. Only reads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from msgspec import Struct

from sessrotate import units
from sessrotate.clients.claude import cleanup
from sessrotate.clients.claude import client as claude
from sessrotate.clients.common import is_folder
from sessrotate.errors import INTERRUPTED, InUseError, SessrotateError, printable
from sessrotate.hook import installation, notes
from sessrotate.job import run_log, schedule
from sessrotate.job.config import file as config_file
from sessrotate.job.schedule import installed
from sessrotate.job.schedule.installed import Installed
from sessrotate.system import user_folders

WEEK: Final = 7 * cleanup.DAY

_RECENT: Final = 2 * cleanup.DAY
"""Seconds since the last run, up to which something that is not seen here may start it."""


_WELL: Final = {0, 1, InUseError.exit_code, INTERRUPTED}
"""Exit codes of a run after which the next one goes on; of 1, `doctor` says the reason itself."""


class Finding(Struct, frozen=True):
    """Something to deal with: where it is, its kind in one word, and a sentence for a person.

    Kinds: interrupted (an unfinished rotation, restoration, prune or archiving),
    orphan (an archive whose session is gone), renamed (its live file has another name), doubled (an
    archived session has a live file again, or an archive two), lacking (a restored live file does
    not have all that was restored), damaged, edited (a replaced live file that waits was changed),
    copy (of a session's live file, which is no session), rewound (a resume needs archived rows),
    cut (its client cut a part of its history out),
    trash (it has files that were never pruned), stranger (neither sessrotate nor a client wrote
    it), schedule (something is to be done by itself, and nothing does it), rebuilt (pins were lost
    with the manifest), clock (it is not believed, so nothing is pruned or freed), hook (a rotation
    that the hook began failed), kept (a file that was saved while its session was replaced),
    settings (nothing can be rotated, or the hook cannot be called; `session` is empty), unread
    (nobody can look into it, and it may hide sessions).
    """

    session: str
    path: str
    kind: str
    detail: str


def not_running(found: Installed | None) -> Iterator[Finding]:
    """Yield what keeps things from happening by themselves, the worst first.

    `found` is the schedule of the client's folder: who asks cron for it asks once.
    """
    margin = saving_margin()
    yield from _folders()
    yield from _settings()
    yield from _schedule(found, is_saved=margin is not None)
    if margin is not None:
        yield from _saving(found, margin)
    yield from _hook()


def saving_margin() -> float | None:
    """Return how many seconds before the client deletes sessions they are put away.

    None if nobody has set that, or the settings are wrong, which is a finding of its own.
    """
    with suppress(SessrotateError):
        return config_file.read(None).settings.archive.before_cleanup
    return None


def _folders() -> Iterator[Finding]:
    """Yield the folders that somebody named and that are not there: nothing is found in them."""
    for name in schedule.CARRIED:
        named = os.environ.get(name)
        if not named or name.startswith("XDG_"):  # those are made when they are needed
            continue
        is_config = name == "CLAUDE_CONFIG_DIR"
        path = claude.config_folder() if is_config else schedule.absolute(named)
        shown = printable(str(path), 1000)
        if not is_folder(path):
            detail = f"{name} names {shown}, which does not exist: correct it, or unset it."
        elif is_config and path.name == "projects" and not is_folder(path / "projects"):
            detail = (
                f"{name} names the folder of projects: set it to {shown.removesuffix('/projects')}."
            )
        else:
            continue
        yield Finding("", str(path), "settings", detail)


def _settings() -> Iterator[Finding]:
    """Yield that the settings are wrong: every run would end at once."""
    try:
        config_file.read(None)
    except SessrotateError as error:
        yield Finding("", str(user_folders.config_file()), "settings", str(error))


def _schedule(found: Installed | None, *, is_saved: bool) -> Iterator[Finding]:
    """Yield why nothing runs, where something should."""
    now, last = time.time(), None
    try:
        newest, run = run_log.last(), run_log.last(by_itself=True)
        last = None if run is None else units.seconds(run.at)
        if newest is not None and newest.code not in _WELL:
            yield Finding(
                "",
                str(user_folders.log_file()),
                "schedule",
                f"The last run ({printable(newest.at)}) ended with {newest.code}: `sessrotate run` "
                "says what failed.",
            )
    except SessrotateError as error:
        detail = f"{error} Until then, no run is on record, and none can be undone."
        yield Finding("", str(user_folders.log_file()), "schedule", detail)
    if found is not None:
        said = installed.problem(found, last, now)
        if said is not None:
            yield Finding("", found.where, "schedule", said)
    elif is_saved and now - (last or 0.0) > _RECENT and not installed.others():
        yield Finding(
            "",
            str(user_folders.config_file()),
            "schedule",
            "Sessions are to be saved before Claude Code deletes them, but nothing starts "
            "`sessrotate run`: `sessrotate schedule install` changes that, and `sessrotate "
            "schedule show` prints a line for cron.",
        )


def _saving(found: Installed | None, margin: float) -> Iterator[Finding]:
    """Yield that the client deletes sessions too soon for a nightly run to save them."""
    rule, every = cleanup.in_force(), cleanup.DAY
    if found is not None and found.every is not None:
        every = max(found.period, cleanup.DAY)
    if not rule.leaves_time(margin, every):
        path = rule.origin or claude.settings_file()
        yield Finding("", str(path), "settings", rule.saving(margin, every))


def _hook() -> Iterator[Finding]:
    """Yield what is wrong with the client's hook and the rotations that it began."""
    try:
        there = installation.installed()
    except SessrotateError as error:
        yield Finding("", str(claude.settings_file()), "settings", str(error))
    else:
        for detail in unheard(there):
            yield Finding("", str(there.path), "settings", detail)
    for note in notes.notes():
        problem = note.error or "It was stopped before it finished."
        yield Finding(
            note.where.session,
            str(note.where.live),
            "hook",
            f"The rotation by the hook ({printable(note.at)}) failed. "
            f"{printable(problem, 1000)} {notes.way_out(note)}",
        )


def unheard(there: installation.Installed) -> Iterator[str]:
    """Yield why the client does not call our hook, or calls it in vain."""
    silenced = cleanup.silenced(cleanup.settings())
    if there.commands and silenced:
        where, name = silenced
        yield (
            f"Claude Code does not call the hook: {name} is set in {printable(str(where), 1000)}. "
            "Remove that setting, or have `sessrotate schedule install` rotate once a night."
        )
    for program in there.missing:
        yield (
            f"The hook calls {printable(program)}, which does not exist any more, or cannot be "
            "started: update it with `sessrotate hook install`."
        )
    for event in there.lacking:
        yield f"The hook is not called at {event}: update it with `sessrotate hook install`."
