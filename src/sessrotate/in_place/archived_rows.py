"""Rows of the archive that a live file needs: where they are looked for, and their bytes.

Rule: only reads, and a segment is open only while its rows are taken. Compressed and pruned ones
count as well, as long as they are there.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from sessrotate.errors import DamagedError
from sessrotate.model import Span
from sessrotate.segments import sealed_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sessrotate.archive.place import Place
    from sessrotate.archive.state import State
    from sessrotate.clients.claude.ancestry import Carried
    from sessrotate.model import SealedSegment
    from sessrotate.system.source import Source


def older(found: State, archived: Sequence[SealedSegment]) -> Iterator[tuple[int, Source | None]]:
    """Yield the sealed segments, the newest first; None for one that cannot be looked into."""
    for entry in reversed(archived):
        with sealed_file.sealed(found.place.archive, found.place.session, entry) as source:
            yield entry.segment.index, source


def carried(
    lines: Iterable[Carried],
    archived: Sequence[SealedSegment],
    place: Place,
    live_file: Source,
) -> Iterator[bytes]:
    """Yield lines, newlines included, from wherever they stand.

    Raises DamagedError if a segment cannot be read any more.
    """
    for index, group in groupby(lines, key=lambda entry: entry.segment):
        spans = [Span(entry.span.start, entry.span.end + 1) for entry in group]
        if index is None:
            for span in spans:
                yield from live_file.pieces(span)
            continue
        with sealed_file.sealed(place.archive, place.session, archived[index]) as segment:
            if segment is None:
                raise DamagedError(f"Segment {index} cannot be read any more.")
            for span in spans:
                yield from segment.pieces(span)
