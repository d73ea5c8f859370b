"""What a replaced live file has that the new one has yet to get, and where. Only reads.

Rule: decided by position, then by whole lines, never by "lines that are not there yet": clients
write identical lines. Whatever is not surely in the new file counts as residue, so that the worst
that can happen is a line twice.

What a client appends to the new file between a crash and the next run can be the very bytes that
came late to the old one; nothing tells those apart. Rows of the conversation have a uuid.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import names
from sessrotate.archive.record import HEAD, Intent, Mark, Swap
from sessrotate.clients.claude.survey import Survey
from sessrotate.errors import DamagedError, SessrotateError, printable
from sessrotate.model import Span
from sessrotate.parsing import lines
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from sessrotate.archive.place import Place
    from sessrotate.archive.state import State

_PIECE: Final = 256 * 1024

_MOST: Final = 64 * 1024 * 1024
"""Bytes that are compared at places that only begin like late lines: all of a file may do so."""

_ROWS: Final = 1000
"""Lines that are looked at for a row of the conversation, where they have its word."""


class Residue(Struct, frozen=True):
    """Bytes at the end of the pack, and the offset of the live file where they belong."""

    span: Span
    at: int


def residue(swap: Swap, pack: Source, live: Source) -> Residue:
    """Return which bytes of the pack the live file has yet to get.

    `live` is the new file of the swap. Up to the tail that it had when it took its place, both
    are known to agree; behind that, clients may have appended to either. A client that has found
    the new file never opens the old one again, so what is late comes before all that was only
    written to the new one.
    """
    size = pack.size()
    if size <= swap.cut:
        return Residue(Span(size, size), live.size())  # dropped, after all of it was copied
    start, other = _agreed(swap, pack, live)
    same = _common_lines(pack, start, live, other)
    span = Span(min(size, start + same), size)
    return Residue(span, _at(swap, pack, span.start, live, other + same))


def _at(swap: Swap, pack: Source, start: int, live: Source, at: int) -> int:
    """Return this offset of the live file; its end, if a client took back what led up to it."""
    size = max(0, min(HEAD, start - swap.cut, at - swap.prefix))
    if at <= live.size() and pack.read_at(start - size, size) == live.read_at(at - size, size):
        return at
    is_rest = start and pack.read_at(start - 1, 1) != b"\n"  # of a line that a crash tore
    return live.size() if is_rest else end_of_lines(live, swap.prefix)


def end_of_lines(live: Source, floor: int) -> int:
    """Return where whole lines can be put behind all others: a torn one must not begin theirs."""
    return live.line_start(live.size(), floor)


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
    same = _common_lines(pack, swap.cut, live, swap.prefix)
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


def are_there(source: Source, late: Source) -> bool:
    """Tell whether a file surely has late lines that nothing speaks of, one behind the other.

    Clients write equal lines of settings again and again, so that only a row of the conversation
    tells: no two have one uuid.
    """
    with suppress(OSError, SessrotateError):
        size, at = late.size(), -1
        head, budget = late.read_at(0, min(size, HEAD)), size + _MOST
        while budget > 0 and (found := find(source, at + 1, head)) is not None:
            at = found
            is_line = not at or source.read_at(at - 1, 1) == b"\n"
            same = _common_bytes(source, at, late) if is_line else 0
            if same == size:
                return _has_a_row(late)
            budget -= same + _PIECE
    return False


def _has_a_row(late: Source) -> bool:
    at, size, survey = 0, late.size(), Survey(late, lines.WINDOW)
    for _ in range(_ROWS):
        found = find(late, at, b'"uuid"')
        if found is None:
            return False
        line = Span(late.line_start(found), late.line_end(found, size))
        if any(row is not None and row.uuid for *_, row in survey.forward(line)):
            return True
        at = line.end
    return False


def ends_in_a_row(source: Source) -> bool:
    """Tell whether a file's last line is a row of the conversation, whole."""
    last = next(Survey(source, lines.WINDOW).backward(source.size()), None)
    return last is not None and last[2] is not None and bool(last[2].uuid)


def _common_bytes(source: Source, at: int, late: Source) -> int:
    """Return how many bytes of another a file has from an offset on, about so many if not all."""
    most, done = late.size(), 0
    for piece in late.pieces(Span(0, most)) if source.size() - at >= most else ():
        if source.read_at(at + done, len(piece)) != piece:
            break
        done += len(piece)
    return done


def unclaimed(place: Place, live: Source, trimmed: Iterable[Path]) -> str | None:
    """Say what to do about late lines that no intent names; None if they surely are in their place.

    That is the live file, or what its client trimmed.
    """
    kept, into = (printable(shlex.quote(str(path)), 4096) for path in (place.late, place.live))
    with suppress(OSError, SessrotateError), Source.inside(place.archive, names.LATE) as late:
        if are_there(live, late):
            return None
        for path in trimmed:
            with suppress(OSError, SessrotateError), Source.inside(path.parent, path.name) as each:
                if are_there(each, late):
                    return None
        if late.read_at(0, 2) == b'{"':
            return (
                f"{kept} has lines of the session, and nothing says where they belong. When no "
                f"client runs it, put them last: `cat {kept} >> {into} && rm {kept}`."
            )
    return left(place.late, place.live)


def left(path: Path, live: Path) -> str:
    """Say what to do about a file in an archive of which no record tells what came of it."""
    return (
        f"No record explains {printable(str(path))}; it may hold lines the session lacks. Close "
        f"the client, append to {printable(str(live))} what neither it nor the archive has, then "
        "move the file away."
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


def is_told_new(source: Source, begun: Intent) -> bool:
    """Tell whether a file has what tells the new one of a swap from the old one."""
    # Both files of an insertion begin alike: what was put in tells the new one.
    return is_at(source, begun.swap.cut if begun.operation == "insert" else 0, begun.swap.new)


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


def _common_lines(pack: Source, start: int, live: Source, other: int) -> int:
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


# ── those that have a file of their own, until they are put in their place ───────────────────


class Counted:
    """Pieces that are told by their mark once they have passed."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces, self._size, self._digest = pieces, 0, Fingerprint()

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._size += len(piece)
            self._digest.update(piece)
            yield piece

    @property
    def mark(self) -> Mark:
        """Size and digest of what has passed."""
        return Mark(self._size, self._digest.digest)


def kept(found: State) -> Iterator[memoryview]:
    """Yield the late lines that have a file of their own; raise DamagedError if they changed."""
    pending = found.pending
    if pending is None:
        return
    name = printable(str(found.place.late))
    if found.late is None or found.late.size() != pending.mark.size:
        raise DamagedError(f"{name} has changed since it was written.")
    copied = Counted(found.late.pieces(Span(0, pending.mark.size)))
    for piece in copied:
        yield memoryview(piece)
    if copied.mark != pending.mark:
        raise DamagedError(f"{name} has changed since it was written.")
