"""The rows of a session's history, each with where it stands, in bounded memory.

Rule: a line's row is what `JSON.parse` makes of it, and no line over `LONGEST` is held. Of such a
line only brackets and strings are followed: if they close where the line ends it counts as the
object that they enclose, whatever stands between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sessrotate.clients.claude.rows import row_of
from sessrotate.model import Span
from sessrotate.parsing import json_line
from sessrotate.parsing.json_stream import Cursor
from sessrotate.parsing.json_typed import DECLINED
from sessrotate.parsing.lines import LONG, Window
from sessrotate.parsing.records import LONGEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.clients.claude.rows import Row
    from sessrotate.parsing.lines import Line
    from sessrotate.system.source import Source

    Found = tuple[Span, Row | None]
    """A line's span without its newline, and the row on it; None if that is no object."""

_NAMES: Final[json_line.Shape] = dict.fromkeys(row_of.names)

_LONGEST_VALUE: Final = 6 * json_line.MAX_TEXT + 2
"""Bytes of a text that may be as short as `MAX_TEXT`: each character may be an escape."""


class Survey:
    """Passes over the lines of a source; one pass at a time, `window` bytes in view."""

    def __init__(self, source: Source, window: int) -> None:
        self._source: Final = source
        self._window: Final = Window(source, window)

    def forward(self, span: Span) -> Iterator[Found]:
        """Yield every line of `span` that is not empty."""
        return map(self._found, self._window.forward(span))

    def backward(self, end: int) -> Iterator[Found]:
        """Yield every line before the one that ends at `end`, and that one, the last first."""
        return map(self._found, self._window.backward(end))

    def _found(self, place: Line) -> Found:
        start, end, at = place
        span = Span(start, end)
        if at != LONG:
            return span, self._decoded(span, self._window.view[at : at + span.size])
        if span.size > LONGEST:
            return span, self._followed(span)
        with memoryview(bytearray(span.size)) as line:
            self._source.fill(line, start)
            return span, self._decoded(span, line)

    def _decoded(self, span: Span, line: memoryview) -> Row | None:
        try:
            return row_of.fast(line)
        except DECLINED:
            found = json_line.values(self._source.pieces(span), span.size, _NAMES)
            return None if found is None else row_of.fitted(found)

    def _followed(self, span: Span) -> Row | None:
        cursor = Cursor(self._source.pieces(span))
        found: dict[str, Any] = {}
        for name in cursor.members():
            cursor.next()
            value = cursor.value(_LONGEST_VALUE)
            if name is not None and name in _NAMES:
                is_short = value.size <= _LONGEST_VALUE
                found[name] = json_line.scalar(value.text) if is_short else None
        return row_of.fitted(found) if cursor.is_closed and not cursor.next() else None
