r"""Which lines of a session's history have to be parsed at all, told without parsing them.

Rule: in doubt, a line is parsed. A row is passed over only if its own `type` is certain and no
value of the key that matters for that type is wanted. For a line that is JSON this comes to the
same as parsing it, because of what JSON is:

* Its own `type` is told by its flat beginning or its balanced end, as `claude_glance` says; and
  with it, at the end of what the model said, its `uuid`.
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

from sessrotate.clients.claude.identity import TYPE, UUID, ends
from sessrotate.model import Span
from sessrotate.parsing import json_line
from sessrotate.parsing.lines import LONG, Window

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from sessrotate.parsing.lines import Line
    from sessrotate.system.source import Source

    Parsed = tuple[Span, json_line.Values | None]
    """A line's span without its newline, and what is on it; None if that is no object."""

_OPENS: Final = ord("{")
_CLOSES: Final = ord("}")

# Anything else behind a key (a space, an escape, what is not ASCII, what is long) is in doubt.
_VALUE: Final = re.compile(rb':"([ !#-\[\]-~]{0,%d}+)"' % json_line.MAX_TEXT)
_LONGEST_VALUE: Final = len(b':""') + json_line.MAX_TEXT


@dataclass(frozen=True, slots=True)
class Unless:
    """Rows matter only if their `key` (in its quotes) has one of these values."""

    key: bytes
    values: AbstractSet[bytes]


class Survey:
    """Passes over the lines of a source that yield what matters; one pass at a time.

    `shape` is what to report of a line, `window` how many bytes are looked at at once.
    """

    def __init__(self, source: Source, shape: json_line.Shape, window: int) -> None:
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
            kind, uuid = self._told(line)
            unless = idle.get(kind) if kind else None
            if unless is None or (unless.values and self._may_have(line, unless, uuid)):
                yield self._parsed(line)

    def backward(self, end: int, unless: Unless) -> Iterator[Parsed]:
        """Yield lines before `end`, the last first: at least those whose rows matter.

        `unless.values` may change between two of them; when it is empty, the pass ends.
        """
        for line in self._window.backward(end):
            if not unless.values:
                return
            if self._may_have(line, unless, None):
                yield self._parsed(line)

    def _parsed(self, line: Line) -> Parsed:
        start, end, at = line
        span = Span(start, end)
        if at != LONG and json_line.is_small(span.size):
            text = self._window.view[at : at + span.size].tobytes()
            return span, json_line.values((text,), span.size, self._shape)
        return span, json_line.values(self._source.pieces(span), span.size, self._shape)

    def _told(self, line: Line) -> tuple[bytes | None, bytes | None]:
        """Return the row's own `type`, None where that takes a parser, and `uuid`, if it is cheap.

        It is at the end of what the model said. What a tool gave, mostly all of a session, stands
        on both sides of it, and is faster searched than followed.
        """
        start, end, at = line
        buffer = self._window.buffer
        if at != LONG:
            to = at + end - start
            if buffer[at] != _OPENS or buffer[to - 1] != _CLOSES:
                return None, None
            kind = TYPE.first(buffer, at, to)
            return (kind, None) if kind else ends(buffer, at, to)
        shown = self._window.show(Span(start, end))
        opens, kind = buffer[0], TYPE.first(buffer, 0, shown)
        shown = self._window.show(Span(end - shown, end))
        if opens != _OPENS or buffer[shown - 1] != _CLOSES:
            return None, None
        return (kind, None) if kind else ends(buffer, 0, shown)

    def _may_have(self, line: Line, unless: Unless, uuid: bytes | None) -> bool:
        """Tell whether one of the values may stand behind the key; the row's own is `uuid`."""
        start, end, at = line
        if uuid is not None and unless.key == UUID.quoted:
            return uuid in unless.values
        if at != LONG:
            to = at + end - start
            return _has(self._window, at, to, to, unless)
        while True:
            shown = self._window.show(Span(start, end))
            if start + shown == end:
                return _has(self._window, 0, shown, shown, unless)
            # A key is judged where its value is in view too, and else shown again.
            to = shown - _LONGEST_VALUE
            if _has(self._window, 0, to, shown, unless):
                return True
            start += to - len(unless.key) + 1


def _has(window: Window, at: int, to: int, reach: int, unless: Unless) -> bool:
    """Tell whether a key within [at, to) has one of the values, or one that is in doubt."""
    while (at := window.find(unless.key, at, to)) >= 0:
        at += len(unless.key)
        found = _VALUE.match(window.buffer, at, reach)
        if found is None or found[1] in unless.values:
            return True
    return False
