"""Arguments and options that several commands share.

Rule: an option means the same in every command, and has one help text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer

from sessrotate import clients, units
from sessrotate.errors import SessrotateError, WrongUsageError, printable

T = TypeVar("T", int, float)


def _parser(parse: Callable[[str], T | None], what: str) -> Callable[[str], T]:
    """Return a parser of an option's value; where `parse` gives None, it says what is expected."""

    def parsed(text: str) -> T:
        found = parse(text)
        if found is None:
            raise typer.BadParameter(f"{text!r} is not {what}.")
        return found

    return parsed


size: Final = _parser(units.size, f"a size such as {units.SIZES}")
age: Final = _parser(units.age, f"an age such as {units.AGES}")


def whole(least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers, `least` or more."""

    def parse(text: str) -> int | None:
        found = int(text) if re.fullmatch(r"\d{1,9}", str(text)) else -1
        return found if least <= found else None

    return _parser(parse, f"a whole number, {least} or more")


def _seconds(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if found >= 0 else None


def new_file(text: str) -> Path:
    """Return the path of a file to be written; raise BadParameter if the text names a folder."""
    if text.endswith(tuple(filter(None, (os.sep, os.altsep)))):
        raise typer.BadParameter(f"{text!r} is a folder. Add the name of a file.")
    return Path(text)


def flag(name: str, text: str) -> Any:
    """Return an option without a value; without a name, typer would add a second one, `--no-…`."""
    return typer.Option(name, help=text)


def choice(name: str, words: Collection[str], text: str) -> Any:
    """Return an option whose value is one of some words, which a shell completes."""

    def known(word: str | None) -> str | None:
        if word is not None and word not in words:
            raise typer.BadParameter(f"{printable(word)} is not one of {', '.join(words)}.")
        return word

    return typer.Option(
        name, metavar="|".join(words), callback=known, autocompletion=lambda: [*words], help=text
    )


def sized(text: str) -> Any:
    """Return an option whose value is a size."""
    return typer.Option(parser=size, metavar="SIZE", help=text)


def aged(text: str, default: str | bool = True) -> Any:
    """Return an option whose value is an age; `default` is what the help says of its default."""
    return typer.Option(parser=age, metavar="AGE", help=text, show_default=default)


def counted(text: str, least: int = 1) -> Any:
    """Return an option whose value is a whole number, `least` or more."""
    return typer.Option(parser=whole(least), metavar="N", help=text)


def client_of(name: str | None) -> str | None:
    """Return the value of --client. Raises WrongUsageError if there is no such client."""
    names = list(clients.CLIENTS)
    if name is not None and name not in names:
        raise WrongUsageError(
            f"There is no client {printable(name)}. Choose one of: {', '.join(names)}."
        )
    return name


def paths_of(project: str | None) -> frozenset[str]:
    """Return the absolute paths that the value of --project may mean.

    And those of the folders where the client keeps the sessions of these.
    """
    if project is None:
        return frozenset()
    path = os.path.abspath(os.path.expanduser(project))  # noqa: PTH100, PTH111 - no file system
    found, files = {path, os.path.realpath(path)}, clients.in_place().files
    folders = (files.projects_folder() / files.project_name(Path(each)) for each in found)
    return frozenset({*found, *map(str, folders)})


def one_of(sessions: object, other: object, what: str = "a SESSION or pass --all") -> None:
    """Raise WrongUsageError unless sessions are named, or what replaces them is given."""
    if sessions and other:
        raise WrongUsageError(f"Name {what}, but not both.")
    if not (sessions or other):
        raise WrongUsageError(f"Name {what}: `sessrotate list` shows the sessions.")


def _complete_session(incomplete: str) -> list[str]:
    try:
        return [
            client.session_of(path.name)
            for client in clients.clients()
            for path in client.sessions(incomplete)
        ]
    except (OSError, SessrotateError):
        return []


def _sessions(metavar: str, text: str) -> Any:
    return typer.Argument(metavar=metavar, help=text, autocompletion=_complete_session)


_ONE = "A session: its path, its id, or the beginning of its id."
_SEVERAL = "Sessions: paths, ids, or beginnings of ids."
_SEGMENTS = "Sessions, folders of segments, or segment files."

Session = Annotated[str, _sessions("SESSION", _ONE)]
SessionOrNone = Annotated[str | None, _sessions("[SESSION]", _ONE)]
ManySessions = Annotated[list[str] | None, _sessions("[SESSION]...", _SEVERAL)]
Segments = Annotated[
    str, _sessions("SOURCE", "A session, a folder of segments, or one segment file.")
]
ManySegments = Annotated[list[str] | None, _sessions("[SOURCE]...", _SEGMENTS)]

Client = Annotated[
    str | None,
    typer.Option(
        metavar="CLIENT",
        autocompletion=lambda: list(clients.CLIENTS),
        help=f"Only sessions of this client: {', '.join(clients.CLIENTS)}.",
    ),
]
Project = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Only sessions of this project: its folder, or the last part of its path.",
    ),
]
Segment = Annotated[int, typer.Argument(parser=whole(0), metavar="N", help="The segment's number.")]
Json = Annotated[bool, flag("--json", "Print one JSON document and nothing else.")]
Config = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Read the settings from this file instead of yours."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", "-n", help="Show what would be done, and change nothing.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Every = Annotated[bool, flag("--all", "All archives on this machine.")]
AllowGaps = Annotated[
    bool,
    flag(
        "--allow-gaps",
        "Skip missing segments, and unreadable parts of damaged ones; report both.",
    ),
]
AllowPruned = Annotated[
    bool,
    flag("--allow-gaps", "Skip pruned segments and accept segments without digests; report both."),
]
"""Where the bytes are promised to be exact, a damaged segment cannot be skipped."""

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")]
Wait = Annotated[
    float,
    typer.Option(
        parser=_parser(_seconds, "a number of seconds, 0 or more"),
        metavar="SECONDS",
        help="How long to wait for writers to finish.",
    ),
]
Turns = Annotated[
    str | None,
    typer.Option(
        metavar="A:B",
        help="Only the turns from number A to number B, counted from 1: 3:7, 3: (3 and later), :7, "
        "or 3.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME|UUID",
        help=f"Start here: {units.MOMENTS} (UTC unless a zone is given), an age ({units.AGES}), or "
        "the uuid of a record.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option(metavar="TIME|UUID", help="Stop here; this day or record is included."),
]
At = Annotated[
    str | None,
    typer.Option(
        metavar="SEGMENT:OFFSET",
        help="Start with the record at this place: a segment, and an offset in bytes. With the "
        "third number that `search` prints, show that record only, around its match.",
    ),
]
