"""What a session's first and last bytes say, in the same form for all clients. Pure.

Rule: values are as the client wrote them; a title is on one line. None means that these bytes do
not say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from msgspec import Struct

from sessrotate import units
from sessrotate.clients.common import BOM
from sessrotate.parsing import json_line
from sessrotate.parsing.json_typed import DECLINED, Decoder

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.system.source import Source

EDGE: Final = 64 * 1024
"""Bytes that are read of a file's beginning, and of its end."""

TITLE_LENGTH: Final = 200
"""Characters of a title that are kept."""

TitleSource = Literal["custom", "ai", "last prompt", "summary", "first prompt", "command", "none"]

Standing = Literal["session", "empty", "warm-up", "agent", "copy"]


class Title(Struct, frozen=True):
    """What a client calls a session: `text` on one line, empty if nothing was said in it.

    `source` says where it comes from: `custom` if the user chose it, `none` if there is none.
    """

    text: str = ""
    source: TitleSource = "none"

    def __str__(self) -> str:
        return self.text


class Continues(Struct, frozen=True):
    """The session that another one continues, and how that is known.

    `session` is its id. `reason` is "says so" (the client recorded it) or "same rows" (both files
    hold records with the same uuids, which is proof). `at` is the number of the record in the
    earlier session where the later one branched off, None where the client does not record it.
    """

    session: str
    reason: str
    at: int | None = None


class Sight(Struct, frozen=True):
    """What a session's first and last bytes say.

    `folder` is where the client ran, `branch` the git branch at the end (empty outside of git),
    times are ISO 8601, `first` is the uuid of the first row, `id` the session's full id where the
    file's name has only a part of it, `origin` the session that it was forked from. None where it
    is not in sight.
    """

    title: Title
    standing: Standing
    folder: str | None
    branch: str | None
    started: str | None
    ended: str | None
    first: str | None
    id: str | None = None
    origin: Continues | None = None

    def last_used(self, modified: float) -> float:
        """Return when the session was last used: its last record's time, in seconds since 1970.

        Where that is not in sight, it is when the file was `modified`.
        """
        ended = units.seconds(self.ended)
        return modified if ended is None else ended


class Agent(Struct, frozen=True):
    """The transcript of an agent: its `id`, its file's `path`, and the file's size in `bytes`.

    `call` is the id of the tool call that started it, None if that is unknown. `asked` is the
    beginning of its task, None if the first 64 KiB do not show it. `is_warm_up` is True
    if the client started it only to warm its cache (Claude Code 2.0.x).
    """

    id: str
    path: Path
    bytes: int
    call: str | None = None
    asked: str | None = None
    is_warm_up: bool = False


def edges_of(source: Source, size: int, *, with_tail: bool = True) -> tuple[bytes, bytes]:
    """Return the first and the last `EDGE` bytes of the first `size` bytes of an open file.

    Both are all of it where it is not longer. Without `with_tail`, the last bytes are not read,
    unless they are the first ones too. Raises InUseError if the file is shorter by now.
    """
    head = source.read_at(0, min(EDGE, size))
    if size <= EDGE:
        return head, head
    return head, source.read_at(size - EDGE, EDGE) if with_tail else b""


T = TypeVar("T")


def rows(decoder: Decoder[T], head: bytes, *, is_whole: bool) -> Iterator[T]:
    """Yield the rows that a file begins with; of one that is cut, the members that it begins with.

    `is_whole` says that `head` is all of the file. Lines that are no rows are left out.
    """
    begin = 0
    while (end := head.find(b"\n", begin)) >= 0:
        if (row := decoder(head[begin:end].removeprefix(BOM))) is not None:
            yield row
        begin = end + 1
    rest = head[begin:].removeprefix(BOM)
    row = decoder(rest) if is_whole else decoder.fitted(json_line.scalars_in_beginning(rest))
    if row is not None:
        yield row


def rows_from_the_end(decoder: Decoder[T], tail: bytes, *, is_whole: bool) -> Iterator[T]:
    """Yield the rows that a file ends with, the last first; of a cut one, the members at its end.

    `is_whole` says that `tail` is all of the file. Lines that are no rows are left out.
    """
    end = len(tail)
    while end > 0:
        begin = tail.rfind(b"\n", 0, end) + 1
        line = tail[begin:end].removeprefix(BOM)
        row = decoder(line) if begin or is_whole else _whole_or_cut(decoder, line)
        if row is not None:
            yield row
        end = begin - 1


def _whole_or_cut(decoder: Decoder[T], line: bytes) -> T:
    try:
        return decoder.fast(line)
    except DECLINED:
        return decoder.fitted(json_line.scalars_in_end(line, decoder.names))
