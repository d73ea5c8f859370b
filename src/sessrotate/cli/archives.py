"""What the commands over several sessions share: which, and what the list says of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from sessrotate import find, render
from sessrotate.archive import place
from sessrotate.archive.place import Place
from sessrotate.cli import streams
from sessrotate.cli.options import one_of
from sessrotate.in_place.outcome import Outcome
from sessrotate.render.outcomes import CHANGED, Seen, Shown
from sessrotate.reports import listing
from sessrotate.system import user_folders


def seen(places: Iterable[Place]) -> Seen:
    """Return what tables of sessions are drawn on, and what the list says of these."""
    return Seen(
        now=time.time(),
        width=streams.terminal_width(),
        colour=streams.colours(),
        home=str(user_folders.home()),
        known={where: each.info for where, each in listing.of(places).items()},
    )


def changed(found: Iterable[Outcome]) -> Seen:
    """Return the same of those that are changed."""
    return seen(each.where for each in found if each.where and each.result in CHANGED)


def named(sessions: Sequence[str] | None, *, every: bool) -> list[Place]:
    """Return the places of the named sessions, each once; with `every`, of all archives.

    Raises WrongUsageError unless exactly one of the two is given.
    """
    one_of(sessions, every)
    if every:
        return list(place.archives())
    return list(dict.fromkeys(find.archived_of(find.path_of(name)) for name in sessions or ()))


def with_hidden(shown: Shown, *, every: bool) -> Shown:
    """Return the same, where `every` session was wanted with what may hide some; the code is 1."""
    hidden = [render.unread(*each) for each in find.hidden().items()] if every else []
    return replace(shown, warnings=[*hidden, *shown.warnings], code=shown.code or int(bool(hidden)))
