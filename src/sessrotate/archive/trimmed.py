"""Where a session file that its client trimmed goes on from the file that was there before.

Promise: two files, of one session → where in the newer one the bytes begin that the older one does
not have; or nothing, if that cannot be told for certain. And whether lines are all archived.

Rule: two answers that know nothing of each other have to be the same. The client's own rule says
what it leaves of the older file (`in_place.Trims`). And the lines of both files are compared,
whatever they are. Only reads; memory is bounded by the number of lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate import clients, parsing
from sessrotate.archive import late_lines
from sessrotate.archive.place import Place
from sessrotate.errors import SessrotateError, printable
from sessrotate.model import Span
from sessrotate.parsing import LONG, WINDOW, Window
from sessrotate.segments import compressed, scan, segment_set
from sessrotate.segments.manifest import Manifest
from sessrotate.segments.segment_set import Problem
from sessrotate.system.source import Source

if TYPE_CHECKING:
    Line = tuple[Span, bytes]
    """Where a line stands, with its newline, and its digest."""


PREVENTION: Final = (
    "The cause is CLAUDE_CODE_TRANSCRIPT_LOCAL_GC=1 in the environment of Claude Code (2.1.287 and "
    "later): install the hook with `sessrotate setup`, which keeps the old file, or unset this "
    "variable, or set it to `keep` (2.1.332 and later): then the client keeps the old file."
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
    client = clients.in_place()
    scanned = scan.scan(old, client.files, lambda _done: None)
    boundaries = [found.offset for found in scanned.boundaries]
    compared = _compared(old, new, boundaries[-1]) if boundaries else None
    if compared is None:
        return None
    at, seen = compared
    left = client.trims.left(old, boundaries, seen)
    if left is None or sum(span.size for span in left) != at:
        return None
    return at if late_lines.begins_with(new, [(old, span) for span in left]) else None


def are_archived(live: Source, span: Span, place: Place, listed: Manifest) -> bool:
    """Tell whether each line of a span of the live file stands in the archive, too.

    Nobody can tell of one that stood in a segment that is freed, or cannot be read.
    """
    missing: set[bytes] = set()
    for line, _, size, _ in parsing.split(live.pieces(span)):
        missing.add(_digest(line))
        if size > parsing.LONGEST or len(missing) > _MOST:
            return False
    for entry in reversed(listed.segments):
        file = compressed.file_of(place.session, entry)
        if not missing:
            break
        with suppress(SessrotateError, OSError), segment_set.opened(place.archive, file) as stream:
            content = segment_set.content(stream, entry.codec)
            pieces = (memoryview(data)[:size] for data, size in content)
            missing.difference_update(_digest(line) for line, *_ in parsing.split(pieces))
    return not missing


def _digest(line: bytes | memoryview) -> bytes:
    """Return the digest of a line as the client copies it: without NULs before and a CR behind."""
    if line[:1] == b"\0" or line[-1:] == b"\r":
        line = bytes(line).removesuffix(b"\r").lstrip(b"\0")
    return blake2b(line, digest_size=16).digest()


def told(kept: Sequence[Path], session: str) -> Problem:
    """Return what to say of a session of which its client kept what it trimmed."""
    files = f"{len(kept):,} file{'' if len(kept) == 1 else 's'}"
    return Problem(
        "cut",
        f"Claude Code trimmed this session, and the old content is kept in {files} in "
        f"{printable(str(kept[0].parent))}: `sessrotate rotate {printable(session)}` puts it back "
        "together, or says why it cannot.",
    )


def _compared(old: Source, new: Source, cut: int) -> tuple[int, int] | None:
    """Return how many bytes of `new` are copies of `old`, and how many of that the client had seen.

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
    at = seen = 0
    copy = next(copies, None)
    for span, line in behind:
        is_dropped = copy is not None and copy[1] != line and _is_superseded(old, span)
        if is_dropped:
            continue
        while copy is not None and copy[1] != line and not seen and len(skipped) < _MOST:
            skipped.add(copy[1])  # settings from before it
            copy = next(copies, None)
        if copy is None or copy[1] != line:
            is_late = seen and _are_late(old, span.start, new, at)
            return (at, span.start) if is_late and _are_in(old, cut, skipped) else None
        at, seen = copy[0].end, span.end
        copy = next(copies, None)
    if not seen or not _are_in(old, cut, skipped):
        return None
    return at, seen if _is_empty(old, Span(seen, old.size())) else old.size()


def _is_empty(source: Source, span: Span) -> bool:
    """Tell whether a span is a few empty lines, which nobody can tell from ones that came late."""
    return span.size <= _MOST and not source.read_at(span.start, span.size).strip(b"\n")


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
