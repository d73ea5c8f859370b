"""Arguments and options that several commands share.

Rule: an option means the same in every command, and has one help text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sessrotate import units
from sessrotate.errors import SessrotateError


def size(text: str) -> int:
    """Return the bytes that a size such as `50M` means, in powers of 1024."""
    found = units.size(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a size such as {units.SIZES}.")
    return found


def age(text: str) -> float:
    """Return the seconds that an age such as `30d` means."""
    found = units.age(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not an age such as {units.AGES}.")
    return found


def _complete_session(incomplete: str) -> list[str]:
    from sessrotate import clients  # noqa: PLC0415 - wanted by a shell, not by a command

    try:
        return [
            client.session_of(path.name)
            for client in clients.clients()
            for path in client.sessions(incomplete)
        ]
    except (OSError, SessrotateError):
        return []


Session = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="A session: its path, its id, or the beginning of its id.",
        autocompletion=_complete_session,
    ),
]
Sessions = Annotated[
    list[str],
    typer.Argument(
        metavar="SESSION...",
        help="Sessions: paths, ids, or beginnings of ids.",
        autocompletion=_complete_session,
    ),
]
SessionOrNone = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]",
        help="A session: its path, its id, or the beginning of its id.",
        autocompletion=_complete_session,
        show_default=False,
    ),
]
Segments = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A session, a folder of segments, or one segment file.",
        autocompletion=_complete_session,
    ),
]
ManySegments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SOURCE]...",
        show_default=False,
        help="Sessions, folders of segments, or segment files.",
        autocompletion=_complete_session,
    ),
]
ManySessions = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SESSION]...",
        show_default=False,
        help="Sessions: paths, ids, or beginnings of ids.",
        autocompletion=_complete_session,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        show_default=False,
        help="Read the settings from this file instead of yours.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", "-n", help="Show what would be done, and change nothing.")
]
Every = Annotated[bool, typer.Option("--all", help="All archives on this machine.")]
AllowGaps = Annotated[
    bool,
    typer.Option("--allow-gaps", help="Skip segments that are missing or damaged, and say which."),
]
AllowPruned = Annotated[
    bool,
    typer.Option(
        "--allow-gaps",
        help="Skip pruned segments and accept segments without digests; report both.",
    ),
]
"""Where the bytes are promised to be exact, a damaged segment cannot be skipped."""

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")]
Wait = Annotated[
    float,
    typer.Option(
        "--wait",
        metavar="SECONDS",
        min=0,
        help="How long to wait until nobody is writing to the session.",
    ),
]
