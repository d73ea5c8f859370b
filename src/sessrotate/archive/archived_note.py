"""`archived.json`: the note that a session is archived, or on its way there or back. Pure.

Rule: the names in it are compared with what is there, and never opened. It is on the disk before
the first file moves and until the last is back.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from sessrotate import names
from sessrotate.errors import DamagedError
from sessrotate.model import Count, Digest  # noqa: TC001 - msgspec reads the annotations
from sessrotate.segments import one_line

Standing = Literal["archiving", "archived", "unarchiving"]

MAX_BYTES: Final = 64 * 1024 * 1024

MOST: Final = 50_000
"""Files of a session that are compressed at most: as many as fit into `MAX_BYTES`."""

_Time = Annotated[int, Meta(gt=-(1 << 62), lt=1 << 62)]
"""Nanoseconds since 1970; a folder may be dated before."""


class CompressedFile(Struct, frozen=True, array_like=True):
    """A file to be compressed: its path in the folder `archived`, and its size in bytes.

    `digest` is that of its plain bytes, None until the compressed file is complete.
    """

    file: str
    size: Count
    digest: Digest | None = None


class Note(Struct, frozen=True):
    """Where a session stands, and since when (ISO 8601, UTC).

    `project` is what the folder that it comes back to is called among projects. `folders` are the
    paths of folders with compressed files, and when each was last changed before that, in
    nanoseconds since 1970.
    """

    session: str
    standing: Standing
    at: str
    project: str
    compressed: tuple[CompressedFile, ...] = ()
    folders: tuple[tuple[str, _Time], ...] = ()


def parse(data: bytes, session: str) -> Note:
    """Return the note in `data`; raise DamagedError if it is not a note of `session`."""
    note = one_line.parse(data, Note)
    if note is None or note.session != session or not names.is_plain(note.project):
        raise DamagedError("The archived.json is damaged: restore it from a backup.")
    return note
