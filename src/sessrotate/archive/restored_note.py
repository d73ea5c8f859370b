"""`restored.json` of an archive: that its session is whole again, and since when. Pure.

Rule: it is there from the end of a restoration until its owner rotates the session by name.
"""

from __future__ import annotations

import json
from typing import Any, Final

from msgspec import Struct

from sessrotate import names, units

FORMAT: Final = 1

MAX_BYTES: Final = 4096


class RestoredNote(Struct, frozen=True):
    """What the note says.

    `project` is that of the live file, empty where nobody knows. `at` (ISO 8601, UTC) is when the
    session was restored, empty if that cannot be read: then nothing of its archive goes by its age.
    `is_going`: it was decided that the archive is freed, so half of it may be gone.
    """

    project: str = ""
    at: str = ""
    is_going: bool = False


def dump(note: RestoredNote) -> bytes:
    """Return the note as the bytes of its file."""
    fields = {"format": FORMAT, "project": note.project, "at": note.at, "going": note.is_going}
    return json.dumps(fields).encode() + b"\n"


def parse(data: bytes) -> RestoredNote:
    """Return the note that these bytes are; an empty one if they are none of ours."""
    try:
        found: Any = json.loads(data)
        project, at, is_going = found["project"], found["at"], found["going"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return RestoredNote()
    if not (isinstance(project, str) and isinstance(at, str) and isinstance(is_going, bool)):
        return RestoredNote()
    note = RestoredNote(project, at, is_going)
    is_sound = dump(note) == data and units.seconds(at) is not None
    return note if is_sound and (not project or names.is_plain(project)) else RestoredNote()
