"""`sessrotate export`: the full history for people or programs, each record once."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sessrotate import fs, harmless
from sessrotate.cli import streams, to_file
from sessrotate.cli.options import AllowGaps, Quiet, Sessions
from sessrotate.errors import WrongUsageError, printable, storage
from sessrotate.reading.session import open_session

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from sessrotate.reading.deduplicate import Copies
    from sessrotate.reading.session import Session


@dataclass(frozen=True, slots=True)
class Format:
    """How files of a format end, and whether a terminal can show it."""

    suffix: str
    is_for_terminals: bool = True


_KNOWN: Final = {
    "jsonl": Format(".jsonl"),
    "markdown": Format(".md"),
    "html": Format(".html", is_for_terminals=False),
}
FORMATS: Final = {
    name: found for name, found in _KNOWN.items() if find_spec(f"sessrotate.export.{name}")
}
"""Each is a module of `sessrotate.export` with a function `pieces`."""

_LONGEST_NAME: Final = 200


def _known(name: str) -> str:
    if name not in FORMATS:
        raise typer.BadParameter(f"{printable(name)} is none of {', '.join(FORMATS)}.")
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
            help="The original lines for programs, or a text for people.",
        ),
    ] = "jsonl",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Write to the file PATH; of several sessions, or if PATH is a folder, to a file "
            "for each in it.",
        ),
    ] = None,
    allow_gaps: AllowGaps = False,
    quiet: Quiet = False,
) -> None:
    """Write the full history of sessions, each record once.

    What a resumed session repeats of its parent, and what a compaction appends once more, is left
    out: of rows with the same uuid the first stands. One session goes to standard output, several
    to files in the current folder, named by session; nothing that exists is written over. If
    anything is missing or changed, the exit code is 74, and that session's file is not there.
    """
    is_folder = len(sessions) > 1 or (output is not None and output.is_dir())
    is_output = not is_folder and (output is None or str(output) == "-")
    if is_output and streams.terminal_width() is not None and not FORMATS[to].is_for_terminals:
        raise WrongUsageError(
            f"This would print {to} on the terminal: name a file with -o, or pipe it into "
            "another command."
        )
    for name in sessions:
        with open_session(name, on_gap=streams.warn if allow_gaps else None) as session:
            pieces = _pieces(to, session)
            if is_output:
                _print(pieces)
                continue
            path = output or Path()
            if is_folder:
                with storage("write the output"):
                    _make_folder(path)
                path /= file_name(session.id) + FORMATS[to].suffix
            size = sum(info.bytes or 0 for info in session.segments)
            to_file.write(path, pieces, "Exporting", size, quiet=quiet)


def _pieces(to: str, session: Session) -> Iterator[bytes]:
    """Yield the output; then say what was left out, if the format tells."""
    pieces: Generator[bytes, None, Copies | None]
    pieces = import_module(f"sessrotate.export.{to}").pieces(session)
    copies = yield from pieces
    if copies is not None and copies.left_out:
        streams.warn(
            f"Left out {copies.left_out:,} copies of records, {copies.differing:,} "
            "of them with other bytes."
        )


def _print(pieces: Iterator[bytes]) -> None:
    shown = pieces if streams.terminal_width() is None else _harmless(pieces)
    for piece in shown:
        streams.write_data(memoryview(piece))


def _harmless(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield text that a terminal only shows: a session may hold what it would obey."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        yield harmless.cleaned(decoder.decode(piece)).encode()


def file_name(session: str) -> str:
    """Return a session's id as a name: it may come from a manifest, and hold anything."""
    clean = re.sub(r"[^A-Za-z0-9._-]", "_", session).lstrip(".-")[:_LONGEST_NAME]
    return clean or "session"


def _make_folder(path: Path) -> None:
    if not path.is_dir():
        fs.create_folder(path)
