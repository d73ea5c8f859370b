"""What the commands over archives share: which ones are meant, and how several failures end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate import find
from sessrotate.archive import place
from sessrotate.cli import streams
from sessrotate.errors import WrongUsageError, worst

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessrotate.archive.place import Place
    from sessrotate.errors import SessrotateError


def named(sessions: Sequence[str] | None, *, every: bool) -> list[Place]:
    """Return the places of the sessions, each once; with `every`, of all archives there are.

    Raises WrongUsageError unless one of both is given.
    """
    if bool(sessions) == every:
        raise WrongUsageError("Name a SESSION, or --all, and not both.")
    if every:
        return list(place.archives())
    return list(dict.fromkeys(place.of_archived(find.path_of(name)) for name in sessions or ()))


def end(errors: Sequence[SessrotateError]) -> None:
    """Say every error; the command ends with the code of the worst."""
    last = worst(errors)
    for error in errors:
        if error is not last:
            streams.warn(error)
    if last is not None:
        raise last
