"""What is wrong on this machine, and what to do about it. Only reads.

Promise: everything unfinished or wrong is named, with what to do. In come the folders of clients
and archives as they are; out come findings and settings. May import hook, job, retention, in_place,
find, archive, segments, clients, system.

Rule: every finding says how to resolve it. If nothing is wrong, this takes no longer than listing
folders, and reading the live files of rotated sessions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from sessrotate import names
from sessrotate.archive import clock, continued, found_files, owner, place, record, restored, state
from sessrotate.archive.owner import Places
from sessrotate.archive.place import Place
from sessrotate.archive.restored import Restored
from sessrotate.archive.state import State
from sessrotate.automation.findings import Finding, not_running
from sessrotate.clients.claude import client as claude
from sessrotate.clients.common import is_folder, real
from sessrotate.doctor import away, cut, strangers
from sessrotate.doctor.settings import Setting, settings
from sessrotate.errors import DamagedError, SessrotateError, printable
from sessrotate.in_place import aside, fleet, recover, waiting
from sessrotate.in_place.obstacles import disk
from sessrotate.job.schedule.installed import installed
from sessrotate.retention import transaction, trash
from sessrotate.system import locks

__all__ = ["Finding", "Setting", "findings", "look", "settings"]


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
    yield from _clock()
    yield from (Finding("", str(path), "unread", told) for path, told in strangers.hidden())
    yield from (Finding("", str(path), "settings", told) for path, told in strangers.links())
    yield from (Finding("", str(path), "stranger", told) for path, told in strangers.earlier())
    sound: set[Path] = set()
    for where in archives:
        for kind, detail in _look(where, sound):
            yield Finding(where.session, str(where.archive), kind, detail)
        yield from _edited(where)
    is_there = is_folder(place.root() / place.ARCHIVES)
    lost = {} if is_there else {each.session: each for each in owner.every_without_archive()}
    is_all = len(lost) > 1
    if is_all:
        yield _all_lost(lost)
    places = owner.Places(archives)
    for path in claude.sessions():
        if (own := places.of(path)) is not None and own.live in sound:
            continue
        look = _headed if continued.begins_so(path) else _headless
        found = look(path, places)
        if found is not None and not (is_all and found.session in lost):
            yield found
    yield from (Finding("", str(path), "stranger", told) for path, told in strangers.copies())
    for path, told in strangers.beside_rollouts(time.time()):
        yield Finding("", str(path), "stranger", told)
    for path, told in strangers.damaged_rollouts():
        yield Finding("", str(path), "damaged", told)
    for session, transcript, told in strangers.agents_alone(archives):
        yield Finding(session, str(transcript), "stranger", told)


def _headed(path: Path, places: Places) -> Finding | None:
    """Return what is wrong with a live file that begins like a rotated one."""
    if (told := owner.not_own(path, places)) is not None:
        return Finding(names.session_of(path.name), str(path), "copy", told)
    if (lost := owner.without_archive(path, places)) is not None:
        return _without_archive(lost)
    where = places.of(path)
    lacking = None if where is None else fleet.rewound_problem(where)
    if where is None or lacking is None:
        return None
    return Finding(where.session, str(path), "rewound", lacking)


def _all_lost(sessions: Collection[str]) -> Finding:
    """Return that the folder of all archives is gone: the same to do for each of its sessions."""
    named = ", ".join(printable(each) for each in [*sessions][:3])
    more = f" and {len(sessions) - 3:,} more" if len(sessions) > 3 else ""  # noqa: PLR2004 - words
    return Finding(
        "",
        str(place.root() / place.ARCHIVES),
        "damaged",
        f"This folder is gone, and with it what {len(sessions):,} sessions ({named}{more}) had "
        "before their live tails: put it back, from the trash, a backup, or where you moved it.",
    )


def _headless(path: Path, places: Places) -> Finding | None:
    if (strange := strangers.no_session(path)) is not None:
        return Finding("", str(path), *strange)
    if (told := owner.not_own(path, places)) is not None:
        return Finding(names.session_of(path.name), str(path), "copy", told)
    where = places.of(path)
    is_rotated = where is not None and place.holds_something(where.archive)  # said of that
    trimmed = None if where is None or is_rotated else cut.kept(where)
    return (
        None
        if where is None or trimmed is None
        else Finding(where.session, str(path), "cut", trimmed)
    )


def _edited(where: Place) -> Iterator[Finding]:
    if not os.path.lexists(where.waiting):
        return
    with suppress(SessrotateError), state.opened(where) as found:  # said of the archive already
        for path, detail in waiting.problems(found):
            yield Finding(where.session, str(path), "edited", detail)


def _without_archive(lost: Place) -> Finding:
    try:
        with state.opened(lost) as found:
            problem = str(found.problem)
    except SessrotateError as error:
        problem = str(error)
    return Finding(lost.session, str(lost.archive), "damaged", problem)


def _clock() -> Iterator[Finding]:
    if doubt := clock.doubt(time.time()):
        yield Finding("", str(place.root()), "clock", doubt)


def _kept() -> Iterator[Finding]:
    """Yield the files that two programs wrote at the same moment."""
    for path in place.aside():
        if path.name.endswith(names.SUFFIX):
            key = path.name.rpartition(".")[0].rpartition(".")[0]
            session = names.session_of_key(key)
            # Where that can be no session's name, it is compared with itself: nothing is gone.
            live = path if session is None else place.of_session(session).live
            yield Finding(session or key, str(path), "kept", aside.said(path, live))


def _look(where: Place, sound: set[Path]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with an archive; add its live file to `sound` if nothing is with that."""
    try:
        with state.opened(where) as found:
            yield from _away(found) if found.is_archived else _standing(where, found)
            if found.intent is None and found.restored is not None:
                yield from _of_restored(found, found.restored)
            elif found.record.restored == record.UNKNOWN and found.header is not None:
                yield "damaged", _unreadable(found)
            yield from cut.told(found)
            if found.is_rotated and not fleet.may_lack_rows(found):
                sound.add(where.live)
    except DamagedError as error:
        yield "damaged", str(found_files.with_way_out(where, error))
    except SessrotateError as error:
        yield "damaged", str(error)


def _standing(where: Place, found: State) -> Iterator[tuple[str, str]]:
    todo, session = recover.plan(found), printable(where.session)
    if todo.sentence:
        if locks.is_held(where.lock):
            return  # nothing is interrupted: somebody is at work on it
        command = "rotate" if found.intent is None else found.intent.finished_by
        now = f"To do that now: `sessrotate {command} {session}`."
        yield "interrupted", f"{todo.sentence} {now} If that fails: `sessrotate aside {session}`."
    elif found.is_gone and found.is_rotated and found.problem is None:
        yield away.gone(found)
    elif (problem := found.problem) is not None:
        yield "damaged", problem
    elif lacking := _lacking(found):
        yield "damaged", lacking
    if not todo.sentence:
        yield from _strange(found)
        yield from _sealed(found)


def _of_restored(found: State, kept: Restored) -> Iterator[tuple[str, str]]:
    """Yield what of a restored session is not as it was put back."""
    if (lacks := restored.lacking(found)) is not None:  # it reads the live file
        yield "lacking", lacks
    elif not kept.at and not found.is_archived:
        yield "damaged", _undated(found)


def _unreadable(found: State) -> str:
    """Say that nobody knows whether a rotated session was restored before."""
    path, name = printable(str(found.place.archive / names.RECORD)), printable(found.place.session)
    return (
        f"{path} is damaged, so nothing rotates {name} by itself: you may have restored it. "
        f"`sessrotate rotate {name}` makes that good."
    )


def _undated(found: State) -> str:
    """Say that nobody knows since when a session is whole."""
    live, archive = printable(str(found.place.live)), printable(str(found.place.archive))
    name = printable(found.place.session)
    return (
        f"{live} has all that is in {archive}, and nobody knows since when: that archive stays for "
        f"ever. `sessrotate rotate {name}` uses it again; `sessrotate aside {name}` puts it aside."
    )


def _strange(found: State) -> Iterator[tuple[str, str]]:
    for told in (strangers.in_archive(found), strangers.unlisted(found)):
        if told is not None:
            yield "stranger", told


def _lacking(found: State) -> str | None:
    """Return what to say of segments that nobody pruned, and that are not in their archive."""
    if found.intent is not None or found.manifest is None:
        return None
    there = {*found.listing, *transaction.in_trash(found.place)}
    entries = [entry for entry in found.manifest.segments if entry.pruned is None]
    files = [transaction.file_of(found.manifest, entry) for entry in entries]
    lost = [printable(file) for file in files if file not in there]
    if not lost:
        return None
    more = f" and {len(lost) - 3:,} more" if len(lost) > 3 else ""  # noqa: PLR2004 - a sentence
    return (
        f"{', '.join(lost[:3])}{more} of this archive are missing, and nobody pruned them: put "
        f"them back from a backup, then `sessrotate verify {printable(found.place.session)}` says "
        "whether all is whole."
    )


def _sealed(opened: State) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with an archive's sealed segments and its trash."""
    where, found = opened.place, trash.due_of(opened, 0, 0)
    name = printable(where.session)
    if found.is_rebuilt:
        lost = "The pins of this archive were lost with its manifest, so nothing of it is pruned"
        agree = f"then agree with `sessrotate prune {name} --accept-rebuilt`"
        yield "rebuilt", f"{lost} or freed. Pin again what should stay, {agree}."
    if found.left:
        yield (
            "interrupted",
            f"{found.left} To finish: `sessrotate prune --empty-trash {name}`.",
        )
    if found.strangers:
        folder = printable(str(transaction.trash(where)))
        many = f"{len(found.strangers):,} file{'' if len(found.strangers) == 1 else 's'}"
        yield (
            "trash",
            f"{folder} has {many} that sessrotate never pruned: move or remove them.",
        )


def _away(found: State) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with an archived session."""
    told = away.put_away(found)
    if told is not None:
        yield told
    else:
        yield from _sealed(found)


def _obstacles() -> Iterator[Finding]:
    """Yield what prevents every rotation on this machine."""
    projects, root = claude.projects_folder(), place.root()
    if not is_folder(projects):
        return
    above = next(filter(is_folder, (root, *root.parents)))
    if disk(real(above)) != disk(real(projects)):
        yield Finding(
            "",
            str(root),
            "settings",
            "This is on another file system than the sessions, or in another mount of it, and "
            "files cannot be moved there atomically: make it a folder on the same file system, "
            "or mount the client's whole folder.",
        )
    if not os.access(above, os.W_OK):
        yield Finding(
            "",
            str(above),
            "settings",
            "This folder is not writable, and archives go there: make it writable.",
        )
