"""Rows of the archive that a live file needs: where they are looked for, and their bytes.

Rule: only reads, and a segment is open only while its rows are taken. Compressed and pruned ones
count as well, as long as they are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby

from sessrotate.archive.place import Place
from sessrotate.archive.state import State
from sessrotate.clients.in_place import Archived, Carried
from sessrotate.errors import DamagedError
from sessrotate.model import SealedSegment, Span
from sessrotate.segments import compressed
from sessrotate.system.source import Source


def archived(found: State, listed: Sequence[SealedSegment], *, is_cut: bool) -> Archived:
    """Return what of the archive would be in the live file if it had not been rotated.

    What its client cut out (`is_cut`: since the last rotation) and all before would not.
    """
    gap = max((at for at, each in enumerate(listed) if each.segment.is_cut), default=0)
    there = () if is_cut else listed[gap:]
    return Archived(
        sum(each.segment.span.size for each in there),
        partial(_older, found, listed),
        lambda: any(says for _, says in _said(found, there)),
        lambda: next((index for index, says in _said(found, there) if not says), 0),
    )


def _said(found: State, archived: Sequence[SealedSegment]) -> Iterator[tuple[int, bool]]:
    """Yield the numbers of segments, the newest first, and if their compactions say what they kept.

    Those that cannot be looked into are passed over.
    """
    for entry in reversed(archived):
        if entry.segment.boundary is None:
            continue
        with compressed.sealed(found.place.archive, found.place.session, entry) as source:
            if source is not None:
                start = source.size() - entry.segment.span.size
                line = Span(start, source.line_end(start, source.size()))
                yield entry.segment.index, found.place.client.resume.says_at(source, line)


def _older(found: State, archived: Sequence[SealedSegment]) -> Iterator[tuple[int, Source | None]]:
    """Yield the sealed segments, the newest first; None for one that cannot be looked into."""
    for entry in reversed(archived):
        with compressed.sealed(found.place.archive, found.place.session, entry) as source:
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
        with compressed.sealed(place.archive, place.session, archived[index]) as segment:
            if segment is None:
                raise DamagedError(f"Segment {index} cannot be read any more.")
            for span in spans:
                yield from segment.pieces(span)
