"""What is left of a restoration: the archive in its trash, and the mark that its owner wants it so.

Rule: only reads. An archive in the trash is no archive: nothing finds it by a session's name. It is
told whose it is by its own note, since two projects may have a session of the same id.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import names, units
from sessrotate.archive import archived_file, continued, place
from sessrotate.archive.intent import Mark
from sessrotate.archive.late_lines import is_at
from sessrotate.clients.claude import client as claude
from sessrotate.clients.common import listed
from sessrotate.errors import DamagedError, RefusedError, SessrotateError, printable
from sessrotate.segments import load, manifest
from sessrotate.system import disk_use
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sessrotate.archive.place import Place
    from sessrotate.model import SealedSegment
    from sessrotate.segments.live_header import LiveHeader
    from sessrotate.segments.manifest import Manifest

FORMAT: Final = 1

_LARGEST: Final = 4096

_LONGEST_NAME: Final = 255
"""Bytes that a file's name has at most."""


class Trashed(Struct, frozen=True):
    """The archive of a restored session in the trash: where it is, whose, and since when.

    `project` and `at` (ISO 8601, UTC) are None if its note cannot be read. Then nobody knows whose
    it is, and it stays. `is_going`: it was decided that it is freed, so half of it may be gone.
    """

    folder: Path
    project: str | None = None
    at: str | None = None
    is_going: bool = False

    @property
    def bytes(self) -> int:
        """How many bytes its files have."""
        return sum(size for _, size in self.files())

    @property
    def allocated(self) -> int:
        """How many bytes of the disk it takes, folders among it."""
        return disk_use.of(self.folder)

    @property
    def since(self) -> float | None:
        """When it went to the trash, in seconds since 1970; None if nobody knows."""
        return units.seconds(self.at)

    def files(self) -> Iterator[tuple[Path, int]]:
        """Yield the files and their sizes in bytes."""
        for folder, _, held in os.walk(self.folder):
            for name in held:
                path = Path(folder, name)
                with suppress(OSError):
                    yield path, path.lstat().st_size


def note(session: str, project: str | None, at: str | None, *, is_going: bool = False) -> bytes:
    """Return what the note of an archive in the trash holds: `is_going` once it is being freed."""
    document = {"format": FORMAT, "project": project, "session": session, "at": at}
    return json.dumps(document | ({"going": True} if is_going else {})).encode() + b"\n"


def every(prefix: str = "") -> Iterator[Trashed]:
    """Yield every archive in the trash of restored sessions, by session and time.

    Only of sessions whose id begins with `prefix`.
    """
    for session in listed(place.root() / place.TRASH):
        if session.name.startswith(prefix):
            yield from _in(session)


def sessions(config: Path, project: str) -> set[str]:
    """Return the ids of a project's sessions of which a restoration left something.

    `config` is the folder that holds those of projects and of archives.
    """
    root = config / place.FOLDER
    trashes = (found for session in listed(root / place.TRASH) for found in _in(session))
    ids = {found.folder.parent.name for found in trashes if found.project == project}
    return ids | {mark.name for mark in listed(root / place.RESTORED / project)}


def places(prefix: str = "") -> Iterator[Place]:
    """Yield the place of every session with an archive in that trash, each once.

    Only of sessions whose id begins with `prefix`.
    """
    projects = claude.projects_folder().resolve()
    told = ((found.project, found.folder.parent.name) for found in every(prefix))
    for project, session in dict.fromkeys(told):
        where = None if project is None else place.named(projects, project, session)
        if where is not None:
            yield where


def trash_bytes() -> int:
    """Return what every trash takes of the disk: of restored sessions, and of archives."""
    pruned = (Trashed(where.archive / names.TRASH) for where in place.archives())
    return sum(trashed.allocated for trashed in (*every(), *pruned))


def of(where: Place) -> list[Trashed]:
    """Return the archives of one session in that trash, oldest first.

    One of another project counts if its session is not there any more: the project was moved.
    """
    return [found for found in _in(where.trash) if _is_of(where, found.project)]


def check_own(where: Place) -> None:
    """Raise RefusedError if the trash is reached by a link, which may lead anywhere."""
    for folder in (where.trash.parent, where.trash):
        if folder.is_symlink():
            raise RefusedError(f"{printable(str(folder))} is a symbolic link: remove the link.")


def _in(folder: Path) -> Iterator[Trashed]:
    if folder.is_symlink() or folder.parent.is_symlink():
        return  # `check_own` says so where it matters
    for found in listed(folder):
        if not found.is_symlink() and place.holds_something(found):  # else a crash left it, empty
            yield _read(found)


def _read(folder: Path) -> Trashed:
    try:
        told: Any = json.loads(load.read_small(folder, names.RESTORED_NOTE, _LARGEST))
        project, at = _name(told["project"]), told["at"]
        is_ours = told["format"] == FORMAT and told["session"] == folder.parent.name
    except (SessrotateError, ValueError, TypeError, KeyError, RecursionError):
        return Trashed(folder)
    is_told = is_ours and isinstance(project, str) and isinstance(at, str)
    if not is_told:
        return Trashed(folder)
    return Trashed(folder, project, at, is_going=told.get("going") is True)


def _name(told: Any) -> str | None:
    """Return a project's name that a note tells, None for what can be no folder's.

    Raises ValueError for what no path can hold.
    """
    if not isinstance(told, str) or told in {"", ".", "..", *place.OURS}:
        return None
    is_plain = not {"/", "\\", "\0"} & {*told} and len(os.fsencode(told)) <= _LONGEST_NAME
    return told if is_plain else None


# ── the way back ─────────────────────────────────────────────────────────────────────────────


def fitting(where: Place, header: LiveHeader | None) -> Trashed | None:
    """Return the archive in the trash that a live file with this header goes on from.

    Of several with the same segments it is the newest; None if they differ, or there is none.
    """
    found = []
    for trashed in of(where):
        with suppress(DamagedError):
            told = manifest_of(trashed)
            if header is not None and continued.ends_at(told, header):
                found.append((trashed, [entry.digest for entry in told.segments]))
    is_one = found and all(digests == found[0][1] for _, digests in found)
    return found[-1][0] if is_one else None


def gone(where: Place) -> Trashed | None:
    """Return the archive in the trash that is all that is left of a session.

    Of several it is the one with most of the history. None if there is none, or any project has a
    live file or an archive of that name: the project may have been renamed.
    """
    found = [each for each in of(where) if not each.is_going]
    if not found or os.path.lexists(where.live) or any(place.live_files(where)):
        return None
    archives = place.archives_of(where.config, where.session)
    return None if any(map(place.holds_something, archives)) else max(found, key=_length)


def _length(trashed: Trashed) -> tuple[int, str]:
    """Return how many bytes of history an archive has, then when it came there."""
    with suppress(SessrotateError):
        return manifest_of(trashed).source_bytes, trashed.at or ""
    return -1, trashed.at or ""


def told_gone(where: Place, trashed: Trashed) -> str:
    """Say that all that is left of a session is in the trash, and how it comes back."""
    return (
        f"{printable(str(where.live))} was restored on {printable(str(trashed.at))}, and is gone "
        f"since. What was archived of it is in the trash: `sessrotate restore "
        f"{printable(where.session)}` brings that back."
    )


def _is_of(where: Place, project: str | None) -> bool:
    """Tell whether what a project's session left is this session's, which may come from there."""
    if project is None or project == where.project:
        return project is not None
    projects = claude.projects_folder().resolve()
    return not os.path.lexists(place.live_file(projects, project, where.session))


def is_needed(where: Place, trashed: Trashed) -> bool:
    """Tell whether a live file of any project goes on from an archive in the trash."""
    for live in place.live_files(where):
        if place.holds_something(place.home(replace(where, live=live)).archive):
            continue  # it goes on from that
        header = continued.tail_header(live)
        with suppress(DamagedError):
            if header is not None and continued.ends_at(manifest_of(trashed), header):
                return True
    return False


def is_elsewhere(where: Place, trashed: Trashed) -> bool:
    """Tell whether all that an archive in the trash holds is in a live file, or in an archive.

    A live file is read for that, also one that was put away. An archive counts by its list: what
    its owner had pruned of it is gone with his consent.
    """
    try:
        wanted = manifest_of(trashed).segments
    except SessrotateError:
        return False
    for archive in place.archives_of(where.config, where.session):
        with suppress(SessrotateError, OSError):
            if _is_listed(archive, wanted):
                return True
        with suppress(SessrotateError, OSError):
            source = archived_file.opened(replace(where, project=archive.parent.name))
            if source is not None:
                with source:
                    if holds(source, wanted):
                        return True
    for live in place.live_files(where):
        with suppress(SessrotateError, OSError), Source.itself(live) as source:
            if holds(source, wanted):
                return True
    return False


def _mark(entry: SealedSegment) -> tuple[int, Mark]:
    return entry.segment.span.start, Mark(entry.segment.span.size, entry.digest)


def _is_listed(archive: Path, wanted: Sequence[SealedSegment]) -> bool:
    there = manifest.parse(load.read_small(archive, names.MANIFEST, manifest.MAX_BYTES)).segments
    return [*map(_mark, there[: len(wanted)])] == [*map(_mark, wanted)]


def holds(source: Source, segments: Iterable[SealedSegment]) -> bool:
    """Tell whether a file has each of these segments where it stands in the whole history."""
    return all(is_at(source, *_mark(entry)) for entry in segments)


def strange(where: Place, trashed: Trashed) -> str:
    """Say that a live file lacks what was restored to it, and what helps."""
    return (
        f"{printable(str(where.live))} is not the history that was restored on "
        f"{printable(str(trashed.at))}, which is in {printable(str(trashed.folder))}: move the "
        f"file away, then `sessrotate restore {printable(where.session)}` brings that back."
    )


def lacking(where: Place) -> Trashed | None:
    """Return an archive in the trash that neither the live file nor an archive has all of."""
    found = sorted((each for each in of(where) if not each.is_going), key=_length)
    return next((each for each in found[::-1] if not is_elsewhere(where, each)), None)


def manifest_of(trashed: Trashed) -> Manifest:
    """Return the manifest of an archive in the trash; raise DamagedError if it has none."""
    data = load.read_small(trashed.folder, names.MANIFEST, manifest.MAX_BYTES)
    return manifest.parse(data)


def overwritten(where: Place, trashed: Trashed) -> str:
    """Say what happened to a live file whose archive is in the trash, and what helps."""
    return (
        f"{printable(str(where.live))} was restored on {printable(str(trashed.at))}, and a program "
        "has written the short file from before back over it. Its history is in the trash: "
        f"`sessrotate restore {printable(where.session)}` puts it back, and with --keep-rotated "
        "makes it the archive again."
    )


# ── whose owner wants it whole ───────────────────────────────────────────────────────────────


def is_marked(where: Place) -> bool:
    """Tell whether the owner restored a session and has not rotated it by name since."""
    return os.path.lexists(where.restored) or bool(marks(where))


def marks(where: Place) -> list[Path]:
    """Return the marks of a session: its own, and those of projects that it was moved from."""
    found = [project / where.session for project in listed(where.restored.parent.parent)]
    return [mark for mark in found if os.path.lexists(mark) and _is_of(where, mark.parent.name)]


def marked() -> Iterator[Place]:
    """Yield the place of every session that is marked so, in order."""
    projects = claude.projects_folder().resolve()
    for project in listed(place.root() / place.RESTORED):
        for mark in listed(project):
            where = place.named(projects, project.name, mark.name)
            if where is not None and not names.is_hidden(mark.name):
                yield where
