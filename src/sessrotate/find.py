"""SESSION, as people name it (a path, an id, the beginning of an id) → its file.

Rule: exactly one match, or an error that lists the candidates; nothing is guessed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate import clients
from sessrotate.archive import copies, place, restored
from sessrotate.clients.claude import client as claude
from sessrotate.errors import RefusedError, SessrotateError, WrongUsageError, printable
from sessrotate.segments import compressed_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.archive.place import Place
    from sessrotate.clients.protocol import Client

SHORTEST_PREFIX: Final = 4
"""How many characters of an id are enough to look for it."""

_LISTED: Final = 10


def path_of(session: str) -> Path:
    """Return the path that `session` names: an existing file or folder, or a session by its id.

    Raises WrongUsageError if there is none, or more than one.
    """
    path = Path(session)
    if os.sep in session or os.path.lexists(session):
        return path
    if len(session) < SHORTEST_PREFIX:
        raise WrongUsageError(
            f"There is no file {printable(session)}. To find a session by its id, give at least "
            f"{SHORTEST_PREFIX} characters of it."
        )
    files: dict[object, tuple[Path, Client]] = {}
    for path, client in _beginning_with(session):
        files.setdefault(_identity(path), (path, client))
    matches = dict(files.values())
    exact = [path for path, client in matches.items() if client.session_of(path.name) == session]
    found = exact or [*matches]
    if len(found) == 1:
        return found[0]
    if not found:
        folder = printable(str(claude.projects_folder()))
        others = ", ".join(each for each in clients.CLIENTS if each != claude.NAME)
        elsewhere = f", nor is it a session of {others}" if others else ""
        raise WrongUsageError(
            f"There is no file or session {printable(session)} (in {folder}{elsewhere})."
        )
    listed = [f"  {printable(str(path))} ({matches[path].NAME})" for path in found[:_LISTED]]
    if len(found) > _LISTED:
        listed.append(f"  and {len(found) - _LISTED} more")
    way = "Give the path of one" if exact else "Give more of the id, or a path"
    intro = f"{printable(session)} matches {len(found)} sessions. {way}:"
    raise WrongUsageError("\n".join([intro, *listed]))


def _beginning_with(session: str) -> Iterator[tuple[Path, Client]]:
    """Yield the files of all sessions whose id begins so, of which some may be gone."""
    for client in clients.clients():
        yield from ((path, client) for path in client.sessions(session))
    # A session whose live file is gone, or archived whole, is found by its archive, or by what is
    # left of that in the trash.
    yield from ((where.live, claude) for where in place.archives(session))
    left = (where for where in restored.places(session) if restored.gone(where) is not None)
    yield from ((where.live, claude) for where in left)


def _identity(path: Path) -> object:
    """Return what tells a file however it is reached: its device and inode; its path if none is."""
    try:
        status = path.stat()
    except OSError:
        return path
    return status.st_dev, status.st_ino


def archived_of(path: Path) -> Place:
    """Return the place of a session that may have an archive, which is to be changed.

    Raises RefusedError as `archive_of` does, or if the file is a copy.
    """
    where = archive_of(path)
    copies.check_owner(where)
    return where


def archive_of(path: Path) -> Place:
    """Return the place of a session that may have an archive.

    Raises RefusedError as `place.of_archived` does, or if its client's sessions have no archives.
    """
    client = None if place.by_name(path) is not None else _client_of(path)
    if client is not None and client.NOT_IN_PLACE is not None:
        raise RefusedError(
            f"{printable(str(path))} is a session of {client.NAME}, and has no archive: all of it "
            "is in this file."
        )
    return place.of_archived(path)


def live_of(path: Path) -> Place:
    """Return the place of a live file that may be changed in place.

    Raises RefusedError if its client's files may not be, or as `place.of_live` does.
    """
    client = _client_of(path)
    if client is not None and client.NOT_IN_PLACE is not None:
        name = printable(str(path))
        raise RefusedError(f"{name} cannot be changed in place. {client.NOT_IN_PLACE}")
    return place.of_live(path)


def _client_of(path: Path) -> Client | None:
    """Return whose session a file is; None of what is gone or no session: others say that."""
    try:
        with compressed_session.opened(path) as source:
            return clients.recognised(source)
    except SessrotateError:
        return None
