"""The rows of a session's history, each with where it stands, in bounded memory.

Rule: a line's row is what `JSON.parse` makes of it, and no line over `LONGEST` is held. Of such a
line only brackets and strings are followed: if they close where the line ends it counts as the
object that they enclose, whatever stands between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from sessrotate.clients.claude.rows import Link, link_of
from sessrotate.model import Span
from sessrotate.parsing import json_line
from sessrotate.parsing.json_stream import Cursor
from sessrotate.parsing.json_typed import DECLINED
from sessrotate.parsing.lines import LONG, Window
from sessrotate.parsing.records import LONGEST

if TYPE_CHECKING:
    from sessrotate.parsing.lines import Line
    from sessrotate.system.source import Source

    Found = tuple[int, int, Link | None]
    """Where a line starts and ends, without its newline, and the row on it; None if that is no
    object. No `Span`: there may be millions, and few are kept."""

_NAMES: Final[json_line.Shape] = {**dict.fromkeys(link_of.names), "message": {"id": None}}

_LONGEST_VALUE: Final = 6 * json_line.MAX_TEXT + 2
"""Bytes of a text that may be as short as `MAX_TEXT`: each character may be an escape."""


class Survey:
    """Passes over the lines of a source; one pass at a time, `window` bytes in view."""

    def __init__(self, source: Source, window: int) -> None:
        self._source: Final = source
        self._window: Final = Window(source, window)

    def forward(self, span: Span) -> Iterator[Found]:
        """Yield every line of `span` that is not empty."""
        return self._rows(self._window.forward(span))

    def backward(self, end: int) -> Iterator[Found]:
        """Yield every line before the one that ends at `end`, and that one, the last first."""
        return self._rows(self._window.backward(end))

    def _rows(self, places: Iterator[Line]) -> Iterator[Found]:
        decode, view = link_of.fast, self._window.view
        for start, end, at in places:
            if at == LONG:
                yield start, end, self._long(Span(start, end))
                continue
            try:
                yield start, end, decode(view[at : at + end - start])
            except DECLINED:
                yield start, end, self._refused(Span(start, end))

    def _long(self, span: Span) -> Link | None:
        if span.size > LONGEST:
            return self._followed(span)
        with memoryview(bytearray(span.size)) as line:
            self._source.fill(line, span.start)
            try:
                return link_of.fast(line)
            except DECLINED:
                return self._refused(span)

    def _refused(self, span: Span) -> Link | None:
        found = json_line.values(self._source.pieces(span), span.size, _NAMES)
        return None if found is None else link_of.fitted(found)

    def _followed(self, span: Span) -> Link | None:
        cursor = Cursor(self._source.pieces(span))
        found = _followed(cursor, _NAMES)
        return link_of.fitted(found) if cursor.is_closed and not cursor.next() else None


def _followed(cursor: Cursor, shape: json_line.Shape) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in cursor.members():
        inner = None if name is None else shape.get(name)
        if isinstance(inner, dict) and cursor.next() == b"{":
            found[name or ""] = _followed(cursor, inner)
            continue
        cursor.next()
        value = cursor.value(_LONGEST_VALUE)
        if name is not None and name in shape:
            is_short = value.size <= _LONGEST_VALUE
            found[name] = json_line.scalar(value.text) if is_short else None
    return found
