"""What is wrong on this machine, and what to do about it. Only reads.

Promise: everything unfinished or wrong is named, with what to do, and nobody is advised to remove a
history that a living session goes on from. May import automation, hook, job, retention, in_place,
find, archive, segments, clients, system.

`findings.SAYS` is the table of what is said; here is what is looked at, in the same order. If
nothing is wrong, this takes no longer than listing folders, and reading the live files of rotated
sessions. What neither a client nor sessrotate wrote harms nobody and is never touched: it is named
only if it may be taken for a session, a segment or an archive.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from io import FileIO
from pathlib import Path

from msgspec.structs import replace

from sessrotate import clients, find, names, units
from sessrotate.archive import (
    away_file,
    clock,
    found_files,
    live_tail,
    owner,
    place,
    record,
    restored,
    state,
)
from sessrotate.archive.owner import Places
from sessrotate.archive.place import Place
from sessrotate.archive.state import State
from sessrotate.automation.findings import Finding, finding, not_running
from sessrotate.clients.common import is_file, is_folder, listed, real
from sessrotate.doctor.settings import Setting, settings
from sessrotate.errors import DamagedError, RequestError, SessrotateError, printable
from sessrotate.in_place import aside, fleet, recover, waiting
from sessrotate.in_place.obstacles import disk
from sessrotate.job.schedule.installed import installed
from sessrotate.retention import restore, sizes, trash
from sessrotate.system import inside, locks
from sessrotate.system.source import PIECE, is_zeros

__all__ = ["Finding", "Setting", "findings", "look"]

Say = Callable[..., Finding]
"""`finding`, of one archive."""


def look() -> tuple[list[Setting], list[Finding]]:
    """Return where things are, and everything to deal with; archives are looked for once."""
    archives = [*place.archives()]
    return [*settings(archives)], [*findings(archives)]


def findings(archives: Sequence[Place] | None = None) -> Iterator[Finding]:
    """Yield everything to deal with: the machine first, then archive by archive.

    `archives` are all of this machine, if somebody knows them.
    """
    archives = [*place.archives()] if archives is None else archives
    yield from _obstacles()
    yield from not_running(installed())
    yield from _kept()
    if doubt := clock.doubt(time.time()):
        yield finding("clock", place.root(), why=doubt)
    yield from _folders()
    sound: set[Path] = set()
    for where in archives:
        yield from _archive(where, sound)
        yield from _edited(where)
    yield from _live_files(archives, sound)
    yield from _beside()
    yield from _agents_alone({where.session for where in archives})


# ── this machine ──────────────────────────────────────────────────────────────────────────────


def _obstacles() -> Iterator[Finding]:
    """Yield what prevents every rotation on this machine."""
    projects, root = clients.in_place().files.projects_folder(), place.root()
    if not is_folder(projects):
        return
    above = next(filter(is_folder, (root, *root.parents)))
    if disk(real(above)) != disk(real(projects)):
        yield finding("settings: other disk", root)
    if not os.access(above, os.W_OK):
        yield finding("settings: not writable", above)


def _kept() -> Iterator[Finding]:
    """Yield the files that hold what nothing else of their session does."""
    for path in place.aside():
        if path.name.endswith(names.SUFFIXES):
            key = path.name.partition(names.SUFFIX)[0].rpartition(".")[0]
            session = names.session_of_key(key)
            # Where that can be no session's name, it is compared with itself: nothing is gone.
            live = path if session is None else place.of_session(session).live
            yield finding("kept", path, session or key, why=aside.said(path, live))


def _folders() -> Iterator[Finding]:
    """Yield the folders of clients and archives that are not read, or not written to."""
    links = [*owner.links()]
    for path, reason in find.hidden().items():
        if Path(path) not in links:
            yield finding("unread: folder", path, reason=reason)
    yield from (finding("settings: link", path) for path in links)
    for folder in listed(place.root()):
        is_known = folder.name in {*place.FOLDERS, place.README} or names.is_hidden(folder.name)
        if not is_known and is_folder(folder):
            yield finding("stranger: earlier", folder)


# ── an archive ────────────────────────────────────────────────────────────────────────────────


def _archive(where: Place, sound: set[Path]) -> Iterator[Finding]:
    """Yield what is wrong with an archive; add its live file to `sound` if nothing is with that."""
    say = partial(finding, path=where.archive, session=where.session, live=where.live)
    try:
        with state.opened(where) as found:
            yield from _put_away(found, say) if found.is_away else _in_place(found, say)
            yield from _restored(found, say)
            details = [problem.detail for problem in found.cuts]
            if details:
                then = _swept(where) if found.kept else [live_tail.KEEPS_TRIMMED]
                yield say("cut", why=" ".join([*details, *then]))
            if found.is_rotated and not fleet.may_lack_rows(found):
                sound.add(where.live)
    except DamagedError as error:
        yield say("damaged: archive", why=found_files.with_way_out(where, error))
    except SessrotateError as error:
        yield say("damaged: archive", why=error)


def _put_away(found: State, say: Say) -> Iterator[Finding]:
    """Yield what is not as `archive` leaves a session; reads samples of what was left plain.

    Raises DamagedError if what was put away is lost.
    """
    where, note = found.place, away_file.note(found.place)
    is_half = note is None or note.standing != "archived"
    try:
        away_file.check_single(where) if is_half else away_file.check_away(where)
    except RequestError as error:
        yield say("doubled: put away", why=error)
        return
    if not where.project:
        yield say("damaged: project")
    elif note is not None and note.standing == "unarchiving":
        yield say("interrupted: bringing back")
    elif is_half or any(map(names.is_leftover, found.listing)):
        yield say("interrupted: putting away")
    elif found.problem is not None:
        yield say("damaged: archive", why=found.problem)
    elif sizes.left_plain(where).gained:
        yield say("interrupted: plain")
    else:
        yield from _sealed(found, say)


def _in_place(found: State, say: Say) -> Iterator[Finding]:
    if todo := recover.plan(found).sentence:
        if not locks.is_held(found.place.lock):  # else somebody is at work on it
            yield say("interrupted: operation", why=todo, command=found.finished_by)
        return
    # By several files, as one alone would be its own: `_live_files` names them, and what only
    # follows from there being no owner needs no other remedy.
    is_claimed = found.is_gone and any(place.live_files(found.place.session))
    if found.is_gone and found.is_rotated and found.problem is None and not is_claimed:
        yield _gone(found, say)
    elif found.problem is not None and not is_claimed:
        yield say("damaged: archive", why=found.problem)
    elif lost := _lost(found):
        yield say("damaged: segments", lost=units.some(lost))
    yield from _not_listed(found, say)
    yield from _sealed(found, say)


def _gone(found: State, say: Say) -> Finding:
    """Return what to say of a session whose live file is gone: whether it lives, its files say."""
    archive = found.place.archive
    for path in clients.in_place().files.sessions():
        copied = owner.of_copy(path)
        if copied is not None and copied.archive == archive:
            return say("renamed", renamed=path)
    is_freed = restore.pruned(found, found.manifest)[1]
    return say("orphan: freed" if is_freed else "orphan: whole")


def _lost(found: State) -> list[str]:
    """Return the segments that nobody pruned, and that are not in their archive."""
    if found.intent is not None or found.manifest is None:
        return []
    there = {*found.listing, *trash.in_trash(found.place)}
    entries = [entry for entry in found.manifest.segments if entry.pruned is None]
    files = [found.manifest.file_of(entry) for entry in entries]
    return [printable(file) for file in files if file not in there]


def _not_listed(found: State, say: Say) -> Iterator[Finding]:
    if found.intent is None and found.manifest is not None:
        session, entries = found.place.session, found.manifest.segments
        ours = {names.sealed_file(session, entry.segment.index) for entry in entries}
        others = [each for each in names.segments_among(found.listing, session) if each not in ours]
        if others:
            yield say("stranger: segment", other=printable(others[0], 60))


def _sealed(found: State, say: Say) -> Iterator[Finding]:
    """Yield what is wrong with an archive's sealed segments and its trash."""
    due = trash.due_of(found, 0, 0)
    if due.left:
        yield say("interrupted: pruning", why=due.left)


def _restored(found: State, say: Say) -> Iterator[Finding]:
    """Yield what of a restored session is not as it was put back, or is not known any more."""
    kept = None if found.intent is not None else found.restored
    if kept is not None:
        if (lacks := restored.lacking(found)) is not None:  # it reads the live file
            yield say("lacking", why=lacks)
        elif not kept.at and not found.is_away:
            yield say("damaged: date")
    elif found.record.restored == record.UNKNOWN and found.header is not None:
        yield say("damaged: record", record=found.place.archive / names.RECORD)


def _swept(where: Place) -> Iterator[str]:
    """Say when the client deletes what it kept: with the session, by the time of its file."""
    with suppress(OSError):
        status = where.live.stat()
        at = clients.in_place().cleanup.in_force().deletes_at(status, is_desktop=False)
        if at is not None:
            day = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
            yield f"Its clean-up deletes that on {day}, unless you continue the session."


def _edited(where: Place) -> Iterator[Finding]:
    if not os.path.lexists(where.waiting):
        return
    with suppress(SessrotateError), state.opened(where) as found:  # said of the archive already
        for path, detail in waiting.problems(found):
            yield finding("edited", path, where.session, why=detail)


# ── a live file ───────────────────────────────────────────────────────────────────────────────


def _live_files(archives: Sequence[Place], sound: set[Path]) -> Iterator[Finding]:
    """Yield what is wrong with live files, but those that were found `sound` with their archives.

    What is so of several files of a session, and names them, comes once. Where the folder of all
    archives is gone, there is the same to do for all of its sessions.
    """
    places = Places(archives)
    once: dict[tuple[str, str], Finding] = {}
    for path in clients.in_place().files.sessions():
        where = places.of(path)
        if where is None or where.live not in sound:
            for each in _live_file(path, places):
                key = each.session, "" if each.kind == "damaged" else each.detail
                first = once.setdefault(key, each)
                if first is not each and each.kind == "damaged":  # the same live tail once more
                    copy = f"{printable(str(path))} is another copy."
                    once[key] = replace(first, detail=f"{first.detail} {copy}")
    found = [*once.values()]
    lost = {each.session: printable(each.session) for each in found if each.kind == "damaged"}
    folder = place.root() / place.ARCHIVES
    if len(lost) > 1 and not is_folder(folder):
        named = units.some([*lost.values()])
        yield finding("damaged: all archives", folder, many=len(lost), named=named)
        found = [each for each in found if each.session not in lost]
    yield from found


def _live_file(path: Path, places: Places) -> Iterator[Finding]:
    """Yield the first thing that is wrong with a live file."""
    begins_so = live_tail.begins_so(path)
    strange = None if begins_so else _strange(path)
    if strange is not None:
        yield strange
        return
    if (where := places.of(path)) is None:
        return
    if (why := owner.problem(where)) is not None:
        yield finding("copy", path, where.session, why=why)
    elif begins_so and (lost := owner.without_archive(path, places)) is not None:
        yield finding("damaged: archive", lost.archive, lost.session, why=_problem(lost))
    elif begins_so:
        if (why := fleet.rewound_problem(where)) is not None:
            yield finding("rewound", path, where.session, why=why)
    elif not place.holds_something(where.archive):  # else it is said of that
        yield from _trimmed(path, where)


def _trimmed(path: Path, where: Place) -> Iterator[Finding]:
    """Yield what a client kept of a session that was never rotated."""
    if files := where.client.trims.replaced(where.live, where.session):
        details = [live_tail.trimmed(files, where.session).detail, *_swept(where)]
        yield finding("cut", path, where.session, why=" ".join(details))


def _problem(lost: Place) -> str:
    try:
        with state.opened(lost) as found:
            return str(found.problem)
    except SessrotateError as error:
        return str(error)


def _strange(path: Path) -> Finding | None:
    """Return what to say of a file that is only called like a session, or cannot be read."""
    try:
        if names.is_hidden(path.name) or not is_file(path):  # opening a pipe would wait
            return None
        if path.is_symlink():
            return finding("stranger: link", path)
        if is_zeros(path):
            return finding("stranger: zeros", path, why=fleet.ZEROS)
        with FileIO(inside.opened_at(path), "rb") as file:
            is_empty = not os.fstat(file.fileno()).st_size  # clients leave such files
            is_any = is_empty or clients.in_place().files.may_have_row(
                iter(partial(file.read, PIECE), b"")
            )
    except FileNotFoundError:
        return None
    except (DamagedError, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        then = "remove the cause, or put the file back from a backup"
        if isinstance(error, PermissionError):
            then = "give yourself permission to read it"
        elif getattr(error, "errno", None) == errno.EIO:
            then = "the disk may be failing, so copy what can be read to another one"
        return finding("unread: session", path, reason=reason, then=then)
    return None if is_any else finding("stranger: no row", path)


# ── beside sessions ───────────────────────────────────────────────────────────────────────────


def _beside() -> Iterator[Finding]:
    """Yield what lies beside sessions, and sessions of Codex that nothing can read."""
    for client in clients.clients():
        yield from (finding("stranger: copy", path) for path in client.copies())
    cold = clients.cold()
    yield from (finding("stranger: draft", path) for path in cold.left_behind(time.time()))
    for path in cold.seconds():
        has_first = os.path.lexists(cold.form(path))
        yield finding("stranger: second" if has_first else "stranger: alone", path)
    for path in cold.FORMAT.sessions():
        if path != cold.plain(path) and not cold.is_readable(path):
            yield finding("damaged: rollout", path)


def _agents_alone(known: set[str]) -> Iterator[Finding]:
    """Yield sessions of which only transcripts of agents are there, and that have no archive."""
    found: dict[Path, list[Path]] = {}
    for live, path in clients.in_place().beside.alone():
        if names.session_of(live.name) not in known:
            found.setdefault(live, []).append(path)
    for live, paths in found.items():
        some = units.some([printable(str(path)) for path in paths], 1)
        session = names.session_of(live.name)
        yield finding("stranger: agents", paths[0], session, paths=some, live=live)
