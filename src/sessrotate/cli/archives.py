"""What the commands over several sessions share: which, how they are shown, how failures end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from sessrotate import find
from sessrotate.archive import place
from sessrotate.cli import streams
from sessrotate.cli.options import one_of
from sessrotate.errors import worst
from sessrotate.render import common
from sessrotate.render.outcomes import CHANGED, Seen
from sessrotate.reports import listing
from sessrotate.system import user_folders

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from sessrotate.archive.place import Place
    from sessrotate.errors import SessrotateError
    from sessrotate.in_place.outcome import Outcome


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


def agreed(plan: Iterable[str], in_short: str, *, yes: bool, as_json: bool) -> bool:
    """Tell whether to go on: with `--yes`, or if a person who has seen the plan says so.

    Who has no terminal at standard output is asked with the plan `in_short`.
    """
    if yes:
        return True
    if streams.terminal_width() is not None and not as_json:
        streams.write_lines(plan)
        return streams.confirmed()
    return streams.confirmed(in_short)


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
