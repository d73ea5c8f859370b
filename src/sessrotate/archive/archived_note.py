"""`archived.json`: the note that a session is archived, or on its way there or back. Pure.

Rule: the names in it are compared with what is there, and never opened. It is on the disk before
the first file moves and until the last is back.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from msgspec import Struct

from sessrotate import names
from sessrotate.errors import DamagedError
from sessrotate.segments.header import is_count
from sessrotate.system.digest import is_digest

FORMAT: Final = 1

Standing = Literal["archiving", "archived", "unarchiving"]

STANDINGS: Final[tuple[Standing, ...]] = ("archiving", "archived", "unarchiving")

MAX_BYTES: Final = 64 * 1024 * 1024

MOST: Final = 50_000
"""Files of a session that are compressed at most: as many as fit into `MAX_BYTES`."""

_LATEST_NS: Final = 1 << 62


class CompressedFile(Struct, frozen=True):
    """A file to be compressed: its path in the folder `archived`, and its size in bytes.

    `digest` is that of its plain bytes, None until the compressed file is complete.
    """

    file: str
    size: int
    digest: str | None = None


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
    folders: tuple[tuple[str, int], ...] = ()


def dump(note: Note) -> bytes:
    """Return the note as a file's content, in ASCII so that any file name fits."""
    document = {
        "format": FORMAT,
        "session": note.session,
        "standing": note.standing,
        "at": note.at,
        "project": note.project,
        "compressed": [[entry.file, entry.size, entry.digest] for entry in note.compressed],
        "folders": [list(entry) for entry in note.folders],
    }
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def parse(data: bytes, session: str) -> Note:
    """Return the note in `data`; raise DamagedError if it is not a note of `session`."""
    try:
        found: Any = json.loads(data)
        compressed = [tuple(entry) for entry in found["compressed"]]
        folders = [tuple(entry) for entry in found["folders"]]
        is_ours = (
            isinstance(found["compressed"], list)
            and isinstance(found["folders"], list)
            and found["format"] == FORMAT
            and found["session"] == session
            and found["standing"] in STANDINGS
            and isinstance(found["at"], str)
            and isinstance(found["project"], str)
            and names.is_plain(found["project"])
            and all(_is_compressed(*entry) for entry in compressed)
            and all(_is_folder(*entry) for entry in folders)
        )
        if is_ours:
            return Note(
                session=session,
                standing=found["standing"],
                at=found["at"],
                project=found["project"],
                compressed=tuple(CompressedFile(*entry) for entry in compressed),
                folders=tuple((path, time) for path, time in folders),
            )
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise DamagedError("The archived.json is damaged: restore it from a backup.")


def _is_compressed(file: object, size: object, digest: object) -> bool:
    return isinstance(file, str) and is_count(size) and (digest is None or is_digest(digest))


def _is_folder(path: object, time: object) -> bool:
    return isinstance(path, str) and type(time) is int and abs(time) < _LATEST_NS
