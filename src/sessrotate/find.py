"""What a user calls a session (a path, an id, the beginning of an id) → its file.

Rule: one match or an error that lists the choice; nothing is guessed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate import clients
from sessrotate.archive import place as places
from sessrotate.clients.claude import client as claude
from sessrotate.errors import (
    RefusedError,
    SessrotateError,
    WrongUsageError,
    printable,
)
from sessrotate.segments import compressed

if TYPE_CHECKING:
    from sessrotate.archive.place import Place

SHORTEST_PREFIX: Final = 4
"""Characters of an id from which on its beginning is taken for it."""

_LISTED: Final = 10


def path_of(session: str) -> Path:
    """Return the path that `session` names: a file or folder as it stands, or a session by id.

    Raises WrongUsageError if there is none, or more than one.
    """
    path = Path(session)
    if os.sep in session or os.path.lexists(session):
        return path
    if len(session) < SHORTEST_PREFIX:
        raise WrongUsageError(
            f"There is no file {printable(session)}; to be found by the beginning of its id, a "
            f"session needs at least {SHORTEST_PREFIX} characters of it."
        )
    matches = {path: client for client in clients.clients() for path in client.sessions(session)}
    # A session whose live file is gone, or put away, is found by its archive.
    for place in places.archives(session):
        matches.setdefault(place.live, claude)
    exact = [path for path, client in matches.items() if client.session_of(path.name) == session]
    found = exact or [*matches]
    if len(found) == 1:
        return found[0]
    if not found:
        folder = printable(str(claude.projects_folder()))
        others = ", ".join(each for each in clients.CLIENTS if each != claude.NAME)
        nor = f", nor is it one of {others}" if others else ""
        raise WrongUsageError(
            f"There is no file or session {printable(session)} (in {folder}{nor})."
        )
    listed = [f"  {printable(str(path))} ({matches[path].NAME})" for path in found[:_LISTED]]
    more = len(found) - len(listed)
    raise WrongUsageError(
        "\n".join(
            [
                f"{printable(session)} is the beginning of {len(found)} sessions:",
                *listed,
                *([f"  and {more} more"] if more else []),
            ]
        )
    )


def live_of(path: Path) -> Place:
    """Return the place of a live file that may be changed in place.

    Raises RefusedError if it is of a client whose files are not, or as `place.of_live` does.
    """
    try:
        with compressed.opened(path) as source:
            client = clients.recognised(source)
    except SessrotateError:  # gone, or no file: who needs it says so
        client = None
    if client is not None and client.NOT_IN_PLACE is not None:
        name = printable(str(path))
        raise RefusedError(f"{name} cannot be changed in place. {client.NOT_IN_PLACE}")
    return places.of_live(path)
