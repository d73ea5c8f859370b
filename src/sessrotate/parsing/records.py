"""Bytes in pieces → the lines of a session, each with its offset. Pure.

Rule: a line is opaque bytes, and none is lost: a torn or empty line, or one that is not JSON, comes
out as it went in. Memory is bounded: only the beginning of a line over `LONGEST` is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    Line = tuple[bytes | memoryview, int, int, bool]
    """A line, its offset and size, and whether a newline ended it, as in a `Record`."""

LONGEST: Final = 8 * 1024 * 1024
"""Bytes of a line that are kept: room for the largest image that clients send, twice."""


_BREAK: Final = re.compile(rb"[ \t\r]*\n[ \t\r\n]*")


class Record(Struct, frozen=True):
    """One line of a session, or what its client's format has in the place of lines.

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


def on_one_line(data: bytes) -> bytes:
    """Return a record's bytes, or a piece of them, without line breaks: JSON has none in strings.

    Only of formats that are not made of lines there are any.
    """
    return _BREAK.sub(b"", data) if b"\n" in data else data


def records(
    pieces: Iterable[bytes | memoryview],
    segment: int,
    *,
    is_carried: bool = False,
) -> Iterator[Record]:
    """Yield the lines of a segment's body."""
    for line, at, size, is_ended in split(pieces):
        yield Record(segment, at, bytes(line), size, is_ended, is_carried=is_carried)


def split(pieces: Iterable[bytes | memoryview], start: int = 0) -> Iterator[Line]:
    """Yield the lines where they stand, for callers that need no records.

    Copying a line and making a record of it take longer than finding it.
    """
    held, size = BytesIO(), 0  # hands out what was written to it without a second copy
    for piece in pieces:
        data = bytes(piece)
        view, find = memoryview(data), data.find
        at, to = 0, find(b"\n")
        if size and to >= 0:
            held.write(view[: min(to, LONGEST - held.tell())])
            line, held = held.getvalue(), BytesIO()
            yield line, start - size, size + to, True
            size, at = 0, to + 1
            to = find(b"\n", at)
        while to >= 0:
            yield view[at:to], start + at, to - at, True
            at = to + 1
            to = find(b"\n", at)
        size += len(data) - at
        held.write(view[at : at + LONGEST - held.tell()])
        start += len(data)
    if size:
        yield held.getvalue(), start - size, size, False
