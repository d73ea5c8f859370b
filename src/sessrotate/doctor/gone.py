"""What to say of an archive whose live file is gone.

Promise: nobody is advised to remove a history that a living session goes on from.

Rule: whether a session lives is known by what its file says, not by what it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.archive import continued, owner, place
from sessrotate.clients.claude import client as claude
from sessrotate.errors import printable
from sessrotate.retention import restore

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.archive.state import State


def told(found: State) -> tuple[str, str]:
    """Return the kind of finding and its sentence."""
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
