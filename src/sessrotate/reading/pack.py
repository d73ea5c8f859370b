"""What came late to a replaced file, and the live file has yet to get: its bytes, and their place.

Rule: only reads. Whatever readers do for the pack alone is here, and goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, printable
from sessrotate.model import Span
from sessrotate.reading.open_segments import Loose, OpenSegment
from sessrotate.segments.segment_set import Problem
from sessrotate.system import locks

if TYPE_CHECKING:
    from sessrotate.reading.open_segments import Pieces


def interrupted(found: State) -> Iterator[Problem]:
    """Yield a problem if a run was interrupted, unless one is at work just now."""
    is_begun = found.intent is not None or found.pack is not None
    if is_begun and not locks.is_held(found.place.lock):
        command = "rotate" if found.intent is None else found.intent.finished_by
        finishes = f"`sessrotate {command} {printable(found.place.session)}` finishes it."
        yield Problem("leftover", f"A run was interrupted: {finishes}")


def read(found: State, span: Span) -> Iterator[bytes]:
    """Yield what came late to the pack. Raises DamagedError if the pack is gone."""
    if found.pack is None:
        raise DamagedError(f"{printable(str(found.place.pack))} is gone.")
    yield from found.pack.pieces(span)


def behind(last: OpenSegment, loose: Iterable[Loose]) -> OpenSegment:
    """Return the last segment with these lines behind it."""
    parts = [partial(each.read, each.span) for each in loose]
    size = (last.info.bytes or 0) + sum(each.span.size for each in loose)
    known = replace(last.info, bytes=size, lines=None)
    return replace(last, info=known, pieces=partial(_chained, last.pieces, *parts))


def _chained(*parts: Pieces) -> Iterator[bytes | memoryview]:
    return chain.from_iterable(part() for part in parts)
