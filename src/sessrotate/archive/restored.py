"""What is left of a restoration: the archive in its trash, and the mark that its owner wants it so.

Rule: only reads. An archive in the trash is no archive: nothing finds it by a session's name. Its
note says which project the session was in.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

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
    for folder in listed(place.root() / place.TRASH):
        session = names.session_of_key(folder.name)
        if session is not None and session.startswith(prefix):
            yield from _in(folder)


def places(prefix: str = "") -> Iterator[Place]:
    """Yield the place of every session with an archive in that trash, each once.

    Only of sessions whose id begins with `prefix`. One of which nothing else is left was in the
    project of its last restoration.
    """
    for session in dict.fromkeys(map(_session, every(prefix))):
        if (where := place_of(session)) is not None:
            yield where


def place_of(session: str) -> Place | None:
    """Return the place of a session with an archive in that trash, None if it has none there.

    One that nothing is rotated of is in the project of its last restoration; or, if it is not there
    any more, it is the one file of its id that holds what is in the trash.
    """
    # Asked for each live file, and most have nothing there: first, and without listing projects.
    projects = [each.project for each in _in(place.root() / place.TRASH / names.key(session))]
    last = next(filter(None, reversed(projects)), None)
    if last is None:
        return None
    where = place.of_session(session)
    if place.holds_something(where.archive):
        return where
    told = next(place.all_named(claude.projects_folder().resolve(), last, (session,)))
    was_moved = where.project and not os.path.lexists(told.live) and gone(told) is None
    return where if was_moved else told


def trash_bytes() -> int:
    """Return what every trash takes of the disk: of restored sessions, and of archives."""
    pruned = (Trashed(where.archive / names.TRASH) for where in place.archives())
    return sum(trashed.allocated for trashed in (*every(), *pruned))


def of(where: Place) -> list[Trashed]:
    """Return the archives of one session in that trash, oldest first."""
    return [found for found in _in(where.trash) if found.project is not None]


def _session(found: Trashed) -> str:
    return names.session_of_key(found.folder.parent.name) or ""


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
        project, at = told["project"], told["at"]
        is_ours = told["format"] == FORMAT and names.key(told["session"]) == folder.parent.name
    except (SessrotateError, ValueError, TypeError, KeyError, RecursionError):
        return Trashed(folder)
    if not is_ours or not isinstance(at, str):
        return Trashed(folder)
    if not isinstance(project, str) or not names.is_plain(project):
        return Trashed(folder)
    return Trashed(folder, project, at, is_going=told.get("going") is True)


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

    Of several it is the one with most of the history. None if there is none, or an archive, or any
    project has a live file that holds it or goes on from it: the project may have been renamed.
    """
    found = [each for each in of(where) if not each.is_going]
    if not found or os.path.lexists(where.live) or place.holds_something(where.archive):
        return None
    last = max(found, key=_length)
    return None if is_needed(where, last) or is_elsewhere(where, last) else last


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


def is_needed(where: Place, trashed: Trashed) -> bool:
    """Tell whether a live file of any project goes on from an archive in the trash."""
    if place.holds_something(where.archive):
        return False  # it goes on from that
    for each in place.live_files(where.session):
        header = continued.tail_header(each.live)
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
    with suppress(SessrotateError, OSError):
        if _is_listed(where.archive, wanted):
            return True
    with suppress(SessrotateError, OSError):
        source = archived_file.opened(where)
        if source is not None:
            with source:
                if holds(source, wanted):
                    return True
    for each in place.live_files(where.session):
        with suppress(SessrotateError, OSError), Source.itself(each.live) as source:
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
    return os.path.lexists(where.restored)


def marked() -> Iterator[Place]:
    """Yield the place of every session that is marked so, in order."""
    for mark in listed(place.root() / place.RESTORED):
        session = names.session_of_key(mark.name)
        if session is not None:
            yield place.of_session(session)
