"""Whether the first line of a segment is the boundary that opens it.

Promise: the same verdict as that of the scan which cut the session there, for a line of any
length. In comes what gives a segment's body, from its beginning, as often as it is called; out
comes a `Boundary` or the line's time. A Codex `compacted` record has up to 290 MB: memory stays
constant.

Rule: everybody who has no manifest to ask asks here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from sessrotate.model import Boundary, Span
from sessrotate.parsing import json_line
from sessrotate.system.source import PIECE

if TYPE_CHECKING:
    from sessrotate.clients.protocol import Client

    Body = Callable[[], Iterable[bytes | memoryview]]
    """Gives the bytes of a segment's body from their beginning, each piece until the next."""

_LAST: Final = 4
"""Pieces from a line's end that are kept: no client tells a boundary by more."""


def boundary(client: Client, body: Body, offset: int = 0) -> Boundary | None:
    """Return the boundary that a segment begins with, None if its first line is none.

    `offset` is where the body begins in the history, in bytes. Raises what reading `body` raises.
    """
    return _boundary(client, _Line(body, client.MARKER), offset)


def time(client: Client, body: Body) -> str | None:
    """Return the time of a segment's first line (ISO 8601), its boundary's if it is one.

    None if it has none. Raises what reading `body` raises.
    """
    line = _Line(body, client.MARKER)
    found = _boundary(client, line, 0)
    return client.timestamp(line, line.size) if found is None else found.timestamp


def _boundary(client: Client, line: _Line, offset: int) -> Boundary | None:
    if not line.is_marked:
        return None
    found = client.boundary(line, Span(offset, offset + line.size))
    return found if isinstance(found, Boundary) else None


class _Line:
    """The first line of a body, without its newline; pieces of `PIECE` bytes, as `Source` has them.

    It is read once for its size, its end and the marker, and kept if it is short.
    """

    def __init__(self, body: Body, marker: bytes) -> None:
        self._body = body
        self.size = 0
        self.is_marked = False
        self._end: deque[bytes] = deque(maxlen=_LAST)
        before = b""
        for piece in self._pieces():
            self.size += len(piece)
            self._end.append(piece)
            if marker and not self.is_marked:
                self.is_marked = marker in before + piece
                before = piece[-len(marker) :]
        self._is_kept = self.size <= min(_LAST * PIECE, json_line.SMALL)

    def __iter__(self) -> Iterator[bytes]:
        return iter(tuple(self._end)) if self._is_kept else self._pieces()

    def __reversed__(self) -> Iterator[bytes]:
        return reversed(tuple(self._end))

    def _pieces(self) -> Iterator[bytes]:
        waiting = bytearray()
        for data in self._body():
            waiting += data
            newline = waiting.find(b"\n", len(waiting) - len(data))
            if newline >= 0:
                del waiting[newline:]
            start = 0
            while len(waiting) - start > PIECE:
                yield bytes(waiting[start : start + PIECE])
                start += PIECE
            del waiting[:start]
            if newline >= 0:
                break
        if waiting:
            yield bytes(waiting)
