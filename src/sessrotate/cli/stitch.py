"""`sessrotate stitch`: the full history, byte for byte."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessrotate import archive, find, fs, packed, place, state, stitch
from sessrotate.cli import streams
from sessrotate.cli.options import Quiet, Segments
from sessrotate.errors import RefusedError, StorageError, WrongUsageError, printable, storage
from sessrotate.model import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.stitch import OnGap


def command(
    source: Segments,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to FILE, not to standard output."
        ),
    ] = None,
    allow_gaps: Annotated[
        bool, typer.Option("--allow-gaps", help="Leave out what was pruned, and say so.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Put segments together again: the session's exact bytes.

    Everything is verified while it is written. If anything is missing or changed, the exit code
    is 74, a sentence names the segment, and FILE is not there.
    """
    with _opened(find.path_of(source), _tell if allow_gaps else None) as (size, pieces):
        _write(size, pieces, output, quiet=quiet)


def _write(size: int, pieces: Iterator[memoryview], output: Path | None, *, quiet: bool) -> None:
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


def _tell(gap: str) -> None:
    streams.message(f"sessrotate: {gap}")


@contextmanager
def _opened(path: Path, on_gap: OnGap | None) -> Iterator[tuple[int, Iterator[memoryview]]]:
    """Yield how many bytes a source gives, and the bytes; raise if it is none."""
    where = place.of(path)
    if where is not None:
        with state.opened(where) as found:
            if found.is_rotated:
                if found.is_gone:
                    name = printable(str(where.live))
                    streams.message(f"sessrotate: {name} is gone; this is what is archived.")
                size = sum(piece.span.size for piece in found.history())
                yield size, stitch.history(found, on_gap)
                return
    segments = archive.find(path)
    if segments is not None:
        yield segments.source_bytes, stitch.stream(segments, on_gap)
        return
    with packed.opened(path) as source:
        find.client_of(source)
        # A session that was never split is its own history.
        whole = Span(0, source.size())
        yield whole.size, (memoryview(data) for data in source.pieces(whole))
