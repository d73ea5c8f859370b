"""About how small rollouts become, told from samples: what a plan says before it is carried out.

Rule: a sample is compressed with the window of the real thing, because what a rollout has twice
stands far apart: each compaction writes all pictures again. Of one that is larger than two
samples, the beginning and the end are taken: what fills the window, and how what follows shrinks.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sessrotate.clients.codex import cold
from sessrotate.errors import SessrotateError
from sessrotate.model import Span
from sessrotate.system import zstd
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_FILLED: Final = 1 << cold.WINDOW
"""Bytes that fill the window."""

_SAMPLE: Final = _FILLED + (64 << 20)
"""Bytes at the beginning, and at the end, of a rollout that are compressed of it."""

_MOST: Final = 768 << 20
"""Bytes of all that are compressed at most, about: some seconds."""


def compressed(files: Mapping[Path, int]) -> dict[Path, int]:
    """Return about how many bytes each of these rollouts has compressed, given those that it has.

    The largest are sampled for half of the time, and an even choice of the others; those that are
    not sampled shrink like these. What cannot be read stays as large as it is.
    """
    ordered = sorted(files, key=lambda path: (-files[path], path))
    sampled: dict[Path, int] = {}
    left = _sampled(ordered, files, _MOST // 2, sampled)
    many = sum(min(files[path], 2 * _SAMPLE) for path in left)
    step = max(1, -(-many // (_MOST // 2)))
    few: dict[Path, int] = {}
    _sampled(left[::step], files, _MOST // 2 + 2 * _SAMPLE, few)
    like = few or sampled
    share = sum(like.values()) / max(1, sum(files[path] for path in like))
    return {path: round(share * files[path]) for path in left} | sampled | few


def _sampled(
    paths: Iterable[Path], files: Mapping[Path, int], budget: int, into: dict[Path, int]
) -> list[Path]:
    """Sample rollouts until so many bytes are read; return those that are left."""
    left = []
    for path in paths:
        budget -= min(files[path], 2 * _SAMPLE)
        if budget < 0 and into:
            left.append(path)
            continue
        into[path] = files[path]
        with suppress(SessrotateError, OSError), Source.itself(path) as source:
            into[path] = min(files[path], _made(source, source.size()))
    return left


def _made(source: Source, size: int) -> int:
    """Return about how many bytes a rollout has compressed."""
    if size <= 2 * _SAMPLE:
        return sum(_sample(source, 0, size))
    begin, end = _sample(source, 0, _SAMPLE), _sample(source, size - _SAMPLE, size)
    rate = (begin[1] + end[1]) / (_SAMPLE - _FILLED) / 2
    return begin[0] + round(rate * (size - _FILLED))


def _sample(source: Source, start: int, end: int) -> tuple[int, int]:
    """Return how many bytes a part has compressed: what fills the window, and what follows."""
    frame, filled = zstd.compressor(end - start, window=cold.WINDOW), min(end, start + _FILLED)
    begin = sum(len(frame.compress(piece)) for piece in source.pieces(Span(start, filled)))
    begin += len(frame.flush(frame.FLUSH_BLOCK))
    rest = sum(len(frame.compress(piece)) for piece in source.pieces(Span(filled, end)))
    return begin, rest + len(frame.flush())
