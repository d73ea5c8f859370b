"""`sessrotate list`: what sessions there are, and how large they are."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Annotated

import typer
from msgspec.structs import replace

from sessrotate import clients, find, units
from sessrotate.cli import results, streams
from sessrotate.cli.options import (
    Client,
    Json,
    Project,
    Quiet,
    aged,
    choice,
    client_of,
    flag,
    paths_of,
    sized,
)
from sessrotate.errors import printable
from sessrotate.render import count
from sessrotate.render import list as render_list
from sessrotate.reports import ORDERS, SessionInfo, Wanted, in_order, listing
from sessrotate.system import user_folders


def command(
    *,
    client: Client = None,
    project: Project = None,
    min_size: Annotated[
        int | None,
        sized(
            "Only sessions whose live file (or archive, if put away) has at least this size, "
            "e.g. 100M."
        ),
    ] = None,
    older_than: Annotated[
        float | None, aged("Only sessions unused for at least this long, e.g. 30d.")
    ] = None,
    newer_than: Annotated[
        float | None, aged("Only sessions used within this time, e.g. 12h.")
    ] = None,
    by: Annotated[
        str,
        choice(
            "--sort",
            ORDERS,
            "Which sessions come first: the largest, those that take the most disk space, those "
            "whose rotation frees the most (reads every file, as --deep does), the latest, or the "
            "first in the alphabet.",
        ),
    ] = "size",
    deep: Annotated[
        bool,
        flag(
            "--deep",
            "Read every file, to show exact compactions and live tails, what rotating frees, and "
            "which session continues which.",
        ),
    ] = False,
    hidden: Annotated[
        bool,
        flag(
            "--hidden",
            "Also list sessions of agents, unused ones (empty, warm-ups), and copies of files.",
        ),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List all sessions, largest first.

    Shows for each session the size of its live file, the disk space of all its files (with archive
    and trash), and the size of the files beside it (agents' transcripts, long tool results). Reads
    only the first and last 64 KiB of each file, so a rotated session shows a minimum such as `5+`
    compactions. --deep reads all of each live file: it shows the exact figure, and how much disk
    space rotating it would free. Shortens ids to as many characters as other commands need. The
    exit code is 1 if a listed session has lost its archive, or if a folder that cannot be read may
    hide sessions, and 0 if not.
    """
    now = time.time()
    wanted = Wanted(
        client=client_of(client),
        project=project,
        paths=paths_of(project),
        least=min_size or 0,
        before=None if older_than is None else now - older_than,
        since=None if newer_than is None else now - newer_than,
        hidden=hidden,
    )
    unread: dict[str, str] = {}
    with _nothing_collected():
        known = listing.sessions(hidden=True, on_unread=unread.__setitem__)
        shown = in_order(filter(wanted.takes, known), by)
    if deep or by == "gain":
        total = sum(each.bytes for each in shown if listing.is_to_scan(each))
        with streams.progress("Scanning", total, quiet=quiet) as progress:
            shown = in_order(listing.deepened(shown, progress, unread.__setitem__), by)
    if as_json:
        streams.write_all(render_list.as_json(shown))
    else:
        everything = replace(wanted, hidden=True)
        aside = (each for each in known if each.standing != "session" and not hidden)
        unlisted = [*filter(everything.takes, aside)]
        _show(shown, known, unlisted, now, by)
        if others := clients.in_place().files.other_folders():
            named = " and ".join(printable(str(path)) for path in others)
            streams.message(f"Not listed: {named}. CLAUDE_CONFIG_DIR=FOLDER lists one of them.")
    _tell(unread)
    is_hidden = bool(unread) and not unread.keys().isdisjoint(find.hidden())
    if is_hidden or any(each.archive_missing for each in shown):
        raise typer.Exit(1)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Pause the garbage collector, and keep from it what is made here: all of it stays."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def _show(
    shown: list[SessionInfo],
    known: list[SessionInfo],
    hidden: list[SessionInfo],
    now: float,
    by: str,
) -> None:
    """Show the table; of all that is `known`, the `hidden` ones would be in it, too."""
    if not shown:
        streams.message(_nothing(known))
        return
    look = render_list.Look(
        now=now,
        width=streams.terminal_width(),
        colour=streams.colours(),
        home=str(user_folders.home()),
        by=by,
    )
    listed = {each.path for each in shown}
    # What nobody used, and a copy, is in nobody's way when a session is looked for by its id.
    usual = (each for each in known if each.standing == "session" or each.path in listed)
    names = (name for each in usual if each.standing != "copy" for name in (each.name, each.id))
    total = render_list.total(shown, hidden, look)
    lines = chain((total,), render_list.table(shown, names, look), render_list.namesakes(shown))
    if look.width is None:
        streams.write_all(lines)
        return
    with results.paged() as write:
        write("".join(lines).encode(sys.stdout.encoding or "utf-8", "replace"))


def _nothing(known: list[SessionInfo]) -> str:
    """Return what to say when the list is empty."""
    hidden = sum(each.standing != "session" for each in known)
    if len(known) > hidden:
        others = count(len(known) - hidden, "session")
        return f"No session matches. Without these options, {others} would be listed."
    each_of = (printable(str(each.sessions_folder())) for each in clients.clients())
    folders = [*dict.fromkeys(each_of)]  # several clients may have one
    looked = " and ".join([", ".join(folders[:-1]), folders[-1]] if folders[1:] else folders)
    more = f" Pass --hidden to see {hidden:,} of agents, unused, or copies." if hidden else ""
    return f"There are no sessions in {looked}.{more}"


def _tell(unread: dict[str, str]) -> None:
    """Report what could not be read, if anything."""
    if not unread:
        return
    told = [f"{printable(path)} ({reason.rstrip('.')})" for path, reason in unread.items()]
    streams.message(f"sessrotate: Cannot read {units.some(told)}.")
