"""About how small files become, told from samples: what a plan says before it is carried out.

Rule: a sample is compressed with the window of the real thing, because what a rollout has twice
stands far apart: each compaction writes all pictures again. Of a file that is larger than two
samples, the beginning and the end are taken: what fills the window, and how what follows shrinks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate.archive import away_file
from sessrotate.archive.place import Place
from sessrotate.errors import SessrotateError
from sessrotate.in_place import gain
from sessrotate.in_place.gain import Forecast
from sessrotate.in_place.obstacles import Need
from sessrotate.model import Span
from sessrotate.retention import away_files
from sessrotate.system import zstd
from sessrotate.system.source import Source

_FAR: Final = 24
"""Log 2 of how far apart pictures and files stand twice that the usual window finds again."""

_LARGE: Final = 1 << 20
"""Bytes of a file from which on it is worth a sample of its own; one of them always has one."""

NEW: Final = 3
"""Blocks of what is new with a session put away: its folders, and the note in one of them."""


def compressed(files: Mapping[Path, int], window: int = 0) -> dict[Path, int]:
    """Return about how many bytes each of these files has compressed, given those that it has.

    `window` is log 2 of the window, 0 for the usual one. The largest are sampled for half of the
    time, and an even choice of the others; those that are not sampled shrink like these. What
    cannot be read stays as large as it is.
    """
    sampler = _Sampler(window, 1 << (window or _FAR))
    half = 3 * sampler.filled  # of 128 MiB: some seconds
    ordered = sorted(files, key=lambda path: (-files[path], path))
    sampled: dict[Path, int] = {}
    left = sampler.sampled(ordered, files, half, sampled)
    many = sum(min(files[path], 2 * sampler.sample) for path in left)
    step = max(1, -(-many // half))
    few: dict[Path, int] = {}
    sampler.sampled(left[::step], files, half + 2 * sampler.sample, few)
    like = few or sampled
    share = sum(like.values()) / max(1, sum(files[path] for path in like))
    return {path: round(share * files[path]) for path in left} | sampled | few


class _Sampler(Struct, frozen=True):
    """How samples are taken: with which window, and how many bytes fill it."""

    window: int
    filled: int

    @property
    def sample(self) -> int:
        """Bytes at the beginning, and at the end, of a file that are compressed of it."""
        return self.filled * 3 // 2

    def sampled(
        self, paths: Iterable[Path], files: Mapping[Path, int], budget: int, into: dict[Path, int]
    ) -> list[Path]:
        """Sample files until so many bytes are read; return those that are left."""
        left = []
        for path in paths:
            if files[path] >= _LARGE or not into:
                budget -= min(files[path], 2 * self.sample)
            if into and (files[path] < _LARGE or budget < 0):
                left.append(path)
                continue
            into[path] = files[path]
            with suppress(SessrotateError, OSError), Source.itself(path) as source:
                into[path] = min(files[path], self._made(source, source.size()))
        return left

    def _made(self, source: Source, size: int) -> int:
        if size <= 2 * self.sample:
            return sum(self._of(source, 0, size))
        begin = self._of(source, 0, self.sample)
        end = self._of(source, size - self.sample, size)
        rate = (begin[1] + end[1]) / (self.sample - self.filled) / 2
        return begin[0] + round(rate * (size - self.filled))

    def _of(self, source: Source, start: int, end: int) -> tuple[int, int]:
        """Return how many bytes a part has compressed: what fills the window, and what follows."""
        frame = zstd.compressor(end - start, window=self.window)
        filled = min(end, start + self.filled)
        begin = sum(len(frame.compress(piece)) for piece in source.pieces(Span(start, filled)))
        begin += len(frame.flush(frame.FLUSH_BLOCK))
        rest = sum(len(frame.compress(piece)) for piece in source.pieces(Span(filled, end)))
        return begin, rest + len(frame.flush())


# ── what a full disk left plain ──────────────────────────────────────────────────────────────


def left_plain(where: Place) -> Forecast:
    """Return about what the disk gains if what was left plain of a session put away is compressed.

    A full disk, or a writer, stops it there. Nothing where nothing is left so.
    """
    with suppress(SessrotateError, OSError):
        note = away_file.note(where)
        if note is not None and note.standing == "archived" and away_files.is_due(where, note):
            expected = rest(where)
            if expected.gained > 0:
                return expected
    return Forecast()


def rest(where: Place) -> Forecast:
    """Return about what compressing the plain files of a session put away gains and needs."""
    top = away_files.folder(where)
    files = {top / file: size for file, size in away_files.to_compress(where).items()}
    after = compressed(files)
    gained = sum(files.values()) - sum(after.values())
    return Forecast(gained=gained, need=need((size, after[path]) for path, size in files.items()))


def need(each: Iterable[tuple[int, int]]) -> Need:
    """Return what has to be free to compress files one after the other: bytes before, and after."""
    most = gain.peak((gain.blocks(after), gain.blocks(before)) for before, after in each)
    return Need(most + NEW * gain.BLOCK, "the compressed session")
