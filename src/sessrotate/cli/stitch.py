"""`sessrotate stitch`: the full history, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from sessrotate import find
from sessrotate.cli import results, streams
from sessrotate.cli.options import AllowPruned, Quiet, Segments, new_file
from sessrotate.errors import WrongUsageError, printable
from sessrotate.reading import holders


def command(
    source: Segments,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            parser=new_file,
            metavar="FILE",
            help="Write to this file instead of standard output.",
        ),
    ] = None,
    allow_gaps: AllowPruned = False,
    quiet: Quiet = False,
) -> None:
    """Join segments into the session's exact bytes.

    Verifies each segment while writing it. If a segment is missing or changed, the command names
    it, exits with 74, and leaves no FILE.
    """
    with holders.opened(find.path_of(source)) as holder:
        found = holder.state
        if found is not None and found.is_gone and found.problem is None:
            streams.warn(
                f"{printable(str(found.place.live))} is gone. This is what its archive holds."
            )
        pieces = holder.stream(streams.warn if allow_gaps else None)
        _write(holder.size, pieces, output, quiet=quiet)


def _write(size: int, pieces: Iterator[memoryview], output: Path | None, *, quiet: bool) -> None:
    if output is None or str(output) == "-":
        if streams.terminal_width() is not None:
            raise WrongUsageError(
                "This would print a whole session on the terminal. Name a file with -o, or pipe "
                "the output into another command."
            )
        for piece in pieces:
            streams.write_data(piece)
        return
    results.to_file(output, pieces, "Stitching", size, quiet=quiet)
