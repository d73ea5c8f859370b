"""What to say of a session that was put away, and is not as `archive` leaves one.

Rule: only looks, and reads samples of what was left plain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate import names
from sessrotate.archive import archived_file
from sessrotate.errors import RequestError, printable
from sessrotate.retention import left_plain

if TYPE_CHECKING:
    from sessrotate.archive.state import State


def told(found: State) -> tuple[str, str] | None:
    """Return the kind of finding and its sentence; None if it is as it should be.

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
