"""`restored.json` of an archive: its owner restored the session, and nothing else rotates it. Pure.

Rule: it is there from a restoration until its owner rotates the session by name.
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

    `project` is that of the live file, empty where nobody knows. `at` (ISO 8601, UTC) is since when
    the live file is whole: None if it was put back as short as it had been put away, empty if that
    cannot be read. Then nothing of the archive goes by its age.
    """

    project: str = ""
    at: str | None = ""


def dump(note: RestoredNote) -> bytes:
    """Return the note as the bytes of its file."""
    fields = {"format": FORMAT, "project": note.project, "whole": note.at}
    return json.dumps(fields).encode() + b"\n"


def parse(data: bytes) -> RestoredNote:
    """Return the note that these bytes are; an empty one if they are none of ours."""
    try:
        found: Any = json.loads(data)
        project, at = found["project"], found["whole"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return RestoredNote()
    if not isinstance(project, str) or not isinstance(at, str | None):
        return RestoredNote()
    note = RestoredNote(project, at)
    is_sound = dump(note) == data and (at is None or units.seconds(at) is not None)
    return note if is_sound and (not project or names.is_plain(project)) else RestoredNote()
