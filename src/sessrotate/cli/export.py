"""`sessrotate export`: the full history for people or programs, each record once."""

from __future__ import annotations

import codecs
import os
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sessrotate import find, fs, safe_text
from sessrotate.cli import streams, to_file
from sessrotate.cli.options import AllowGaps, Quiet, Sessions, flag
from sessrotate.errors import WrongUsageError, printable, storage
from sessrotate.reading.deduplicate import Seen
from sessrotate.reading.session import open_session

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from sessrotate.reading.deduplicate import Copies
    from sessrotate.reading.session import Session


FORMATS: Final = {"jsonl": ".jsonl", "markdown": ".md", "html": ".html"}
"""How files of each end; each is a module of `sessrotate.export` with a function `pieces`."""

_NOT_FOR_TERMINALS: Final = {"html"}
_LONGEST_NAME: Final = 200


def _known(name: str) -> str:
    if name not in FORMATS:
        raise typer.BadParameter(f"{printable(name)} is not one of {', '.join(FORMATS)}.")
    return name


def command(
    sessions: Sessions,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="|".join(FORMATS),
            callback=_known,
            autocompletion=lambda: list(FORMATS),
            help="The original lines for programs, or text for people.",
        ),
    ] = "jsonl",
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Write to this file. With several sessions, or if PATH is a folder or ends with "
            "/, write one file per session into it.",
        ),
    ] = None,
    all_branches: Annotated[
        bool,
        flag(
            "--all-branches",
            "In markdown and html, show branches that were rewound too, and mark them.",
        ),
    ] = False,
    allow_gaps: AllowGaps = False,
    quiet: Quiet = False,
) -> None:
    """Write the full history of sessions, each record once.

    Records that a compaction wrote again are left out: of records with the same uuid, the first is
    kept. So are, with jsonl, those that a resumed session repeats from its parent, if you name the
    parent before it; in markdown and html, each session is whole. One session goes to standard
    output. Several go to the current folder, each to a file named after its session; existing
    files are never overwritten. If a segment is missing or changed, the command exits with 74 and
    leaves no file for that session. What a client itself cut out of a session is no reason for
    that, and named.

    markdown and html leave out branches that were rewound, from which nothing goes on, and say
    where, and how many records. jsonl has all of them.
    """
    if all_branches and to == "jsonl":
        raise WrongUsageError("--format jsonl has all branches: leave --all-branches out.")
    more: dict[str, object] = {"all_branches": True} if all_branches else {}
    if to == "jsonl":
        more["seen"] = Seen()  # of all that are named, each record once
    path = None if output is None else Path(output)
    is_named_so = output is not None and output.endswith(tuple(filter(None, (os.sep, os.altsep))))
    is_folder = len(sessions) > 1 or is_named_so or (path is not None and path.is_dir())
    is_output = not is_folder and output in {None, "-"}
    if is_output and streams.terminal_width() is not None and to in _NOT_FOR_TERMINALS:
        raise WrongUsageError(
            f"This would print {to} on the terminal. Name a file with -o, or pipe the output into "
            "another command."
        )
    # Each once, whatever it is called: the second would find the first one's file.
    for named in {path.resolve(): path for path in map(find.path_of, sessions)}.values():
        with open_session(named, on_gap=streams.warn if allow_gaps else None) as session:
            for said in session.cuts:
                streams.warn(said)
            pieces = _pieces(to, session, more)
            if is_output:
                for piece in pieces if streams.terminal_width() is None else _harmless(pieces):
                    streams.write_data(piece)
                continue
            target = path or Path()
            if is_folder:
                if not target.is_dir():
                    with storage("write the output"):
                        fs.create_folder(target)
                target /= file_name(session.id) + FORMATS[to]
            size = sum(info.bytes or 0 for info in session.segments)
            to_file.write(target, pieces, "Exporting", size, quiet=quiet)


def _pieces(to: str, session: Session, more: dict[str, object]) -> Iterator[bytes]:
    """Yield the output, and then report how many copies were left out."""
    pieces: Generator[bytes, None, Copies | None]
    pieces = import_module(f"sessrotate.export.{to}").pieces(session, **more)
    copies = yield from pieces
    if copies is not None and copies.left_out:
        what = "copy of a record" if copies.left_out == 1 else "copies of records"
        streams.warn(
            f"Left out {copies.left_out:,} {what}, {copies.differing:,} of them with other bytes."
        )


def _harmless(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the text without control characters, which a terminal might obey."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        yield safe_text.cleaned(decoder.decode(piece)).encode()


def file_name(session: str) -> str:
    """Return a session's id as a file name; an id from a manifest may contain anything."""
    clean = re.sub(r"[^A-Za-z0-9._-]", "_", session).lstrip(".-")[:_LONGEST_NAME]
    return clean or "session"
