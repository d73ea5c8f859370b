"""Which lines of a Gemini CLI session replace all messages, and the messages in them.

Rule: one verdict, whoever asks and however long the line is. `boundary` looks at the two ends of a
line, which is what cutting needs of hundreds of megabytes; `replaces` reads all of it, which is
what a resume does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Reversible
from typing import TYPE_CHECKING, Final

from sessrotate.clients.common import iso_time
from sessrotate.model import Boundary, Span
from sessrotate.parsing import json_line
from sessrotate.parsing.json_stream import arrays_at
from sessrotate.parsing.records import Record

if TYPE_CHECKING:
    BytesOf = Callable[[Record], Iterable[bytes]]

MARKER: Final = b'"messages"'
"""Bytes that every boundary line has, however it is spaced.

No other line of a client has them: inside a string the quotes are escaped. (`"$set"` would be
found in every second line: one follows each message.)
"""

UPDATED: Final = ("$set", "messages")
NAMED: Final = ("messages",)
"""Where a line may have messages: in an update, and (0.61.0 reads it) in metadata."""

# As `JSON.stringify` writes an update of `messages` and `lastUpdated`, which is how 0.44.0 to
# 0.61.0 write every one.
_BEGIN: Final = re.compile(rb'\{"\$set":\{"messages":\[(?:\]|\{"id":")')
_END: Final = re.compile(rb'[\[}]\],"lastUpdated":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"\}\}\Z')
_EDGE: Final = 64

_BOUNDARY: Final[json_line.Shape] = {
    "$rewindTo": None,
    "id": None,
    "$set": {"messages": list, "lastUpdated": None},
}

_UPDATE: Final = re.compile(rb'\s*\{\s*"\$set"\s*:\s*\{\s*"messages"\s*:\s*\[')


def boundary(line: Reversible[bytes], span: Span) -> Boundary | bool:
    """Say whether a line that holds `MARKER` is an update that replaces all messages.

    Such a line has all that was said so far, often hundreds of megabytes of it, so one that begins
    and ends as all clients write it is taken at its two ends, and what is between them not read.
    A line that was torn has no such end, whatever the client put behind it next: `$set` of a
    session's id, a message, metadata. Only a torn one that another of its kind follows without a
    newline, which no client does, is taken for a boundary and is none: a cut there loses nothing,
    and who needs to know what a resume loads parses the line (`live`). Whatever begins or
    ends in another way is parsed here.
    """
    begin = next(iter(line), b"")
    if _BEGIN.match(begin):
        end = b""
        for piece in reversed(line):
            end = piece[-_EDGE:] + end
            if len(end) >= _EDGE:
                break
        if found := _END.search(end):
            return Boundary(offset=span.start, timestamp=found[1].decode())
    return _parsed(line, span)


def _parsed(line: Iterable[bytes], span: Span) -> Boundary | bool:
    """Return what `boundary` does by all of the line, however it begins and ends."""
    values = json_line.values(line, span.size, _BOUNDARY)
    if values is None:
        return True
    changed = values.get("$set")
    if (
        isinstance(values.get("$rewindTo", 0), str | None)
        or isinstance(values.get("id", 0), str | None)
        or not isinstance(changed, dict)
        or changed.get("messages") is not True
    ):
        return False
    return Boundary(offset=span.start, timestamp=iso_time(changed.get("lastUpdated")))


def is_update(line: bytes) -> bool:
    """Tell by its beginning whether a line is an update that replaces all messages."""
    return _UPDATE.match(line) is not None


def replaces(record: Record, bytes_of: BytesOf) -> bool:
    """Tell whether a line is an update that replaces all messages, by all of it."""
    if MARKER not in record.line and record.is_whole:
        return False
    found = _parsed(_pieces(record, bytes_of), Span(0, record.size))
    return isinstance(found, Boundary)


def messages_in(
    record: Record, bytes_of: BytesOf, path: tuple[str, ...]
) -> Iterator[Iterator[Record]]:
    """Yield the arrays that a line has at `path`, each as its messages; see `arrays_at`."""
    return arrays_at(path, record, _pieces(record, bytes_of))


def _pieces(record: Record, bytes_of: BytesOf) -> Iterable[bytes]:
    return (record.line,) if record.is_whole else bytes_of(record)
