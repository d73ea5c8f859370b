"""What the commands over several archives share: which ones, and how failures end the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sessrotate import find
from sessrotate.archive import place
from sessrotate.cli import streams
from sessrotate.cli.options import one_of
from sessrotate.errors import worst
from sessrotate.render import common

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sessrotate.archive.place import Place
    from sessrotate.errors import SessrotateError


def named(sessions: Sequence[str] | None, *, every: bool) -> list[Place]:
    """Return the places of the named sessions, each once; with `every`, of all archives.

    Raises WrongUsageError unless exactly one of the two is given.
    """
    one_of(sessions, every)
    if every:
        return list(place.archives())
    return list(dict.fromkeys(find.archived_of(find.path_of(name)) for name in sessions or ()))


def told_hidden() -> dict[str, str]:
    """Name on standard error what may hide sessions; return that, as `find.hidden` does."""
    found = find.hidden()
    for path, reason in found.items():
        streams.warn(common.unread(path, reason))
    return found


def end(errors: Collection[SessrotateError], *, every: bool = False) -> None:
    """Print every error, and end the command with the exit code of the worst.

    If `every` session was meant, what may hide some is named too; alone, it ends with 1.
    """
    is_hidden = every and bool(told_hidden())
    last = worst(errors)
    for error in errors:
        if error is not last:
            streams.warn(error)
    if last is not None:
        raise last
    if is_hidden:
        raise typer.Exit(1)
