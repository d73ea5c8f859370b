"""What a user calls a session (a path, an id, the beginning of an id) → its file.

Rule: one match or an error that lists the choice; nothing is guessed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate import place as places
from sessrotate.errors import NotASessionError, WrongUsageError, printable
from sessrotate.formats import claude

if TYPE_CHECKING:
    from sessrotate.source import Source

SHORTEST_PREFIX: Final = 4
"""Characters of an id from which on its beginning is taken for it."""

_LISTED: Final = 10

_HEAD: Final = 256 * 1024
"""Bytes by which a file is recognised."""


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
    matches = list(claude.sessions(session))
    # A session whose live file is gone, or put away, is found by its archive.
    archived = [place.live for place in places.archives(session)]
    matches += [path for path in archived if path not in matches]
    exact = [match for match in matches if match.stem == session]
    if len(exact or matches) == 1:
        return (exact or matches)[0]
    if not matches:
        folder = printable(str(claude.projects_folder()))
        raise WrongUsageError(f"There is no file or session {printable(session)} (in {folder}).")
    listed = [f"  {printable(str(match))}" for match in (exact or matches)[:_LISTED]]
    more = len(exact or matches) - len(listed)
    raise WrongUsageError(
        "\n".join(
            [
                f"{printable(session)} is the beginning of {len(exact or matches)} sessions:",
                *listed,
                *([f"  and {more} more"] if more else []),
            ]
        )
    )


def check_session(source: Source) -> None:
    """Raise NotASessionError unless the file's first bytes are those of a session, or none."""
    size = source.size()
    head = source.read_at(0, min(_HEAD, size))
    if size and not claude.recognise(head, is_whole=size <= _HEAD):
        name = printable(str(source.path))
        raise NotASessionError(f"{name} is no session of a client that sessrotate knows.")
