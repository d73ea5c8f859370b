"""What to say of an archive whose session is not where its client looks: gone, or put away.

Promise: nobody is advised to remove a history that a living session goes on from.

Rule: whether a session lives is known by what its file says, not by what it is called. Only reads.
"""

from __future__ import annotations

from pathlib import Path

from sessrotate import names
from sessrotate.archive import archived_file, continued, owner, place
from sessrotate.archive.place import Place
from sessrotate.archive.state import State
from sessrotate.clients.claude import client as claude
from sessrotate.errors import RequestError, printable
from sessrotate.retention import left_plain, restore


def gone(found: State) -> tuple[str, str]:
    """Return the kind of finding and its sentence, of a session whose live file is gone."""
    where = found.place
    name, session = printable(str(where.live)), printable(where.session)
    files = place.live_files(where.session)
    others = [
        printable(str(each.live)) for each in files if continued.fits(each.live, where.archive)
    ]
    if others:  # of one, it would be the session's own
        return "doubled", (
            f"{name} is gone, and its history is that of {' or '.join(others)}: move all but the "
            "one that you use out of the folder of projects."
        )
    renamed = next((path for path in claude.sessions() if _goes_on_from(path, where)), None)
    if renamed is not None:
        return "renamed", (
            f"{name} is gone, and {printable(str(renamed))} goes on from its archive: give it that "
            "name back. This folder is its history: keep it."
        )
    if restore.pruned(found, found.manifest)[1]:
        return "orphan", (
            f"{name} is gone, and a part of its archive was freed for good, so that no client can "
            f"have it whole again: `sessrotate export --allow-gaps {session} -o FILE` writes the "
            "rest. If you need none of it, remove this folder."
        )
    return "orphan", (
        f"{name} is gone, and its archive is still here: bring the session back with `sessrotate "
        f"restore {session}`. If you deleted it for good, remove this folder."
    )


def _goes_on_from(path: Path, where: Place) -> bool:
    """Tell whether a live file of another name goes on from an archive."""
    found = owner.of_copy(path)
    return found is not None and found.archive == where.archive


def put_away(found: State) -> tuple[str, str] | None:
    """Return what is not as `archive` leaves a session that it put away; None if all is.

    That is the kind of finding and its sentence. Reads samples of what was left plain.

    Raises DamagedError if what was put away is lost.
    """
    where, note = found.place, archived_file.note(found.place)
    name = printable(where.session)
    is_half = note is None or note.standing != "archived"
    try:
        archived_file.check_single(where) if is_half else archived_file.check_away(where)
    except RequestError as error:
        return "doubled", str(error)
    if not where.project:
        return "damaged", (
            f"It was put away, and its {names.RECORD}, which says in which project it was, is lost "
            f"or damaged: `sessrotate restore {name} --project FOLDER` brings it back."
        )
    if note is not None and note.standing == "unarchiving":
        return "interrupted", (
            f"Bringing it back was interrupted: `sessrotate restore {name}` finishes that, and so "
            "does the next run."
        )
    if is_half or any(map(names.is_leftover, found.listing)):
        return "interrupted", (
            f"Archiving was interrupted: finish with `sessrotate archive {name}`, as the next run "
            f"does, or undo it with `sessrotate restore {name}`."
        )
    if left_plain.of(where).gained:
        return "interrupted", (
            f"It was put away, and is not compressed yet: `sessrotate archive {name}` does that."
        )
    return None
