"""Arguments and options that several commands share, so that they mean the same everywhere.

Rule: one name, one meaning, one help text.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

import typer

from sessrotate.errors import SessrotateError

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size(text: str) -> int:
    """Return the bytes that a size such as `50M` means, in powers of 1024."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not found:
        raise typer.BadParameter(f"{text!r} is no size such as 500K, 50M or 2G.")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _complete_session(incomplete: str) -> list[str]:
    from sessrotate.formats import claude  # noqa: PLC0415 - wanted by a shell, not by a command

    try:
        return [path.stem for path in claude.sessions(incomplete)]
    except (OSError, SessrotateError):
        return []


Session = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="A session: path, id, or the beginning of an id.",
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
        help="A session: path, id, or the beginning of an id.",
        autocompletion=_complete_session,
        show_default=False,
    ),
]
Segments = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A folder of segments, one of its files, or a session.",
        autocompletion=_complete_session,
    ),
]
ManySegments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SOURCE]...",
        show_default=False,
        help="Folders of segments, files of them, or sessions.",
        autocompletion=_complete_session,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
Wait = Annotated[
    float,
    typer.Option(
        "--wait",
        metavar="SECONDS",
        min=0,
        help="How long to wait for a moment in which nobody writes to the session.",
    ),
]
