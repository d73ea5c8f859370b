"""The archive of a session that its owner restored: it stays where it is until its time is over.

Rule: only reads. A note in the archive says since when the live file is whole. As long as that is
so, nothing goes on from the archive, and nothing of the history is in it alone; a live file that
has its header again goes on from it as before. The note stays when the rest goes: nothing but its
owner rotates such a session.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from sessrotate import clients, names
from sessrotate.archive import live_tail, place, record
from sessrotate.archive.found_files import FoundFiles, Restored, of_restored, restored_archive
from sessrotate.archive.place import Place
from sessrotate.clients.common import is_file, listed, names_in, real
from sessrotate.errors import InputError, RefusedError, SessrotateError, printable
from sessrotate.model import SealedSegment, Segment
from sessrotate.segments import check, load
from sessrotate.system import disk_use


def of(where: Place) -> Restored | None:
    """Return what is left of the archive of a session whose live file is whole; None if none is.

    Told by how the live file begins; `state.opened` reads more.
    """
    if not (at := record.told(where.archive).restored):  # as of one behind a link
        return None
    is_whole = os.path.lexists(where.live) and not live_tail.begins_so(where.live)
    listing, listed = frozenset(names_in(where.archive)), None
    with suppress(RefusedError):  # of a newer sessrotate's, all is counted the same
        listed = of_restored(where.archive, listing)
    found = restored_archive(where.archive, where.session, listing, at, listed)
    return found if found.files and is_whole else None


def whole(sessions: Iterable[str]) -> int:
    """Return how many of these `marked` sessions have a live file: no rule takes them."""
    return sum(is_file(place.of_session(each).live) for each in sessions)


def every(sessions: Iterable[str]) -> Iterator[Restored]:
    """Yield what is left of each archive of `marked` sessions that are whole again."""
    projects = real(clients.in_place().files.projects_folder())
    for session in sessions:
        found = of(place.of_session(session, projects))
        if found is not None:
            yield found


def trash_bytes() -> int:
    """Return what takes room on the disk until a grace period is over.

    That is what was pruned, and the archives of restored sessions.
    """
    pruned = disk_use.of(*(where.archive / names.TRASH for where in place.archives()))
    return pruned + sum(found.allocated for found in every(marked()))


# ── whether the live file has all of it ──────────────────────────────────────────────────────


def is_held(found: FoundFiles) -> bool:
    """Tell whether the live file has all that is left of its archive. Reads as much of it."""
    kept = found.restored
    if kept is not None and not (kept.has_segments or kept.others):
        return True  # a freeing was interrupted before its end
    if kept is None or kept.listed is None or found.live is None:
        return False
    with suppress(SessrotateError, OSError):
        return live_tail.holds(found.live, kept.listed.segments)
    return False


def is_needed(found: FoundFiles, copied: Callable[[], Collection[str]]) -> bool:
    """Tell whether a live file of any project goes on from what is left, or a copy under any name.

    `copied` is as the function of that name; it is asked last, since it looks at every session.
    """
    kept, session = found.restored, found.place.session
    if kept is None or kept.listed is None:
        return False
    for each in place.live_files(session):
        header = live_tail.tail_header(each.live)
        if header is not None and live_tail.ends_at(kept.listed, header):
            return True
    return session in copied()


def copied() -> frozenset[str]:
    """Return the ids of the sessions of whose live tail there is a copy under another name.

    Looks at the first bytes of every session.
    """
    found, files = set(), clients.in_place().files
    for path in (*files.sessions(), *files.copies()):
        header = live_tail.tail_header(path, but=names.session_of(path.name))
        if header is not None:
            found.add(header.root)
    return frozenset(found)


def is_owed(found: FoundFiles) -> bool:
    """Tell whether what its owner restored is whole in the archive alone, and so stays there.

    The live file is gone since, or a program wrote the short one back.
    """
    return bool(found.record.restored) and found.manifest is not None


def lacking(found: FoundFiles) -> str | None:
    """Say that a live file lacks what was restored to it, and what helps; None if it does not."""
    kept, where = found.restored, found.place
    if kept is None or not (kept.has_segments or kept.others) or found.kept:
        return None
    live, archive = printable(str(where.live)), printable(str(where.archive))
    session = printable(where.session)
    if kept.listed is None or kept.others:
        lost = f"no {names.MANIFEST} that can be read" if kept.listed is None else "segments"
        told = "" if kept.listed is None else f" that its {names.MANIFEST} does not list"
        return (
            f"{archive}, from before {session} was restored, has {lost}{told}. The live file may "
            f"lack some of it, so the archive stays. `sessrotate aside {session}` puts it aside, "
            "whole, where `sessrotate stitch --allow-gaps` reads it."
        )
    if is_held(found):
        return None
    since = f" on {printable(kept.at)}" if kept.at else ""
    first = f"`sessrotate restore {session}` puts it back first; then " if found.is_away else ""
    return (
        f"{live} does not match the history that was restored{since}. {archive} still has that: "
        f"{first}move the file away, then `sessrotate restore {session}` brings it back."
    )


# ── what a rotation by name does with it ─────────────────────────────────────────────────────


def is_left(found: FoundFiles) -> bool:
    """Tell whether anything is left of the archive of a session that is whole again."""
    kept = found.restored
    return kept is not None and bool(kept.has_segments or kept.others)


def taken_over(
    found: FoundFiles, parts: Sequence[Segment], first: int, *, proves: bool
) -> tuple[SealedSegment, ...]:
    """Return the archived segments that need not be sealed again; all that are left, or none.

    They are those from number `first` on: the live file does not count them, because it is whole
    again, or older than they are. `parts` are what it is cut into. Both are read whole if that
    `proves` it.
    """
    kept = found.restored
    if kept is not None:
        listed = None if kept.others or not kept.has_segments else kept.listed
    else:  # what an interrupted rotation made goes before this one
        listed = None if found.is_pack or found.intent is not None else found.manifest
    if listed is None:
        return ()
    entries = listed.segments[first:]
    spans = [entry.segment.span for entry in entries]
    is_pruned = any(entry.pruned is not None for entry in entries)
    if is_pruned or spans != [part.span for part in parts[: len(spans)]]:
        return ()
    if proves and kept is not None and not is_held(found):
        return ()
    there = load.of_manifest(found.place.archive, found.listing, listed)
    try:
        for entry in entries if proves else ():
            check(there, entry.segment.index)
    except InputError:
        return ()
    return entries


# ── whose owner wants it whole ───────────────────────────────────────────────────────────────


def is_marked(where: Place) -> bool:
    """Tell whether the owner restored a session and has not rotated it by name since."""
    return record.told(where.archive).restored is not None


def marked() -> Iterator[str]:
    """Yield the id of every session that is marked so, in order."""
    for folder in listed(place.root() / place.ARCHIVES):
        session = names.session_of_key(folder.name)
        if session is not None and record.told(folder).restored is not None:
            yield session
