"""`restored.json` of an archive: its owner restored the session, and nothing else rotates it. Pure.

Rule: it is there from a restoration until its owner rotates the session by name.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from sessrotate import names, units
from sessrotate.segments import one_line

MAX_BYTES: Final = 4096


class RestoredNote(Struct, frozen=True):
    """What the note says.

    `project` is that of the live file, empty where nobody knows. `whole` (ISO 8601, UTC) is since
    when the live file is whole: None if it was put back as short as it had been put away, empty if
    that cannot be read. Then nothing of the archive goes by its age.
    """

    project: str = ""
    whole: str | None = ""


def parse(data: bytes) -> RestoredNote:
    """Return the note that these bytes are; an empty one if they are none of ours."""
    note = one_line.parse(data, RestoredNote)
    is_sound = note is not None and (note.whole is None or units.seconds(note.whole) is not None)
    is_named = note is not None and (not note.project or names.is_plain(note.project))
    return note if note is not None and is_sound and is_named else RestoredNote()
