"""Bytes in pieces → the lines of a session, each with where it stands. Pure.

Rule: a line is opaque bytes and none is lost: torn, empty or not JSON, it comes out as it went
in. Memory is bounded: of a line over `LONGEST` only the beginning is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST: Final = 8 * 1024 * 1024
"""Bytes of a line that are held: room for the largest image that clients send, twice."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a session.

    `segment` is the segment's number and `offset` where in its body the line begins, in bytes;
    `line` is the line without its newline, `size` how many bytes that are. Of a line that is
    longer than `LONGEST`, `line` is the beginning only. `is_ended` is False for a last line
    without a newline. `is_carried` marks the copy, in a live file, of a line that is archived:
    it is no part of the history, and `offset` is in the live file then. `is_part` marks what stands
    inside of a line that is a record too, as the messages do that a compaction kept.
    """

    segment: int
    offset: int
    line: bytes
    size: int
    is_ended: bool = True
    is_carried: bool = False
    is_part: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether `line` is all of the line."""
        return len(self.line) == self.size


def records(
    pieces: Iterable[bytes | memoryview],
    segment: int,
    *,
    start: int = 0,
    is_carried: bool = False,
) -> Iterator[Record]:
    """Yield the lines of a segment's body, the first of which begins at offset `start`."""
    for line, size, is_ended in split(pieces):
        yield Record(segment, start, line, size, is_ended, is_carried=is_carried)
        start += size + 1


def split(pieces: Iterable[bytes | memoryview]) -> Iterator[tuple[bytes, int, bool]]:
    """Yield the lines alone: `line`, `size` and `is_ended` as in a `Record`.

    For those who ask little of millions: making a record takes as long as finding the line.
    """
    held, size = BytesIO(), 0  # hands out what was written to it without a second copy
    for piece in pieces:
        lines = bytes(piece).split(b"\n")
        last = lines.pop()
        if lines:
            size += len(lines[0])
            held.write(lines[0][: LONGEST - held.tell()])
            line, held = held.getvalue(), BytesIO()
            yield line, size, True
            for line in lines[1:]:
                yield line, len(line), True
            size = 0
        size += len(last)
        held.write(last[: LONGEST - held.tell()])
    if size:
        yield held.getvalue(), size, False
