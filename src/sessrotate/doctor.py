"""What is wrong on this machine, and what to do about it. Only reads.

Rule: every finding says how to resolve it. If nothing is wrong, this takes no longer than listing
folders.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sessrotate import names
from sessrotate.archive import (
    archived_file,
    continued,
    copies,
    found_files,
    place,
    restored,
    state,
)
from sessrotate.clients.claude import client as claude
from sessrotate.errors import DamagedError, RequestError, SessrotateError, printable
from sessrotate.hook import installation, notes
from sessrotate.in_place import recover, swap, waiting
from sessrotate.in_place.obstacles import disk
from sessrotate.job import run_log, schedule
from sessrotate.retention import clock_check, transaction, trash
from sessrotate.segments import live_header
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.archive.place import Place
    from sessrotate.archive.state import State


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to deal with: where it is, its kind in one word, and a sentence for a person.

    Kinds: interrupted (an unfinished rotation, restoration, prune, compression or archiving),
    orphan (an archive whose session is gone), doubled (an archived session has a live file
    again, or an archive two), overwritten (a restored live file is the short one again),
    damaged, edited (a replaced live file that waits was changed in place), copy (a copy of a
    session's live file, which is no session), trash (it has files that were never pruned),
    rebuilt (pins were lost with the manifest), clock (it is not believed, so nothing is pruned
    or freed), hook (a rotation that the hook began failed), kept (a file that was saved while
    its session was replaced), settings (nothing can be rotated, or the hook cannot be called;
    `session` is empty).
    """

    session: str
    path: str
    kind: str
    detail: str


def findings() -> Iterator[Finding]:
    """Yield everything to deal with: the machine first, then archive by archive."""
    yield from _obstacles()
    yield from _hook()
    yield from _kept()
    yield from _clock()
    for where in place.archives():
        for kind, detail in _look(where):
            yield Finding(where.session, str(where.archive), kind, detail)
        yield from _edited(where)
    for path in filter(continued.begins_so, claude.sessions()):
        copied = copies.of_copy(path)
        if copied is not None:
            yield Finding(
                names.session_of(path.name), str(path), "copy", copies.told(path, copied.session)
            )
            continue
        lost = place.of(path)
        if lost is not None and not lost.archive.exists() and _is_rotated(lost):
            yield _without_archive(lost)
    for trashed in restored.every():
        if trashed.at is None:
            yield Finding(
                "",
                str(trashed.folder),
                "trash",
                "This is in the trash of restored sessions, and nothing says whose it is: move or "
                "remove it.",
            )


def _edited(where: Place) -> Iterator[Finding]:
    with suppress(SessrotateError):  # said of the archive already
        for path, detail in waiting.problems(where):
            yield Finding(where.session, str(path), "edited", detail)


def _without_archive(lost: Place) -> Finding:
    with state.opened(lost) as found:
        if found.trashed is not None:
            folder = str(found.trashed.folder)
            return Finding(lost.session, folder, "overwritten", str(found.problem))
        return Finding(lost.session, str(lost.archive), "damaged", str(found.problem))


def _clock() -> Iterator[Finding]:
    """Yield why nothing goes by age, where anything could."""
    verdict = clock_check.look(trash.GRACE, time.time(), run_log.last_at())
    if verdict.doubt and clock_check.is_at_stake():
        yield Finding("", str(place.clock_file()), "clock", verdict.doubt)


def _hook() -> Iterator[Finding]:
    """Yield what is wrong with the client's hook and the rotations that it began."""
    try:
        installed = installation.installed()
    except SessrotateError as error:
        yield Finding("", str(claude.settings_file()), "settings", str(error))
    else:
        for program in installed.missing:
            yield Finding(
                "",
                str(installed.path),
                "settings",
                f"The hook calls {printable(program)}, which does not exist any more: update it "
                "with `sessrotate hook install`.",
            )
    for note in notes.notes():
        problem = note.error or "It was stopped before it finished."
        yield Finding(
            note.where.session,
            str(note.where.live),
            "hook",
            f"The rotation at the end of the session ({printable(note.at)}) failed. "
            f"{printable(problem, 1000)} Try again with `sessrotate split --in-place "
            f"{printable(note.where.session)}`.",
        )


def _kept() -> Iterator[Finding]:
    """Yield the files that two programs wrote at the same moment."""
    for path in place.aside():
        if path.name.endswith(names.SUFFIX):
            yield Finding(
                path.name.rpartition(".")[0].rpartition(".")[0],
                str(path),
                "kept",
                "Another program saved the session while sessrotate replaced it, and this is the "
                "file that did not stay: compare it with the session, then remove it.",
            )


def _is_rotated(where: Place) -> bool:
    try:
        with Source.itself(where.live) as source:
            return live_header.parse(continued.first_line(source), where.session) is not None
    except (SessrotateError, OSError):
        return False


def _look(where: Place) -> Iterator[tuple[str, str]]:
    try:
        with state.opened(where) as found:
            if found.is_archived:
                yield from _away(found)
                return
            todo = recover.plan(found)
            if todo.sentence:
                yield (
                    "interrupted",
                    (
                        f"{todo.sentence} To do that now: `sessrotate {_command(found)} "
                        f"{printable(where.session)}`. If that fails: `sessrotate aside "
                        f"{printable(where.session)}`."
                    ),
                )
            elif found.is_gone and found.is_rotated:
                yield _gone(where)
            elif (problem := found.problem) is not None:
                yield "damaged", problem
            elif lacking := _lacking(found):
                yield "damaged", lacking
            if not todo.sentence:
                yield from _sealed(where)
    except DamagedError as error:
        yield "damaged", str(found_files.with_way_out(where, error))
    except SessrotateError as error:
        yield "damaged", str(error)


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


def _gone(where: Place) -> tuple[str, str]:
    """Return what to say of an archive whose live file is gone."""
    name, session = printable(str(where.live)), printable(where.session)
    others = [printable(str(path)) for path in place.live_files(where)]
    if others:
        return "doubled", (
            f"{name} is gone, and its history is that of {' or '.join(others)}: move all but the "
            "one that you use out of the folder of projects."
        )
    return "orphan", (
        f"{name} is gone, and its archive is still here: bring the session back with `sessrotate "
        f"restore {session}`. If you deleted it for good, remove this folder."
    )


def _sealed(where: Place) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with an archive's sealed segments and its trash."""
    found = trash.due(where, 0, 0)
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
    where, note = found.place, archived_file.note(found.place)
    name = printable(where.session)
    is_half = note is None or note.standing != "archived"
    try:
        archived_file.check_single(where) if is_half else archived_file.check_away(where)
    except RequestError as error:
        yield "doubled", str(error)
        return
    if is_half or any(map(swap.is_leftover, found.listing)):
        yield (
            "interrupted",
            (
                "Archiving was interrupted: finish with `sessrotate archive "
                f"{name}`, or undo it with `sessrotate unarchive {name}`."
            ),
        )
    else:
        yield from _sealed(where)


def _command(found: State) -> str:
    is_restore = found.intent is not None and found.intent.operation == "restore"
    return "restore" if is_restore else "split --in-place"


def _obstacles() -> Iterator[Finding]:
    """Yield what prevents every rotation on this machine."""
    projects, root = claude.projects_folder(), place.root()
    if not projects.is_dir():
        return
    above = next(folder for folder in (root, *root.parents) if folder.exists())
    if disk(above.resolve()) != disk(projects.resolve()):
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


@dataclass(frozen=True, slots=True)
class Setting:
    """One fact about where things are, for a person who wonders why nothing is found."""

    name: str
    value: str


def settings() -> Iterator[Setting]:
    """Yield which folders are used, and how many sessions and archives they have."""
    projects = claude.projects_folder()
    yield Setting("Claude Code projects", str(projects))
    yield Setting("sessions", str(sum(1 for _ in claude.sessions())))
    yield Setting("archive", str(place.root()))
    yield Setting("archives", str(sum(1 for _ in place.archives())))
    yield Setting("archives put aside", str(len(place.aside())))
    trashed = [*restored.every()]
    held = sum(entry.bytes for entry in trashed)
    yield Setting("archives of restored sessions in the trash", f"{len(trashed)}, {held:,} bytes")
    yield Setting("restored sessions, rotated by name only", str(sum(1 for _ in restored.marked())))
    yield Setting("hook", _installed())
    timer = schedule.found()
    yield Setting("schedule", "none found" if timer is None else str(timer))
    yield Setting("last run", _last_run())


def _last_run() -> str:
    try:
        last = run_log.last()
    except SessrotateError:
        return "unknown"
    return "never" if last is None else f"{last.at}, exit code {last.code}"


def _installed() -> str:
    try:
        found = installation.installed()
    except SessrotateError:
        return "unknown"
    if not found.commands:
        return "not installed"
    disabled = (
        " (but the client runs no hooks: disableAllHooks is set)" if found.is_disabled else ""
    )
    return f"{'; '.join(found.commands)}{disabled}"
