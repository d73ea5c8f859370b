"""Notes about rotations by the hook that failed, because nobody sees their output.

Rule: one small file a session, without any of its content: written if a rotation fails, removed if
one succeeds. So a note that exists says what is wrong, and there are never more notes than
sessions. A process that is killed leaves none: its archive says what it began, and the next
rotation or run does the rest.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from sessrotate import find, fs, names, units
from sessrotate.archive import owner, place
from sessrotate.archive.place import Place
from sessrotate.clients.common import listed
from sessrotate.errors import SessrotateError, is_full, printable
from sessrotate.model import Count
from sessrotate.parsing import json_typed
from sessrotate.segments import load
from sessrotate.system import inside

_LARGEST: Final = 64 * 1024
_LONGEST: Final = 1000
"""Characters of a message that are kept."""


class Note(Struct, frozen=True):
    """A rotation that failed at a time (ISO 8601).

    One with nothing in it had no room on the disk.

    `inode` is the live file's: if it has another one now, it was rotated in another way.
    """

    where: Place
    at: str
    inode: int
    error: str


class _Line(Struct, frozen=True):
    """What the file of a note says."""

    at: str
    inode: Count
    error: str


def write(where: Place, error: str) -> None:
    """Note why a rotation failed.

    Raises OSError; RefusedError if root would leave it in another's folder, or behind a link.
    """
    owner.check_folders(where)
    inside.check_owner(*where.owned)
    at = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    note = _Line(at, where.live.lstat().st_ino, printable(error, _LONGEST))
    fs.create_folder(where.note.parent)
    try:
        fs.create_file_at_once(where.note, json_typed.dump_line(note))
    except OSError as full:
        if not is_full(full):
            raise
        fs.create_file_at_once(where.note, b"")  # takes no block, and says why by that


def clear(where: Place) -> None:
    """Remove the note of a session. Raises as `write` does."""
    owner.check_folders(where)
    fs.remove_files(where.note.parent, [where.note.name])


def notes() -> Iterator[Note]:
    """Yield the notes of live files that are still there."""
    for session in _noted():
        where = place.of_session(session)
        # Where several files have the id, it is of one of them.
        found = map(_read, (where, *place.live_files(session)))
        note = next((note for note in found if note is not None and _is_there(note)), None)
        if note is not None:
            yield note


def _noted() -> Iterator[str]:
    """Yield the id of every session with a note, in order."""
    for note in listed(place.root() / place.HOOK):
        session = names.session_of_key(note.name.removesuffix(".json"))
        if session is not None and note.name.endswith(".json"):
            yield session


def way_out(note: Note) -> str:
    """Return the sentence that says what to do about a note."""
    try:
        find.path_of(note.where.session)
    except SessrotateError:  # several have the id
        return "Try again with `sessrotate rotate PATH`, where PATH is the file that you mean."
    return f"Try again with `sessrotate rotate {printable(note.where.session)}`."


def _read(where: Place) -> Note | None:
    try:
        name = where.note.relative_to(root := place.root()).as_posix()
        data = load.read_small(root, name, _LARGEST)
        if not data:
            at, manifest = where.note.stat().st_mtime, where.archive / names.MANIFEST
            if manifest.exists() and manifest.stat().st_mtime >= at:
                return None  # it was rotated since
            inode = where.live.lstat().st_ino
            return Note(where, units.written(at), inode, "The disk had no room at all.")
        line = json_typed.parse_line(data, _Line)
    except (SessrotateError, OSError):
        return None
    return None if line is None else Note(where, line.at, line.inode, line.error)


def _is_there(note: Note) -> bool:
    try:
        return note.where.live.lstat().st_ino == note.inode
    except OSError:
        return False
