"""Whose an archive is: which file is a session's live file, and which others are like it.

Rule: a session has one live file, which its archive names (`place.of_session`). A copy of it, under
another name or elsewhere, is read with the archive that it goes on from; another file of its id is
a stranger, and read alone. Neither is ever appended to, rotated on top of the archive, or evidence
of what an interrupted run did. The folder of all archives may be a link, to a folder of the same
user. What is below it is ours, and a link there would lead what we write to wherever it points.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from sessrotate import clients, names, platforms
from sessrotate.archive import live_tail, place, record
from sessrotate.archive.place import Place
from sessrotate.clients import common
from sessrotate.clients.common import listed, real
from sessrotate.errors import InUseError, RefusedError, SessrotateError, printable, quoted
from sessrotate.segments import headers
from sessrotate.system import inside
from sessrotate.system.source import Source


def of(path: Path, places: Places | None = None) -> Place | None:
    """Return the place of a live file or an archive; None of a copy, of a stranger, and elsewhere.

    What is None may be a whole session all the same, that nothing was rotated of. `places` are
    those of other files.
    """
    where = (places or Places()).own(path)
    return None if _copied(meant(path), where) is not None else where


class Places:
    """The places of many files: what is the same for all of a folder is looked at once."""

    def __init__(self, archives: Iterable[Place] | None = None) -> None:
        """Know none yet; `archives` are all of this machine, if somebody knows them."""
        self._beside: dict[Path, Place] = {}
        self._owners = None if archives is None else {each.session: each for each in archives}

    def own(self, path: Path) -> Place | None:
        """Return the same; None if the file is a stranger's."""
        where, owners = self.of(path), self._owners
        if where is None or (owners and owners.get(where.session, where).live == where.live):
            return where  # there is no archive, or that of this file
        return None if is_stranger(where) else where

    def of(self, path: Path) -> Place | None:
        """Return what `place.of` does."""
        beside = self._beside.get(path.parent)
        if beside is not None and clients.in_place().files.named(path.name) == "session":
            session = names.session_of(path.name)
            return replace(beside, session=session, live=beside.live.with_name(path.name))
        where = place.of(path)
        if where is not None and where.live == real(path.parent) / path.name:  # no archive's
            self._beside[path.parent] = where
        return where


def read_with(path: Path, places: Places | None = None) -> Place | None:
    """Return the place that a file is read with: its own, or of the session that it is a copy of.

    None of what is read alone. `places` are those of other files.
    """
    where = (places or Places()).own(path)
    return _copied(meant(path), where) or where


def of_copy(path: Path) -> Place | None:
    """Return the place of the session whose live file was copied to `path`, that as its live file.

    None if the file is no live tail, or the session's own. Its archive may be missing. A link
    outside of the folder of projects stands for what it leads to.
    """
    if not live_tail.begins_so(meant(path)):
        return None
    return _copied(meant(path), Places().own(path))


def _copied(path: Path, own: Place | None) -> Place | None:
    """Return the same of a file whose `own` place is known."""
    header = live_tail.tail_header(path, but=None if own is None else own.session)
    if header is None:
        return None
    config, live = real(clients.in_place().files.projects_folder()).parent, path.absolute()
    return Place(config, live.parent.name, header.root, live)


def is_stranger(where: Place) -> bool:
    """Tell whether a live file is there, and is not that of the session whose id it has."""
    if not os.path.lexists(where.live) or not place.holds_something(where.archive):
        return False
    is_named = place.project_named(where.archive) == where.project  # as of nearly all
    return not is_named and place.of_session(where.session).live != where.live


def named(where: Place) -> Place:
    """Return the place that a person means by a path, which may be that of before a move."""
    if os.path.lexists(where.live):
        return where
    now = place.of_session(where.session)
    return now if os.path.lexists(now.live) else where


def may_be_meant(where: Place) -> bool:
    """Tell whether a live file may be meant by its session's id: a stranger only without owner."""
    return not is_stranger(where) or not _is_there(place.of_session(where.session))


def _is_there(where: Place) -> bool:
    """Tell whether a session has its live file, or was put away with it."""
    return os.path.lexists(where.live) or record.away(where.archive, where.session) is not None


def problem(where: Place, *, adopt: bool = False) -> str | None:
    """Say why a live file is no session's own, and may be read but not changed; None if it is.

    A copy under another name may be, if its owner wants to `adopt` it as a session of its own.
    """
    header = None if adopt else live_tail.tail_header(where.live, but=where.session)
    if header is not None:
        return _copy(where.live, header.root)
    return _stranger(where) if is_stranger(where) else None


def _copy(path: Path, session: str) -> str:
    """Say what a copy under another name is, and what can be done with it."""
    name, word = printable(str(path)), quoted(path)
    return (
        f"{name} is a copy of the live file of {printable(session)}, and only the session itself "
        f"can be changed. `sessrotate stitch {word} -o FILE` writes its whole history. To make "
        f"the copy a session of its own: `sessrotate rotate --unsafe-adopt {word}`."
    )


def _stranger(where: Place) -> str:
    """Say what a stranger is, and what allows it to be changed."""
    name, archive = printable(str(where.live)), printable(str(where.archive))
    live = place.of_session(where.session).live
    if record.away(where.archive, where.session):
        path = quoted(live)  # the id may mean both
        return (
            f"{name} has the id of a session that was put away. Rename this file, or bring that "
            f"session back with `sessrotate restore {path}` and move it out of the folder of "
            "projects."
        )
    if os.path.lexists(live):
        return (
            f"{name} has the same id as {printable(str(live))}, and sessrotate changes only the "
            "latter: one of the two is a copy. Move the one that you do not need out of the folder "
            "of projects, then try again."
        )
    others = [printable(str(each.live)) for each in place.live_files(where.session)]
    return (
        f"{' and '.join(others)} have the same id, and no record says which of them owns "
        f"{archive}. Move those that you do not need out of the folder of projects, then try again."
    )


def check(where: Place, *, adopt: bool = False) -> None:
    """Raise RefusedError if a live file has a `problem`."""
    if why := problem(where, adopt=adopt):
        raise RefusedError(why)


def check_unmoved(where: Place) -> None:
    """Raise InUseError if the live file is gone because its project was moved just now.

    Whoever would put one in its place asks this first: the session would be there twice.
    """
    if _is_there(where):
        return
    now = place.of_session(where.session)
    if now.live != where.live and os.path.lexists(now.live):
        name = printable(str(where.live.parent))
        raise InUseError(f"{name} was moved just now: try again.")


# ── a live file whose archive is gone ─────────────────────────────────────────────────────────


def without_archive(path: Path, places: Places | None = None) -> Place | None:
    """Return the place of a rotated live file whose archive is missing; None of any other file.

    A copy of one counts, a fork (which copied the header and is whole) does not. `places` are those
    of other files.
    """
    if not live_tail.begins_so(path):
        return None
    where = read_with(path, places)
    if where is None or place.holds_something(where.archive) or not _is_headed(path, where.session):
        return None
    return where


def every_without_archive() -> Iterator[Place]:
    """Yield the place of each such live file of this machine, in the order of their paths."""
    places = Places()
    for path in clients.in_place().files.sessions():
        where = without_archive(path, places)
        if where is not None:
            yield where


def _is_headed(path: Path, session: str) -> bool:
    try:
        with Source.itself(path) as source:
            return headers.parse_live(live_tail.first_line(source), session) is not None
    except (SessrotateError, OSError):
        return False


# ── what is ours below the folder of archives is never reached by a link ────────────────────────


def check_own(where: Place) -> None:
    """Raise RefusedError if an archive is reached by a link that the user need not have made."""
    _check_root(where)
    for part in (where.archive.parent, where.archive):
        if os.path.islink(part):  # noqa: PTH114 - thousands, most of which are not there
            raise RefusedError(
                f"{printable(str(part))} is a symbolic link, which an archive must not be: remove "
                "the link, or put the folder itself in its place."
            )


def check_folders(where: Place) -> None:
    """Raise RefusedError if a folder in which something of a session is created is a link.

    The archive itself is not looked at: a link in its place may be put aside.
    """
    _check_root(where)
    inside.check_links(where.ours)


def meant(path: Path) -> Path:
    """Return the file that a person means by a path: of a link outside, where it leads.

    Where a client's live files are, nobody opens what a link names.
    """
    return real(path) if common.is_link(path) and place.of(path) is None else path


def links() -> Iterator[Path]:
    """Yield the links among the folders that are ours, and in those."""
    for name in sorted(place.FOLDERS):
        folder = place.root() / name
        yield from (each for each in (folder, *_folders(folder)) if common.is_link(each))


def _folders(folder: Path) -> list[Path]:
    return [] if common.is_link(folder) else listed(folder)


def _check_root(where: Place) -> None:
    folder = where.config / place.FOLDER
    if common.is_link(folder) and _is_of_another(folder):
        name, target = printable(str(folder)), printable(str(real(folder)))
        raise RefusedError(
            f"{name} leads to {target}, which is missing or belongs to another user: make it a "
            "folder of your own."
        )


def _is_of_another(folder: Path) -> bool:
    try:
        owner = folder.stat().st_uid
    except OSError:
        return True
    return not platforms.is_ours(owner)
