"""Whether a file goes on from another: a live tail from its archive, a trimmed one from the old.

Rule: by content alone, never by a name. A header counts only with the lines that it was written
for: a client copies it into a fork, and changes those. An archive fits if it ends where the header
says that the file begins, with the same body before.

A file that its client trimmed goes on from the older one behind the last line that it copied from
it: every line before that stands in the older file, so it is whole without the copies. Which lines
the client drops is its own business. Only reads; memory is bounded by the number of lines.

Whoever rotates a live file and whoever reads it ask here for its segments, so that one has the same
number, place and times before it is archived and after it.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients, names, parsing
from sessrotate.archive.late_lines import common_lines, is_at
from sessrotate.archive.place import Place
from sessrotate.archive.record import Mark
from sessrotate.errors import DamagedError, InUseError, SessrotateError, printable
from sessrotate.model import Boundary, Scan, SealedSegment, Segment, Span
from sessrotate.parsing import LONG, WINDOW, Window
from sessrotate.segments import (
    Problem,
    SegmentFile,
    SegmentSet,
    body_pieces,
    compressed,
    content,
    headers,
    manifest,
    opened,
    scan,
)
from sessrotate.segments.headers import MAX_LINE, LiveHeader
from sessrotate.segments.manifest import Manifest
from sessrotate.system import inside
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from sessrotate.clients.protocol import Client

    Line = tuple[Span, bytes]
    """Where a line stands, with its newline, and its digest."""


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
    """Tell whether all of a replaced file is in these archived segments and the live file."""
    return held(live, header, segments, old, session) == old.size()


def held(
    live: Source | None,
    header: LiveHeader | None,
    segments: SegmentSet | None,
    old: Source,
    session: str,
) -> int:
    """Return up to where, in bytes, these archived segments and the live file have a replaced file.

    Each byte at its place in the history: where in it a file begins, its header says. `header` is
    the live file's. A segment that somebody pruned counts as there, a part of one while it is in
    the trash. Of other segments, the digest is asked and not the file.
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
            trashed = f"{names.TRASH}/{part.name}"
            there = part if part.pruned is None else replace(part, file=trashed)
            try:
                mark = Mark.of_pieces(_first(segments, there, most))
            except DamagedError:
                return position
        if not is_at(old, position, mark):
            return position
        position += mark.size
    if position != end or live is None:
        return position
    return position + common_lines(old, position, live, at + max(0, old_start - start))


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
        return "the carried lines were changed"
    start = begin + header.carried_bytes
    line = Span(start, min(live.line_end(start, live.size()) + 1, live.size()))
    if not is_at(live, start, Mark(line.size, header.boundary_digest)):
        return "it no longer continues with the compaction at which it was cut"
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


# ── a session that its client trimmed ─────────────────────────────────────────────────────────────

KEEPS_TRIMMED: Final = (
    "The cause is CLAUDE_CODE_TRANSCRIPT_LOCAL_GC=1 in the environment of Claude Code (2.1.287 and "
    "later). To prevent this, unset the variable. To keep the old file instead, run `sessrotate "
    "setup`, which installs the hook, or set the variable to `keep` (2.1.332 and later)."
)
"""What cuts a session, and what keeps it from going on."""

_MOST: Final = 10_000
"""Settings from before a compaction, or lines that came to the older file late, at most."""

_CR: Final = 0x0D

_LONGEST: Final = 1 << 20


def goes_on_at(old: Source, new: Source) -> int | None:
    """Return where in `new`, in bytes, what stands there begins that `old` does not have.

    `old` is all that its file has, and more lines may have come to it than the client saw. None if
    `new` was not made of it, or that cannot be told.
    """
    end = old.size()
    if not end or old.read_at(end - 1, 1) != b"\n":
        return None
    boundaries = scan.scan(old, clients.in_place().files, lambda _done: None).boundaries
    return _copied(old, new, boundaries[-1].offset) if boundaries else None


def are_in(
    source: Source,
    span: Span,
    place: Place,
    segments: Sequence[SealedSegment],
    live: Source | None = None,
) -> bool:
    """Tell whether each line of a span of a file stands in these segments, or the live file, too.

    Nobody can tell of one that stood in a segment that is freed, or cannot be read.
    """
    missing: set[bytes] = set()
    for line, _, size, _ in parsing.split(source.pieces(span)):
        missing.add(_digest(line))
        if size > parsing.LONGEST or len(missing) > _MOST:
            return False
    if live is not None:
        whole = live.pieces(Span(0, live.size()))
        missing.difference_update(_digest(line) for line, *_ in parsing.split(whole))
    for entry in reversed(segments):
        file = compressed.file_of(place.session, entry)
        if not missing:
            break
        with suppress(SessrotateError, OSError), opened(place.archive, file) as stream:
            pieces = (memoryview(data)[:size] for data, size in content(stream, entry.codec))
            missing.difference_update(_digest(line) for line, *_ in parsing.split(pieces))
    return not missing


def _digest(line: bytes | memoryview) -> bytes:
    """Return the digest of a line as the client copies it: without NULs before and a CR behind."""
    if line[:1] == b"\0" or line[-1:] == b"\r":
        line = bytes(line).removesuffix(b"\r").lstrip(b"\0")
    return blake2b(line, digest_size=16).digest()


def trimmed(kept: Sequence[Path], session: str) -> Problem:
    """Return what to say of a session of which its client kept what it trimmed."""
    files = f"{len(kept):,} file{'' if len(kept) == 1 else 's'}"
    return Problem(
        "cut",
        f"Claude Code trimmed this session, and the old content is kept in {files} in "
        f"{printable(str(kept[0].parent))}: `sessrotate rotate {printable(session)}` puts it back "
        "together, or says why it cannot.",
    )


def _copied(old: Source, new: Source, cut: int) -> int | None:
    """Return up to where, in bytes, `new` was copied from `old`; None if it was not made of it.

    `cut` is where the last compaction of `old` begins.
    """
    before, behind = _lines(old, Span(0, cut)), _lines(old, Span(cut, old.size()))
    _, compaction = next(behind)
    copies = _lines(new, Span(0, new.size()))
    for _, line in copies:
        if line == compaction:
            break
        if not any(line == each for _, each in before):  # in their order
            return None
    else:
        return None
    skipped: set[bytes] = set()
    at = 0
    copy = next(copies, None)
    for span, line in behind:
        is_dropped = copy is not None and copy[1] != line and _is_superseded(old, span)
        if is_dropped:
            continue
        while copy is not None and copy[1] != line and not at and len(skipped) < _MOST:
            skipped.add(copy[1])  # settings from before it
            copy = next(copies, None)
        if copy is None or copy[1] != line:
            is_late = at and _are_late(old, span.start, new, at)
            return at if is_late and _are_in(old, cut, skipped) else None
        at = copy[0].end
        copy = next(copies, None)
    return at if at and _are_in(old, cut, skipped) else None


def _are_in(old: Source, cut: int, lines: set[bytes]) -> bool:
    """Tell whether all these lines stand before the last compaction."""
    missing = set(lines)
    for _, line in _lines(old, Span(0, cut)) if missing else ():
        missing.discard(line)
    return not missing


def _are_late(old: Source, start: int, new: Source, at: int) -> bool:
    """Tell whether none of the rows of `old` from `start` on stands in `new` behind `at`.

    Those of settings do not tell: clients write equal ones again and again.
    """
    late = [*islice(_lines(old, Span(start, old.size())), _MOST + 1)]
    told = {line for span, line in late if not _is_of_settings(old, span)}
    rest = _lines(new, Span(at, new.size()))
    return len(late) <= _MOST and not any(line in told for _, line in rest)


def _is_of_settings(source: Source, span: Span) -> bool:
    trims = clients.in_place().trims
    return span.size <= _LONGEST and trims.is_of_settings(source.read_at(span.start, span.size))


def _is_superseded(source: Source, span: Span) -> bool:
    trims = clients.in_place().trims
    return span.size <= _LONGEST and trims.is_superseded(source.read_at(span.start, span.size))


def _lines(source: Source, span: Span) -> Iterator[Line]:
    """Yield the lines of a span that are not empty; NULs before and a CR behind do not count.

    The client leaves those out.
    """
    window = Window(source, WINDOW)
    for start, end, at in window.forward(span):
        found = blake2b(digest_size=16)
        if at == LONG:
            last = end - (source.read_at(end - 1, 1) == b"\r")
            is_text = False
            for piece in source.pieces(Span(start, last)):
                data = piece if is_text else piece.lstrip(b"\0")
                is_text = bool(data)
                found.update(data)
        else:
            line = window.view[at : at + end - start]
            if not line[0] or line[-1] == _CR:
                text = bytes(line).removesuffix(b"\r").lstrip(b"\0")
                if not text:
                    continue
                found.update(text)
            else:
                found.update(line)
        yield Span(start, min(end + 1, span.end)), found.digest()
