"""`sessrotate stitch`: the full history, byte for byte."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessrotate import clients, find
from sessrotate.archive import place, state
from sessrotate.cli import streams, to_file
from sessrotate.cli.options import AllowPruned, Quiet, Segments
from sessrotate.errors import WrongUsageError, printable
from sessrotate.model import Span
from sessrotate.reading import stitch
from sessrotate.segments import compressed, load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.reading.stitch import OnGap


def command(
    source: Segments,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to FILE, not to standard output."
        ),
    ] = None,
    allow_gaps: AllowPruned = False,
    quiet: Quiet = False,
) -> None:
    """Put segments together again: the session's exact bytes.

    Everything is verified while it is written. If anything is missing or changed, the exit code
    is 74, a sentence names the segment, and FILE is not there.
    """
    with _opened(find.path_of(source), streams.warn if allow_gaps else None) as (size, pieces):
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
    to_file.write(output, pieces, "Stitching", size, quiet=quiet)


@contextmanager
def _opened(path: Path, on_gap: OnGap | None) -> Iterator[tuple[int, Iterator[memoryview]]]:
    """Yield how many bytes a source gives, and the bytes; raise if it is none."""
    where = place.of(path)
    if where is not None:
        with state.opened(where) as found:
            if found.is_rotated:
                if found.is_gone:
                    name = printable(str(where.live))
                    streams.warn(f"{name} is gone; this is what is archived.")
                size = sum(piece.span.size for piece in found.history())
                yield size, stitch.history(found, on_gap)
                return
    segments = load.find(path)
    if segments is not None:
        yield segments.source_bytes, stitch.stream(segments, on_gap)
        return
    with compressed.opened(path) as source:
        clients.client_of(source)
        # A session that was never split is its own history.
        whole = Span(0, source.size())
        yield whole.size, (memoryview(data) for data in source.pieces(whole))
