"""`sessrotate stitch`: the full history, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessrotate import archive, find, fs, stitch
from sessrotate.cli import streams
from sessrotate.cli.options import Quiet, Segments
from sessrotate.errors import RefusedError, StorageError, WrongUsageError, printable, storage
from sessrotate.model import Span
from sessrotate.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator


def command(
    source: Segments,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to FILE, not to standard output."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Put segments together again: the session's exact bytes.

    Everything is verified while it is written. If anything is missing or changed, the exit code
    is 74, a sentence names the segment, and FILE is not there.
    """
    size, pieces = _opened(find.path_of(source))
    if output is None or str(output) == "-":
        if streams.terminal_width() is not None:
            raise WrongUsageError(
                "This would print a whole session on the terminal: name a file with -o, "
                "or pipe it into another command."
            )
        for piece in pieces:
            streams.write_data(piece)
        return
    try:
        with (
            storage("write the output"),
            fs.output(output) as file,
            streams.progress("Stitching", size, quiet=quiet) as progress,
        ):
            done = 0
            for piece in pieces:
                file.append(piece)
                done += len(piece)
                progress(done)
            file.publish()
    except StorageError as error:
        if isinstance(error.__cause__, BrokenPipeError):
            raise streams.ClosedPipe from None
        if not isinstance(error.__cause__, FileExistsError):
            raise
        name = printable(str(output))
        raise RefusedError(f"{name} exists: remove it, or name another file.") from None


def _opened(path: Path) -> tuple[int, Iterator[memoryview]]:
    """Return how many bytes a source gives, and the bytes; raise if it is none."""
    segments = archive.find(path)
    if segments is not None:
        return segments.source_bytes, stitch.stream(segments)
    with Source(path) as source:
        find.check_session(source)
        return source.size(), _whole(path)


def _whole(path: Path) -> Iterator[memoryview]:
    # A session that was never split is its own history.
    with Source(path) as source:
        for data in source.pieces(Span(0, source.size())):
            yield memoryview(data)
