"""What a replaced live file has that the new one has yet to get. Only reads.

Rule: decided by position, then by whole lines, never by "lines that are not there yet": clients
write identical lines. Whatever is not surely in the new file counts as residue, so that the worst
that can happen is a line twice.

What a client appends to the new file between a crash and the next run can be the very bytes that
came late to the old one; nothing tells those apart. Rows of the conversation have a uuid.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from sessrotate import clients
from sessrotate.archive.record import NO_SWAP, Batch, Mark, Swap, Waiting
from sessrotate.errors import printable
from sessrotate.model import Span
from sessrotate.system.source import Source

_PIECE: Final = 256 * 1024

_AT_ONCE: Final = 1024 * 1024
"""Most late bytes that are appended in one batch, unless a single line is longer."""


def residue(swap: Swap, pack: Source, live: Source) -> Span:
    """Return which bytes at the end of the pack the live file has yet to get.

    `live` is the new file of the swap. Up to the tail that it had when it took its place, both
    are known to agree; behind that, clients may have appended to either.
    """
    size = pack.size()
    if size <= swap.cut:
        return Span(size, size)
    start, other = _agreed(swap, pack, live)
    return Span(min(size, start + common_lines(pack, start, live, other)), size)


def of_waiting(told: Waiting, pack: Source, live: Source) -> tuple[Span, bool]:
    """Return the same of a file that waits, and whether it is inside the live file's last line."""
    known = told.mark.size
    if told.batch is not None:  # never before what is known, whatever a record says
        known = max(known, residue(replace(NO_SWAP, batch=told.batch), pack, live).start)
    # Half a line before that is the client's: the record calls no half of ours known.
    start, is_rest = whole(pack, known, live, is_ours=known > told.mark.size)
    return Span(start, max(start, pack.size())), is_rest


def whole(pack: Source, start: int, live: Source, *, is_ours: bool) -> tuple[int, bool]:
    """Return where in the pack to go on from, and whether that is inside the live file's last line.

    Half a line that was brought over (`is_ours`), and is not the live file's end any more, is said
    whole. What a client tore stands in the live file, and whoever wrote behind it began a line.
    """
    line, size = pack.line_start(start), live.size()
    half = pack.read_at(line, start - line)
    if not half:
        return start, False
    if size >= len(half) and live.read_at(size - len(half), len(half)) == half:
        return start, True
    return line if is_ours else start, False


def batch_end(pack: Source, start: int, most: int) -> int:
    """Return where a batch of late lines from `start` on ends: with a line, or at `most`."""
    end = min(most, start + _AT_ONCE)
    lines_end = pack.line_start(end, start) if end < most else most
    return lines_end if lines_end > start else most


def said_again(batch: Batch, pack: Source, since: int, live: Source) -> bytes:
    """Return what is to be appended behind a batch that was brought over: a row that stood last.

    Clients go on from the row of the conversation that stands last, whatever follows it (2.1.112
    and later; 2.0.28 goes by times): a late one would end the conversation there. So the last one
    before the batch is said again, or the rest of it if a crash tore that. Nothing where a client
    has written behind the batch, nor where the pack has that row, from `since` on: then nothing
    came meanwhile. Where two crashes tore one batch, behind a row of it, it is not said.
    """
    size = live.size()
    end = live.line_start(size)
    start = pack.line_start(batch.span.start)
    lines, last = pack.read_at(start, batch.span.end - start), _last_row(live, end)
    if not last or last not in lines:
        return b""
    # A client may have written a row between the note of the batch and the batch.
    at = find(live, batch.floor, lines[batch.span.start - start :])
    before = _last_row(live, min(size, batch.floor if at is None else at))
    if not before:
        return b""
    half = live.read_at(end, size - end)
    if not before.startswith(half) or find(pack, since, before) is not None:
        return b""
    return before[len(half) :]


def _last_row(source: Source, end: int) -> bytes:
    """Return the last row of the conversation before an offset, no agent's; empty if none is."""
    row = clients.in_place().resume.last_row(source, end)
    return b"" if row is None else source.read_at(row.start, row.size) + b"\n"


def _agreed(swap: Swap, pack: Source, live: Source) -> tuple[int, int]:
    """Return up to where either file is known to hold the same."""
    if swap.batch is not None:
        span, floor = swap.batch.span, swap.batch.floor
        at = find(live, floor, pack.read_at(span.start, span.size))
        return (span.start, floor) if at is None else (span.end, at + span.size)
    if is_at(pack, swap.cut, swap.tail):
        return swap.cut + swap.tail.size, swap.prefix + swap.tail.size
    return _behind_an_edit(swap, pack, live)


def _behind_an_edit(swap: Swap, pack: Source, live: Source) -> tuple[int, int]:
    """Return the same where a client that still had the old file took a row of its tail back.

    It writes again what followed the row (`removeMessageByUuid`, 2.0.76 and later). If the new
    file has the tail as it was, that is not late: all of it is there.
    """
    if not is_at(live, swap.prefix, swap.tail):
        return swap.cut, swap.prefix
    same = common_lines(pack, swap.cut, live, swap.prefix)
    size = swap.tail.size - same
    if not 0 < size <= _PIECE:
        return swap.cut, swap.prefix
    start = swap.cut + same
    theirs = live.read_at(swap.prefix + same, size)
    ours = pack.read_at(start, min(size, pack.size() - start))
    at = 0
    while not ours.startswith(theirs[at:]):
        at = theirs.find(b"\n", at) + 1 or size
    return start + size - at, swap.prefix + swap.tail.size


def find(source: Source, start: int, data: bytes) -> int | None:
    """Return where these bytes first begin, from an offset on; None if nowhere."""
    window, position = b"", start
    for piece in source.pieces(Span(start, source.size())):
        window += piece
        at = window.find(data)
        if at >= 0:
            return position + at
        drop = max(0, len(window) - len(data) + 1)
        window, position = window[drop:], position + drop
    return None


def left(path: Path, live: Path) -> str:
    """Say what to do about a file in an archive of which no record tells what came of it."""
    return (
        f"No record explains {printable(str(path))}; it may hold lines the session lacks. Close "
        f"the client, append to {printable(str(live))} the lines that neither it nor the archive "
        "has, then move the file away."
    )


def held(path: Path) -> str:
    """Say what to do about one of which the session has all."""
    return (
        f"No record explains {printable(str(path))}, and the session has all that is in it. Close "
        "the client, then move the file away."
    )


def is_at(source: Source, offset: int, mark: Mark) -> bool:
    """Tell whether the bytes of a mark stand at this offset."""
    if source.size() < offset + mark.size:
        return False
    return Mark.of_pieces(source.pieces(Span(offset, offset + mark.size))) == mark


def begins_with(source: Source, parts: Iterable[tuple[Source, Span]]) -> bool:
    """Tell whether a file begins with these parts of others, one behind the other."""
    at, size = 0, source.size()
    for other, span in parts:
        if size - at < span.size or other.size() < span.end:
            return False
        for piece in other.pieces(span):
            if source.read_at(at, len(piece)) != piece:
                return False
            at += len(piece)
    return True


def common_lines(pack: Source, start: int, live: Source, other: int) -> int:
    """Return how many bytes both have in common from these offsets on, in whole lines.

    Two different lines of a client begin alike, so half a line in common means nothing, unless
    a file ends there: then it is what a crash left of our own copying.
    """
    most = max(0, min(pack.size() - start, live.size() - other))
    lines = done = 0
    while done < most:
        size = min(_PIECE, most - done)
        ours, theirs = pack.read_at(start + done, size), live.read_at(other + done, size)
        same = size if ours == theirs else common(ours, theirs)
        newline = ours.rfind(b"\n", 0, same)
        if newline >= 0:
            lines = done + newline + 1
        if same < size:
            return lines
        done += size
    return most


def common(one: bytes, other: bytes) -> int:
    """Return how many bytes two runs of the same length begin with in common."""
    low, high = 0, len(one)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
