"""The table of what `doctor` says, and whether what is to happen by itself happens.

Promise: "on" means that it runs. What keeps it from running (folders, settings, the schedule,
saving, the hook) is a finding, the worst first, with what to do. `doctor` shows them all, and
`sessrotate` alone the worst. Only what somebody has turned on can be wrong. Only reads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import clients, units
from sessrotate.clients.common import is_folder
from sessrotate.errors import INTERRUPTED, InUseError, SessrotateError, printable, quoted
from sessrotate.hook import installation, notes
from sessrotate.job import config, run_log, schedule
from sessrotate.job.schedule import installed
from sessrotate.job.schedule.installed import Installed
from sessrotate.system import user_folders

WEEK: Final = 7 * units.DAY

_RECENT: Final = 2 * units.DAY
"""Seconds since the last run, up to which something that is not seen here may start it."""

_WELL: Final = {0, 1, InUseError.exit_code, INTERRUPTED}
"""Exit codes of a run after which the next one goes on; of 1, `doctor` says the reason itself."""

SAYS: Final = {
    "settings: other disk": "This is on a different file system from the sessions, or in another "
    "mount of it, and files cannot be moved there atomically: make it a "
    "folder on the same file system, or mount the client's whole folder.",
    "settings: not writable": "This folder is not writable, and archives go there: make it "
    "writable.",
    "settings: no folder": "{name} names {folder}, which does not exist: correct it, or unset it.",
    "settings: projects": "{name} names the folder of projects: set it to {folder}.",
    "settings: wrong": "{why}",
    "schedule: failed": "The last run ({at}) ended with {code}: `sessrotate run` says what failed.",
    "schedule: no log": "{why} Until then, runs are not recorded and cannot be undone.",
    "schedule: wrong": "{why}",
    "schedule: none": "Your settings {what}, but nothing starts `sessrotate run`: `sessrotate "
    "schedule install` changes that, and `sessrotate schedule show` prints a line for cron.",
    "hook: failed": "The rotation by the hook ({at}) failed. {why} {then}",
    "kept": "{why}",  # nothing else of its session has what it holds
    "clock": "{why}",  # it is not believed, so nothing is pruned or freed
    "unread: folder": "{path} cannot be read ({reason}), so its contents are unknown: make it "
    "readable, or move it away.",
    "settings: link": "{path} is a symbolic link, and sessrotate writes nothing there: remove the "
    "link, or put the folder itself in its place.",
    "stranger: earlier": "{path} has archives in an earlier format, or does not belong to "
    "sessrotate: the version that made them can `restore` their sessions.",
    # Of an archive whose session was put away: the first of these.
    "doubled: put away": "{why}",
    "damaged: project": "The session was put away, and its record.json, which names its project, "
    "is lost or damaged: `sessrotate restore {session} --project FOLDER` brings it back.",
    "interrupted: bringing back": "Bringing the session back was interrupted: `sessrotate restore "
    "{session}` finishes that, and so does the next run.",
    "interrupted: putting away": "Putting the session away was interrupted: finish with "
    "`sessrotate archive {session}`, as the next run does, or undo it with `sessrotate restore "
    "{session}`.",
    "interrupted: plain": "The session was put away, and has not been compressed yet: `sessrotate "
    "archive {session}` compresses it.",
    # Of an archive whose session is in place: the first of these.
    "interrupted: operation": "{why} To do that now: `sessrotate {command} {session}`. If that "
    "fails: `sessrotate aside {session}`.",
    "renamed": "{live} is gone, and {renamed} continues its archive: give it the old name back. "
    "Keep this folder, which holds its history.",
    "orphan: freed": "{live} is gone, and a part of its archive was deleted for good, so no client "
    "can get it back whole: `sessrotate export --allow-gaps {session} -o FILE` "
    "writes the rest. If you need none of it, remove this folder.",
    "orphan: whole": "{live} is gone, and its archive is still here: bring the session back with "
    "`sessrotate restore {session}`. If you deleted it for good, remove this folder.",
    "damaged: archive": "{why}",
    "damaged: segments": "{lost} of this archive are missing, and nobody pruned them: put them "
    "back from a backup, then check with `sessrotate verify {session}`.",
    # Of each archive.
    "stranger: segment": "{path} has {other}, which its manifest.json does not list: another "
    "archive may have been copied over this one. Move it out, and compare the two.",
    "interrupted: pruning": "{why} To finish: `sessrotate run`.",
    "lacking": "{why}",  # a restored live file does not have all that was restored
    "damaged: date": "{live} has everything that is in {path}, but the restore date is lost, so "
    "its archive is never deleted automatically. `sessrotate rotate {session}` uses the archive "
    "again; `sessrotate aside {session}` puts it aside.",
    "damaged: record": "{record} is damaged, so {session} is not rotated automatically: you may "
    "have restored it. `sessrotate rotate {session}` repairs that.",
    "cut": "{why}",  # its client cut a part of its history out
    "edited": "{why}",  # a replaced live file that waits was changed
    # Of a live file: the first of these.
    "damaged: all archives": "This folder is gone, and with it the archived history of {many:,} "
    "sessions ({named}): put it back, from the desktop's trash, a backup, or where you moved it.",
    "unread: session": "{path} cannot be read ({reason}), so it is neither shown nor saved from "
    "the client's clean-up: {then}.",
    "stranger: link": "{path} is a symbolic link, which sessrotate does not read: put the file "
    "itself in its place, or remove the link.",
    "stranger: zeros": "{path} is not a session. {why}",
    "stranger: no row": "{path} is named like a session but contains no row, so no client shows "
    "it. Look at its contents, then move it away.",
    "copy": "{why}",  # of a session's live file, which is not a session
    "rewound": "{why}",  # a resume needs archived rows
    # Of what lies beside sessions.
    "stranger: copy": "{path} is a copy of a session, and no client continues it. It may hold "
    "lines the session lacks: `sessrotate read {path_word}` shows all of it. Remove "
    "it only if you do not need that.",
    "stranger: draft": "{path} was left by a Codex resume or a run that was killed at least a day "
    "ago and has not been continued: `sessrotate tidy` removes the file.",
    "stranger: second": "{path} is a second file of its session, beside the one that Codex uses: "
    "`sessrotate tidy` keeps the one that has all of it, or says why both stay.",
    "stranger: alone": "{path} was left by a run that was killed, and the session's own file has "
    "been moved or deleted since. Delete it, or remove the dot from its name to get it back.",
    "damaged: rollout": "{path} cannot be decompressed with the 128 MiB of memory that Codex takes "
    "for it, or is damaged: put back a copy of it, or move it away.",
    "stranger: agents": "{paths}: agents of {session} wrote this, but the client never wrote "
    "the session's own file. `sessrotate search` finds it. The client's clean-up "
    "deletes it with old sessions: `sessrotate archive {live_word}` puts it away, "
    "as does a run that saves sessions.",
}
"""What each check says, and what to do: in the order in which they look, but for "settings: wrong".

The word before a colon is the kind of the finding. `{why}` is a sentence of whoever looked.
"""


class Finding(Struct, frozen=True):
    """Something to deal with: where it is, its kind in one word, and a sentence for a person.

    `session` is empty where it is no session's.
    """

    session: str
    path: str
    kind: str
    detail: str


def finding(check: str, path: Path | str, session: str = "", **facts: object) -> Finding:
    """Return what one of `SAYS` says of a path, and the session that it is of.

    `facts` are what it names in braces: a path as it is, and as `…_word` as a shell takes it. Paths
    are made printable here, all else has to be.
    """
    facts |= {"path": Path(path), "session": printable(session)}
    paths = {name: fact for name, fact in facts.items() if isinstance(fact, Path)}
    words = {f"{name}_word": quoted(path) for name, path in paths.items()}
    shown = facts | {name: printable(str(path)) for name, path in paths.items()} | words
    return Finding(session, str(path), check.partition(":")[0], SAYS[check].format(**shown))


def not_running(found: Installed | None) -> Iterator[Finding]:
    """Yield what keeps things from happening by themselves, the worst first.

    `found` is the schedule of the client's folder: who asks cron for it asks once.
    """
    given = _given()
    margin = None if given is None else given.archive.before_cleanup
    yield from _folders()
    yield from _settings()
    yield from _schedule(found, "" if given is None else " and ".join(_by_runs(given)))
    if margin is not None:
        yield from _saving(found, margin)
    yield from _hook()


def saving_margin() -> float | None:
    """Return how many seconds before the client deletes sessions they are put away.

    None if nobody has set that, or the settings are wrong, which is a finding of its own.
    """
    given = _given()
    return None if given is None else given.archive.before_cleanup


def _given() -> config.Settings | None:
    """Return the settings, None if they are wrong."""
    with suppress(SessrotateError):
        return config.read(None).settings
    return None


def _by_runs(given: config.Settings) -> Iterator[str]:
    """Yield what the settings have each run do, of what `setup` sets."""
    if given.archive.before_cleanup is not None:
        yield "save sessions before Claude Code deletes them"
    if given.codex.compress_after is not None:
        yield "compress unused Codex sessions"


def _folders() -> Iterator[Finding]:
    """Yield the folders that somebody named and that are not there: nothing is found in them."""
    for name in schedule.CARRIED:
        named = os.environ.get(name)
        if not named or name.startswith("XDG_"):  # those are made when they are needed
            continue
        is_config = name == "CLAUDE_CONFIG_DIR"
        path = clients.in_place().files.config_folder() if is_config else schedule.absolute(named)
        shown = printable(str(path), 1000)
        if not is_folder(path):
            yield finding("settings: no folder", path, name=name, folder=shown)
        elif is_config and path.name == "projects" and not is_folder(path / "projects"):
            shown = shown.removesuffix("/projects")
            yield finding("settings: projects", path, name=name, folder=shown)


def _settings() -> Iterator[Finding]:
    """Yield that the settings are wrong: every run would end at once."""
    try:
        config.read(None)
    except SessrotateError as error:
        yield finding("settings: wrong", user_folders.config_file(), why=error)


def _schedule(found: Installed | None, what: str) -> Iterator[Finding]:
    """Yield why nothing runs, where something should: `what` the settings have each run do."""
    now, last = time.time(), None
    log = user_folders.log_file()
    try:
        newest, run = run_log.last(), run_log.last(by_itself=True)
        last = None if run is None else units.seconds(run.at)
        if newest is not None and newest.code not in _WELL:
            yield finding("schedule: failed", log, at=printable(newest.at), code=newest.code)
    except SessrotateError as error:
        yield finding("schedule: no log", log, why=error)
    if found is not None:
        why = installed.problem(found, last, now)
        if why is not None:
            yield finding("schedule: wrong", found.where, why=why)
    elif what and now - (last or 0.0) > _RECENT and not installed.others():
        yield finding("schedule: none", user_folders.config_file(), what=what)


def _saving(found: Installed | None, margin: float) -> Iterator[Finding]:
    """Yield that the client deletes sessions too soon for a nightly run to save them."""
    rule, every = clients.in_place().cleanup.in_force(), units.DAY
    if found is not None and found.every is not None:
        every = max(found.period, units.DAY)
    if not rule.leaves_time(margin, every):
        path = rule.origin or clients.in_place().files.settings_file()
        yield finding("settings: wrong", path, why=rule.saving(margin, every))


def _hook() -> Iterator[Finding]:
    """Yield what is wrong with the client's hook and the rotations that it began."""
    try:
        there = installation.installed()
    except SessrotateError as error:
        yield finding("settings: wrong", clients.in_place().files.settings_file(), why=error)
    else:
        for why in unheard(there):
            yield finding("settings: wrong", there.path, why=why)
    for note in notes.notes():
        why = printable(note.error, 1000)
        where, at, then = note.where, printable(note.at), notes.way_out(note)
        yield finding("hook: failed", where.live, where.session, at=at, why=why, then=then)


def unheard(there: installation.Installed) -> Iterator[str]:
    """Yield why the client does not call our hook, or calls it in vain."""
    silenced = clients.in_place().calls.silenced()
    if there.commands and silenced:
        where, name = silenced
        yield (
            f"Claude Code does not call the hook: {name} is set in {printable(str(where), 1000)}. "
            "Remove that setting, or have `sessrotate schedule install` rotate once a night."
        )
    for program in there.missing:
        yield (
            f"The hook calls {printable(program)}, which no longer exists, or cannot be started: "
            "update it with `sessrotate hook install`."
        )
    for event in there.lacking:
        yield f"The hook is not called at {event}: update it with `sessrotate hook install`."
