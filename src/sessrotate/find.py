"""What a user calls a session (a path, an id, the beginning of an id) → its file.

Rule: one match or an error that lists the choice; nothing is guessed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from sessrotate.errors import WrongUsageError, printable
from sessrotate.formats import claude

SHORTEST_PREFIX: Final = 4
"""Characters of an id from which on its beginning is taken for it."""

_LISTED: Final = 10


def path_of(session: str) -> Path:
    """Return the path that `session` names: a file or folder as it stands, or a session by id.

    Raises WrongUsageError if there is none, or more than one.
    """
    path = Path(session)
    if os.sep in session or path.exists():
        return path
    if len(session) < SHORTEST_PREFIX:
        raise WrongUsageError(
            f"There is no file {printable(session)}; to be found by the beginning of its id, a "
            f"session needs at least {SHORTEST_PREFIX} characters of it."
        )
    matches = list(claude.sessions(session))
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
