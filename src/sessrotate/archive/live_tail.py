"""Whether a file is the live tail of a rotated session: its archive, and its own segments.

Rule: by content alone, never by a name. A header counts only with the lines that it was written
for: a client copies it into a fork, and changes those. An archive fits if it ends where the header
says that the file begins, with the same body before. Only reads.

Whoever rotates a live file and whoever reads it ask here for its segments, so that one has the same
number, place and times before it is archived and after it.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sessrotate import clients, names
from sessrotate.archive.late_lines import is_at
from sessrotate.archive.record import HEAD, Mark
from sessrotate.errors import DamagedError, InUseError, SessrotateError, storage
from sessrotate.model import Boundary, Scan, SealedSegment, Segment, Span
from sessrotate.segments import headers, manifest, scan
from sessrotate.segments.headers import MAX_LINE, LiveHeader
from sessrotate.segments.manifest import Manifest
from sessrotate.segments.segment_set import SegmentFile, SegmentSet, body_pieces, content, opened
from sessrotate.system import inside
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from sessrotate.clients.protocol import Client


def tail_header(path: Path, but: str | None = None) -> LiveHeader | None:
    """Return the header of a live tail, whatever the file is called; None if it is no such file.

    That of the session `but` is not wanted, and what stands behind it not read. A link is no live
    file, and not followed.
    """
    try:
        if not begins_so(path):
            return None
        with Source.itself(path) as source:
            header = headers.parse_live(first_line(source))
            if header is None or header.root == but:
                return None
            if misfit(header, source) is None:
                return header
            # A fork has the header of another session, and none of the lines that belong to it.
            is_cut = header.root == path.stem and cut(header, source) is not None
            return header if is_cut else None
    except (SessrotateError, OSError):
        return None


def begins_so(path: Path) -> bool:
    """Tell whether a file begins like a rotated live file.

    One that cannot be read does not, nor does a link, which is not followed.
    """
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with FileIO(inside.opened_at(path), "rb") as file:
            return file.read(len(names.ROTATED)) == names.ROTATED
    except (DamagedError, OSError):
        return False


def first_line(source: Source) -> bytes:
    """Return the first line of a file, newline included, or what would be too much for a header."""
    end = min(MAX_LINE, source.size())
    return source.read_at(0, min(source.line_end(0, end) + 1, end))


def has_all_of(
    live: Source | None,
    header: LiveHeader | None,
    segments: SegmentSet | None,
    old: Source,
    session: str,
) -> bool:
    """Tell whether all of a replaced file is in these archived segments and the live file.

    `header` is the live file's. Where in the history a file begins, its header says.
    """
    start, at = body_of(header)
    old_start, other = body_of(headers.parse_live(first_line(old), session))
    size, position = old.size(), other
    end = size if live is None else min(size, other + max(0, start - old_start))
    for part in () if segments is None else segments.parts:
        span = None if part.segment is None else part.segment.span
        if segments is None or span is None or position >= end:
            break
        if span.start - old_start + other != position:
            continue
        mark, most = Mark(span.size, part.digest or ""), end - position
        if most < span.size:  # it ended here once, and was gone on with elsewhere
            mark = Mark.of_pieces(_first(segments, part, most))
        if not is_at(old, position, mark):
            return False
        position += mark.size
    rest = Span(position, size)
    return position == end and (
        live is None
        or is_at(live, at + max(0, old_start - start), Mark.of_pieces(old.pieces(rest)))
    )


def _first(segments: SegmentSet, part: SegmentFile, size: int) -> Iterator[memoryview]:
    """Yield the first bytes of a segment."""
    for buffer, start, end in body_pieces(segments.folder, part):
        with memoryview(buffer) as view:
            piece = view[start : min(end, start + size)]
            size -= len(piece)
            yield piece
        if not size:
            return


def body_of(header: LiveHeader | None) -> tuple[int, int]:
    """Return where in the history, and where in its file, what stands behind a header begins."""
    return (0, 0) if header is None else (header.start, headers.prefix(header))


def misfit(header: LiveHeader, live: Source) -> str | None:
    """Return what of a live file is not what its header says any more; None if all is."""
    begin = len(headers.live_line(header))
    if not is_at(live, begin, Mark(header.carried_bytes, header.carried_digest)):
        return "the lines carried along were changed"
    start = begin + header.carried_bytes
    line = Span(start, min(live.line_end(start, live.size()) + 1, live.size()))
    if not is_at(live, start, Mark(line.size, header.boundary_digest)):
        return "it does not continue with the compaction that it was cut at"
    return None


class Cut(Struct, frozen=True):
    """Where a client cut a live file, and whether that is the compaction that it begins with.

    Then (`is_same`) no byte of the history is gone but settings that later ones replace.
    """

    boundary: Boundary
    is_same: bool


def cut(header: LiveHeader, live: Source) -> Cut | None:
    """Return where a client cut a `misfit`; None if it did not do that.

    From 2.1.287 on a client may (`CLAUDE_CODE_TRANSCRIPT_LOCAL_GC`): it keeps our header, of what
    stood before its last compaction what a resume needs, and all behind it. So the compaction that
    the header tells of is not in the file any more, and another one is. Or it is the same one:
    2.1.287 trims what was rotated at it. Behind the very lines that were carried along, another
    one would be the same, edited.
    """
    begin = len(headers.live_line(header))
    if header.carried_bytes and is_at(
        live, begin, Mark(header.carried_bytes, header.carried_digest)
    ):
        return None
    found = scan.scan(live, clients.in_place().files, lambda _done: None).boundaries
    behind = [boundary for boundary in found if boundary.offset >= begin]
    for boundary in behind:
        line = Span(boundary.offset, live.line_end(boundary.offset, live.size()) + 1)
        if is_at(live, line.start, Mark(line.size, header.boundary_digest)):
            return Cut(boundary, is_same=True)
    return Cut(behind[0], is_same=False) if behind else None


def ends_at(listed: Manifest, header: LiveHeader) -> bool:
    """Tell whether an archive with this manifest ends where a live file begins."""
    last = listed.segments[-1].digest if listed.segments else None
    told = (header.index, header.start, header.parent_digest)
    return told == (len(listed.segments), listed.source_bytes, last)


def holds(source: Source, segments: Iterable[SealedSegment], shift: int = 0) -> bool:
    """Tell whether a file has each of these segments where it stands in the whole history.

    `shift` is where in the file the history begins, in bytes; negative where that is not in it.
    """
    return all(
        entry.segment.span.start + shift >= 0
        and is_at(
            source, entry.segment.span.start + shift, Mark(entry.segment.span.size, entry.digest)
        )
        for entry in segments
    )


def begins_alike(live: Source, archive: Path, listed: Manifest) -> bool:
    """Tell whether a live file begins like the history in an archive with this manifest."""
    for entry in listed.segments:
        if entry.segment.span.size:  # a session may begin with a compaction
            try:
                with opened(archive, listed.file_of(entry)) as stream, storage("read the archive"):
                    buffer, size = next(content(stream, entry.codec), (b"", 0))
            except DamagedError:
                return False
            begin = bytes(buffer[:size])
            if entry.segment.index:
                begin = begin[begin.find(b"\n") + 1 :]
            begin = begin[: min(HEAD, live.size())]
            return bool(begin) and begin == live.read_at(0, len(begin))
    return False


# ── its segments ──────────────────────────────────────────────────────────────────────────────────


def segments(
    source: Source,
    client: Client,
    scanned: Scan,
    prefix: int = 0,
    *,
    number: int = 0,
    start: int = 0,
    is_cut: bool = False,
) -> tuple[Segment, ...]:
    """Return the segments of a file's body, which begins at offset `prefix`.

    In the history it begins at `start`, in bytes, and the first segment has this `number`. If the
    client cut the body (`is_cut`), that segment is what it kept, and opened by nothing but its
    first line's time.
    """
    parts = manifest.spans(scanned, prefix, is_cut=is_cut)
    if is_cut:
        kept, _ = parts[0]
        time = scan.time(client, partial(source.pieces, kept))
        parts[0] = (kept, Boundary(kept.start, timestamp=time))
    times = scan.times(source, client, parts)
    return manifest.planned(parts, times, number=number, shift=start - prefix, is_cut=is_cut)


def check_unshifted(source: Source, client: Client, boundary: Boundary | None, end: int) -> None:
    """Raise InUseError if what was read before a compaction is not where it was.

    A client that takes a message back from before it (2.0.76 and later) moves all that follows.
    """
    if boundary is None:
        return
    start = boundary.offset
    line = Span(start, source.line_end(start, end))
    is_begun = not start or source.read_at(start - 1, 1) == b"\n"
    if not is_begun or client.boundary(source.pieces(line), line) != boundary:
        raise InUseError("The session was changed while it was read; try again.")
