"""A JSON text in pieces → its values one after the other, at the speed of a regular expression.

Rule: it finds where values end and checks nothing else; to know what a value says, hand it to a
parser. Memory is bounded: only the beginning of a value over `LONGEST` is kept. A value that is in
the buffer and not too deep is found at once; any other step by step, with no limit on size or
depth. Both ways give the same result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Final

from msgspec import Struct

from sessrotate.parsing import LONGEST, Record

BUFFER: Final = 512 * 1024
"""Bytes that are read before a value is looked for in them."""

_LONGEST_NAME: Final = 256

_DEEPEST: Final = 12
"""Levels of nesting that are matched at once; a message of a client has eight."""

# Of a text whose escapes are blanked. Possessive throughout: they never go back, so that each byte
# is looked at once. A class of one character is searched ten times as fast as one of two.
# What is repeated is an atomic group: before 3.11.5, Python goes on from a wrong place behind a
# possessive repetition whose last turn failed half-way (CPython issue 106052).
_STRING: Final = rb'"[^"]*+"'
_PLAIN: Final = rb'[^"{}\[\]]*+'


def _inside(levels: int) -> bytes:
    """Return what matches whatever stands between brackets, so many levels of it included."""
    inside = rb"%b(?:(?>%b%b))*+" % (_PLAIN, _STRING, _PLAIN)
    for _ in range(levels - 1):
        inside = rb"%b(?:(?>(?:%b|[{\[]%b[}\]])%b))*+" % (_PLAIN, _STRING, inside, _PLAIN)
    return inside


_AT_ONCE: Final = re.compile(rb"[{\[]%b[}\]]|%b" % (_inside(_DEEPEST), _STRING))
_ELEMENT: Final = re.compile(rb"[ \t\r\n]*+,?+[ \t\r\n]*+(%b)" % _AT_ONCE.pattern)
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_SCALAR: Final = re.compile(rb'[^ \t\r\n,:"{}\[\]]*+')
_OPENING: Final = re.compile(rb"[{\[]++")
_CLOSING: Final = re.compile(rb"[}\]]++")
_MISPLACED: Final = re.compile(rb"[:}]++")
_TO_STRUCTURE: Final = re.compile(_inside(_DEEPEST))
"""All strings and brackets that close in the buffer are passed at once."""


class Value(Struct, frozen=True):
    """A value: where in the text it begins, its bytes up to `LONGEST`, and how many it has.

    `is_ended` is False where the text ended in the middle of it.
    """

    offset: int
    text: bytes
    size: int
    is_ended: bool = True


class Cursor:
    """A place in a JSON text, which only goes on."""

    def __init__(self, pieces: Iterable[bytes | memoryview]) -> None:
        self._pieces = iter(pieces)
        self._buffer = b""
        self._blank = b""  # the same without escapes, which is what values are looked for in
        self._base = 0  # offset of the buffer in the text
        self._at = 0
        self._is_over = False
        self.is_closed = False
        """Whether the object that was passed last was one, and its brace closed it."""

    @property
    def offset(self) -> int:
        """How many bytes of the text are passed."""
        return self._base + self._at

    def next(self) -> bytes:
        """Pass white space; return the byte that follows, none at the end of the text."""
        while True:
            found = _SPACE.match(self._buffer, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            if not self._more():
                return b""

    def skip(self) -> None:
        """Pass the byte that `next` returned, if there was one."""
        self._at = min(self._at + 1, len(self._buffer))

    def value(self, keep: int | None = None) -> Value:
        """Pass the value, or whatever it is, that begins here, and return it.

        At most `keep` bytes (default: `LONGEST`) of one that is not in the buffer as a whole are in
        `text`.
        """
        if self._blank[self._at : self._at + 1] in b'{["':
            found = _AT_ONCE.match(self._blank, self._at)
            if found is None and len(self._buffer) - self._at < BUFFER and self._more():
                found = _AT_ONCE.match(self._blank, self._at)
            if found is not None and found.end() - self._at <= LONGEST:
                value = Value(
                    self.offset, self._buffer[self._at : found.end()], found.end() - self._at
                )
                self._at = found.end()
                return value
        return self._step_by_step(keep)

    def elements(self) -> Iterator[Value]:
        """Pass the elements of an array and its end; yield them. Its bracket is passed already."""
        while True:
            # Those that are in the buffer, with as little as possible done for each.
            while (found := _ELEMENT.match(self._blank, self._at)) is not None:
                start, end = found.span(1)
                if end - start > LONGEST:
                    break
                self._at = end
                yield Value(self._base + start, self._buffer[start:end], end - start)
            match self.next():
                case b",":
                    self.skip()
                case b"]":
                    self.skip()
                    return
                case b"":
                    return
                case _:
                    yield self.value()

    def members(self) -> Iterator[str | None]:
        """Pass an object; yield the name of each member, whose value is to be passed by then.

        None is a name that is none: too long, or no string. Ends where the text is no object.
        """
        self.is_closed = False
        if self.next() != b"{":
            return
        self.skip()
        while (byte := self.next()) not in {b"}", b""}:
            if byte == b",":
                self.skip()
                continue
            name = self.value()
            if self.next() != b":":
                return
            self.skip()
            yield _name(name)
            self.is_closed = False
        self.skip()
        self.is_closed = byte == b"}"

    def rest(self) -> Value:
        """Pass all that is left, and return it as if it were one value."""
        taken = _Taken(self.offset)
        while True:
            self._take(taken, len(self._buffer))
            if not self._more():
                return taken.value(is_ended=False)

    def _step_by_step(self, keep: int | None) -> Value:
        taken, depth, in_string = _Taken(self.offset, keep), 0, False
        if self._blank[self._at : self._at + 1] not in b'{["':
            return self._scalar(taken)
        while True:
            at, blank = self._at, self._blank
            while at < len(blank):
                if in_string:
                    quote = blank.find(b'"', at)
                    at = len(blank) if quote < 0 else quote + 1
                    in_string = quote < 0
                else:
                    at, depth, in_string = _structure(blank, at, depth)
                if not depth and not in_string:
                    self._take(taken, at)
                    return taken.value(is_ended=True)
            self._take(taken, self._end())
            if not self._more():
                self._take(taken, len(self._buffer))
                return taken.value(is_ended=False)

    def _scalar(self, taken: _Taken) -> Value:
        """Take a number or a word; what cannot be a value comes out as one too."""
        for pattern in (_SCALAR, _MISPLACED):
            self._run(taken, pattern)
            if taken.size:
                return taken.value(is_ended=True)
        self._take(taken, self._at + 1)  # a bracket that closes nothing
        return taken.value(is_ended=True)

    def _run(self, taken: _Taken, pattern: re.Pattern[bytes]) -> None:
        while True:
            found = pattern.match(self._blank, self._at)
            end = found.end() if found else self._at
            if end < len(self._blank):
                self._take(taken, end)
                return
            self._take(taken, self._end())
            if not self._more():
                self._take(taken, len(self._buffer))
                return

    def _end(self) -> int:
        """Return up to where the buffer can be passed: a backslash escapes what comes next."""
        return len(self._blank) - self._blank.endswith(b"\\")

    def _take(self, taken: _Taken, end: int) -> None:
        taken.add(self._buffer, self._at, end)
        self._at = end

    def _more(self) -> bool:
        """Read on; return False at the end of the text. What is passed is forgotten."""
        if self._is_over:  # or hostile text would have the buffer copied for each value
            return False
        parts, size = [self._buffer[self._at :]], 0
        for piece in self._pieces:
            parts.append(bytes(piece))
            size += len(piece)
            if size >= BUFFER:
                break
        self._base += self._at
        self._at = 0
        self._buffer = b"".join(parts)
        self._blank = self._buffer
        if b"\\" in self._buffer:  # a picture has none, and this is ten times as fast
            self._blank = self._buffer.replace(rb"\\", b"--").replace(rb"\"", b"--")
        self._is_over = size < BUFFER
        return size > 0


def _structure(text: bytes, at: int, depth: int) -> tuple[int, int, bool]:
    """Pass the next quote, or brackets of one sort: return where, how deep, and if in a string."""
    if depth and (found := _TO_STRUCTURE.match(text, at)) is not None:
        at = found.end()
    if (found := _OPENING.match(text, at)) is not None:
        return found.end(), depth + found.end() - at, False
    if (found := _CLOSING.match(text, at)) is not None:
        closed = min(depth, found.end() - at)
        return at + closed, depth - closed, False
    return (at + 1, depth, True) if at < len(text) else (at, depth, False)


def _name(value: Value) -> str | None:
    if value.size > _LONGEST_NAME:
        return None
    try:
        name = json.loads(value.text.decode("utf-8", "replace"))
    except ValueError:
        return None
    return name if isinstance(name, str) else None


def arrays_at(
    path: tuple[str, ...], record: Record, pieces: Iterable[bytes]
) -> Iterator[Iterator[Record]]:
    """Yield the arrays that an object has at `path`, each as its elements; the last one counts.

    `record` is the object, `pieces` all bytes of it. There is more than one array only where a
    key is there twice. Each is to be read to its end before the next. An element is a record
    whose `offset` is where it stands in the segment.
    """
    for elements in _arrays(Cursor(pieces), path):
        yield (
            Record(
                record.segment,
                record.offset + value.offset,
                value.text,
                value.size,
                is_ended=value.is_ended,
                is_carried=record.is_carried,
                is_part=True,
            )
            for value in elements
        )


def _arrays(cursor: Cursor, path: tuple[str, ...]) -> Iterator[Iterator[Value]]:
    for name in cursor.members():
        opening = cursor.next()
        if name != path[0] or opening != (b"{" if path[1:] else b"["):
            cursor.value()
        elif path[1:]:
            yield from _arrays(cursor, path[1:])
        else:
            cursor.skip()
            yield cursor.elements()


class _Taken:
    """A value that is put together step by step."""

    def __init__(self, offset: int, keep: int | None = None) -> None:
        self._offset = offset
        self._keep = LONGEST if keep is None else keep
        self._held = BytesIO()
        self.size = 0

    def add(self, buffer: bytes, start: int, end: int) -> None:
        room = self._keep - self._held.tell()
        if room > 0:
            self._held.write(memoryview(buffer)[start : min(end, start + room)])
        self.size += end - start

    def value(self, *, is_ended: bool) -> Value:
        return Value(self._offset, self._held.getvalue(), self.size, is_ended)
