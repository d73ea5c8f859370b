"""`archived.json`: the note that a session is archived, or on its way there or back.

Rule: only reads. The names in it are compared with what is there, and never opened. It is on the
disk before the first file moves and until the last is back. Where it is lost or damaged, the files
in the folder `archived` tell as much: each compressed one proves itself.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct

from sessrotate import names
from sessrotate.errors import DamagedError, SessrotateError
from sessrotate.model import CODECS, Count, Digest
from sessrotate.segments import load, one_line
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Standing = Literal["archiving", "archived", "unarchiving"]

_ZST: Final = names.CODEC_SUFFIX["zstd"]

_HEAD: Final = 18
"""Bytes of a zstd frame that say how much it holds, at most."""

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


def read(archive: Path, session: str) -> Note | None:
    """Return the note of a session's archive, None if the session was not put away.

    If it is lost or damaged, it is made again of what is there; where the live file is not, a
    damaged one says that the session is on its way back. Nothing behind a link is opened.
    """
    if archive.is_symlink() or archive.parent.is_symlink():
        return None
    is_noted, folder = os.path.lexists(archive / names.ARCHIVED_NOTE), archive / names.ARCHIVED
    if is_noted:
        with suppress(SessrotateError):
            return parse(load.read_small(archive, names.ARCHIVED_NOTE, MAX_BYTES), session)
    is_away = away(archive, session) is not None
    if not is_away and not (is_noted and os.path.lexists(folder)):
        return None
    standing: Standing = "archived" if is_away else "unarchiving"
    return Note(session, standing, "", "", tuple(_compressed(folder)))


def away(archive: Path, session: str) -> Path | None:
    """Return the live file of a session that was put away, plain or compressed, if it is there."""
    if (folder := archive / names.ARCHIVED).is_symlink():
        return None
    files = (folder / names.segment_file(session, "numbered", 0, codec) for codec in CODECS)
    return next(filter(os.path.lexists, files), None)


def _compressed(folder: Path) -> Iterator[CompressedFile]:
    """Yield the files below a folder of which there is only a compressed form, in order."""
    from sessrotate.system import zstd  # noqa: PLC0415 - hardly ever needed

    for here, folders, files in () if folder.is_symlink() else os.walk(folder):
        folders.sort()
        for name in sorted({*files} - {name + _ZST for name in files}):
            if name.endswith(_ZST):
                file = os.path.relpath(os.path.join(here, name), folder)  # noqa: PTH118 - text
                with suppress(SessrotateError), Source.inside(folder, file) as source:
                    size = zstd.content_size(source.read_at(0, min(_HEAD, source.size())))
                    if size is not None:
                        yield CompressedFile(file.removesuffix(_ZST), size)
