"""`sessrotate stitch`: the full history, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessrotate import archive, find, fs, stitch
from sessrotate.cli import streams
from sessrotate.cli.options import Quiet
from sessrotate.errors import RefusedError, StorageError, WrongUsageError, printable, storage
from sessrotate.model import Span
from sessrotate.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="A folder of segments, one of its files, or a session."
        ),
    ],
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
    path = find.path_of(source)
    if output is None or str(output) == "-":
        if streams.terminal_width() is not None:
            raise WrongUsageError(
                "This would print a whole session on the terminal: name a file with -o, "
                "or pipe it into another command."
            )
        for piece in _pieces(path, lambda _done: None):
            streams.write_data(piece)
        return
    try:
        with (
            storage("write the output"),
            fs.output(output) as file,
            streams.progress("Stitching", _size(path), quiet=quiet) as progress,
        ):
            for piece in _pieces(path, progress):
                file.append(piece)
            file.publish()
    except StorageError as error:
        if not isinstance(error.__cause__, FileExistsError):
            raise
        name = printable(str(output))
        raise RefusedError(f"{name} exists: remove it, or name another file.") from None


def _size(path: Path) -> int:
    if path.is_dir():
        return archive.load(path).source_bytes
    if archive.is_segment(path.parent, path.name):
        return archive.load(path.parent, path.name).source_bytes
    return path.stat().st_size


def _pieces(path: Path, progress: Callable[[int], None]) -> Iterator[memoryview]:
    done = 0
    for piece in _source_pieces(path):
        yield piece
        done += len(piece)
        progress(done)


def _source_pieces(path: Path) -> Iterator[memoryview]:
    if path.is_dir():
        yield from stitch.stream(archive.load(path))
        return
    with Source(path) as source:
        if archive.is_segment(path.parent, path.name):
            yield from stitch.stream(archive.load(path.parent, path.name))
            return
        # A session that was never split is its own history.
        for data in source.pieces(Span(0, source.size())):
            yield memoryview(data)
