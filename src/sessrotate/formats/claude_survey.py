r"""Which lines of a session's history have to be parsed at all, told without parsing them.

Rule: in doubt, a line is parsed. A row is passed over only if its own `type` is certain and no
value of the key that matters for that type is wanted. For a line that is JSON this comes to the
same as parsing it, because of what JSON is:

* A flat beginning of an object can be followed key by key: the first `type` is its own (`_HEAD`).
* If what follows a `type` reads as members, brackets balanced, up to the brace that ends the line,
  they are the outermost object's, and so is the `type` (`_REST`). This finds it behind a nested
  message, and before what a client rendered of an attachment.
* Where a text quotes JSON, its quotes are escaped: the bytes `"uuid"`, quotes included, are a key
  at some depth or a whole text. Where none of them has a wanted value behind it, no row has.

Two spellings are left out, for no client writes them: an object with two `type` keys of its own,
and a key that is spelled with `\u` escapes. A line that begins and ends with braces and is no JSON
between them (a torn row and a whole one in one line) counts as what its ends say: clients ignore
such a line wherever it is, so it need not be carried.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sessrotate import jsonline
from sessrotate.lines import LONG, Window
from sessrotate.model import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from sessrotate.lines import Line
    from sessrotate.source import Source

    Parsed = tuple[Span, jsonline.Values | None]
    """A line's span without its newline, and what is on it; None if that is no object."""

_OPENS: Final = ord("{")
_CLOSES: Final = ord("}")

# All repeats are possessive: they never go back, so they need no stack and one pass.
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_HEAD: Final = re.compile(
    rb'\{(?:"(?!type")[^"\\]*+":(?:%b|[-+.0-9eE]++|true|false|null),)*+"type":"([^"\\]*+)"'
    % _STRING
)

_TYPE: Final = b',"type":"'
_FLAT: Final = rb'(?:%b|[^][{}"\\]++)*+' % _STRING
_NESTED: Final = rb'(?:%b|[^][{}"\\]++|[\[{]%%b[\]}])*+' % _STRING
_REST: Final = re.compile(rb',"type":"([^"\\]*+)"%b\}' % (_NESTED % (_NESTED % _FLAT)))

# Anything else behind a key (a space, an escape, what is not ASCII, what is long) is in doubt.
_VALUE: Final = re.compile(rb':"([ !#-\[\]-~]{0,%d}+)"' % jsonline.MAX_TEXT)
_LONGEST_VALUE: Final = len(b':""') + jsonline.MAX_TEXT


@dataclass(frozen=True, slots=True)
class Unless:
    """Rows matter only if their `key` (in its quotes) has one of these values."""

    key: bytes
    values: AbstractSet[bytes]


class Survey:
    """Passes over the lines of a source that yield what matters; one pass at a time.

    `shape` is what to report of a line, `window` how many bytes are looked at at once.
    """

    def __init__(self, source: Source, shape: jsonline.Shape, window: int) -> None:
        self._source: Final = source
        self._shape: Final = shape
        self._window: Final = Window(source, window)

    def all(self, span: Span) -> Iterator[Parsed]:
        """Yield every line of `span` that is not empty."""
        for line in self._window.forward(span):
            yield self._parsed(line)

    def relevant(self, span: Span, idle: Mapping[bytes, Unless]) -> Iterator[Parsed]:
        """Yield the lines of `span` but the rows of an `idle` type that do not matter."""
        for line in self._window.forward(span):
            kind = self._kind(line)
            unless = idle.get(kind) if kind else None
            if unless is None or self._may_have(line, unless):
                yield self._parsed(line)

    def backward(self, end: int, unless: Unless) -> Iterator[Parsed]:
        """Yield lines before `end`, the last first: at least those whose rows matter.

        `unless.values` may change between two of them; when it is empty, the pass ends.
        """
        for line in self._window.backward(end):
            if not unless.values:
                return
            if self._may_have(line, unless):
                yield self._parsed(line)

    def _parsed(self, line: Line) -> Parsed:
        start, end, at = line
        span = Span(start, end)
        if at != LONG and jsonline.is_small(span.size):
            text = self._window.view[at : at + span.size].tobytes()
            return span, jsonline.values((text,), span.size, self._shape)
        return span, jsonline.values(self._source.pieces(span), span.size, self._shape)

    def _kind(self, line: Line) -> bytes | None:
        """Return the row's own `type`, or None where that takes a parser."""
        start, end, at = line
        buffer = self._window.buffer
        if at != LONG:
            to = at + end - start
            if buffer[at] != _OPENS or buffer[to - 1] != _CLOSES:
                return None
            return _head(buffer, at, to) or _rest(buffer, at, to)
        shown = self._window.show(Span(start, end))
        opens, kind = buffer[0], _head(buffer, 0, shown)
        shown = self._window.show(Span(end - shown, end))
        if opens != _OPENS or buffer[shown - 1] != _CLOSES:
            return None
        return kind or _rest(buffer, 0, shown)

    def _may_have(self, line: Line, unless: Unless) -> bool:
        """Tell whether one of the values may stand behind the key, at any depth."""
        start, end, at = line
        buffer = self._window.buffer
        if not unless.values:
            return False
        if at != LONG:
            return _has(buffer, at, at + end - start, at + end - start, unless)
        while True:
            shown = self._window.show(Span(start, end))
            if start + shown == end:
                return _has(buffer, 0, shown, shown, unless)
            # A key is judged where its value is in view too, and else shown again.
            to = shown - _LONGEST_VALUE
            if _has(buffer, 0, to, shown, unless):
                return True
            start += to - len(unless.key) + 1


def _head(buffer: bytearray, at: int, to: int) -> bytes | None:
    found = _HEAD.match(buffer, at, to)
    return found[1] if found else None


def _rest(buffer: bytearray, at: int, to: int) -> bytes | None:
    begins = buffer.rfind(_TYPE, at, to)
    found = _REST.fullmatch(buffer, begins, to) if begins >= 0 else None
    return found[1] if found else None


def _has(buffer: bytearray, at: int, to: int, reach: int, unless: Unless) -> bool:
    """Tell whether a key within [at, to) has one of the values, or one that is in doubt."""
    while (at := buffer.find(unless.key, at, to)) >= 0:
        at += len(unless.key)
        found = _VALUE.match(buffer, at, reach)
        if found is None or found[1] in unless.values:
            return True
    return False
