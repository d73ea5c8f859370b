"""How many bytes parts of a session will have when they are compressed, told from samples.

Rule: at most about `MOST` bytes are read and compressed, however large the parts are. Samples are
whole parts, or long pieces of them, because pictures and files stand twice not far from each other:
short samples would not show that. Parts that have little to gain together are told from one sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessrotate.model import Span
from sessrotate.system import zstd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessrotate.system.source import Source

MOST: Final = 32 * 1024 * 1024

_PIECE: Final = 8 * 1024 * 1024

_LITTLE: Final = 1024 * 1024
"""Bytes below which the figure may be rough: nobody decides anything by it."""

_SAMPLE: Final = 32 * 1024


def compressed(source: Source, spans: Sequence[Span]) -> int:
    """Return about how many bytes these parts of `source` have compressed, each by itself."""
    total = sum(span.size for span in spans)
    if total < _LITTLE:
        pieces = [Span(span.start, min(span.end, span.start + _SAMPLE)) for span in spans[-1:]]
    elif total <= MOST:
        pieces = [*spans]
    else:
        pieces = _spread(spans, total)
    taken = sum(piece.size for piece in pieces)
    return round(total * sum(_made(source, piece) for piece in pieces) / taken) if taken else 0


def _spread(spans: Sequence[Span], total: int) -> list[Span]:
    """Return pieces of `MOST` bytes together, spread evenly over all parts."""
    chosen, taken, passed = list[Span](), 0, 0
    for span in spans:
        for start in range(span.start, span.end, _PIECE):
            piece = Span(start, min(span.end, start + _PIECE))
            passed += piece.size
            if (passed - piece.size / 2) * MOST >= taken * total:
                chosen.append(piece)
                taken += piece.size
    return chosen


def _made(source: Source, span: Span) -> int:
    frame = zstd.compressor(span.size)
    made = sum(len(frame.compress(data)) for data in source.pieces(span))
    return made + len(frame.flush())
