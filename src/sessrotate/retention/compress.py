"""Compressing sealed segments, each proved by decompressing it before its plain file goes.

Promise: whatever fails leaves a segment as it was. Segments are compressed side by side, in
batches that are each recorded for good.

Rule: the order is that of `fs.replacing`, and the record is the manifest: it names the compressed
file once that was read back and had the segment's digest.
"""

from __future__ import annotations

from functools import partial
from threading import Event, Lock
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import fs, names
from sessrotate.archive import archived_file, state
from sessrotate.errors import DamagedError, StorageError, storage
from sessrotate.fs import replacing
from sessrotate.fs.replacing import Replacement
from sessrotate.in_place import gain, room
from sessrotate.in_place.gain import Forecast
from sessrotate.in_place.room import Need
from sessrotate.model import Span
from sessrotate.retention import transaction
from sessrotate.segments import compressed, estimate, load, manifest
from sessrotate.segments.segment_set import READ, check, describe, opened
from sessrotate.system import zstd
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessrotate.archive.place import Place
    from sessrotate.model import SealedSegment
    from sessrotate.segments.manifest import Manifest
    from sessrotate.segments.segment_set import SegmentSet

_MOST: Final = 2048
"""Segments of a batch."""

_NEXT: Final = "the next segment, compressed"

_PLENTY: Final = 4 * replacing.BATCH
"""Free bytes below which each batch is one segment, so that its room is free for the next."""


class Compressed(Struct, frozen=True):
    """What was compressed of one archive: how many segments, and the bytes of their files.

    `gained` is how many bytes the disk has more by it, in a plan about how many. `problems` says of
    each segment that stayed plain why it did.
    """

    where: Place
    segments: int = 0
    before: int = 0
    after: int = 0
    gained: int = 0
    problems: tuple[str, ...] = ()


class _Made(Struct, frozen=True):
    """A segment's compressed draft, proved: its sizes before and after, in bytes."""

    entry: SealedSegment
    before: int
    after: int


def expected(
    where: Place, chosen: Callable[[SealedSegment], bool] = lambda _entry: True
) -> Forecast:
    """Return how many bytes `compress` would compress, and about how many the disk would gain.

    Of a disk that is almost full, one segment after the other takes room. Reads samples. Raises
    StorageError.
    """
    with state.opened(where) as found:
        listed = found.manifest
        wanted = [
            entry
            for entry in (() if listed is None else listed.segments)
            if _is_plain(entry) and chosen(entry)
        ]
        total = sum(map(_size, wanted))
        if listed is None or not total:
            return Forecast(total)
        # The last ones, so that the first, which may be like no other, is one of many.
        sampled = [*next(replacing.batches(wanted[::-1], _size, estimate.MOST, _MOST), [])]
        made = _made_of(where, listed, sampled)
        taken = sum(map(_size, sampled))
        share = made / taken if taken else 1.0
        most = gain.peak((round(share * size), size) for size in map(_size, wanted))
        return Forecast(total, total - round(total * share), Need(most + gain.ASIDE, _NEXT))


def _made_of(where: Place, listed: Manifest, entries: list[SealedSegment]) -> int:
    """Return about how many bytes plain segments will have compressed."""
    made = 0
    for entry in entries:
        with Source.inside(where.archive, transaction.file_of(listed, entry)) as source:
            made += estimate.compressed(source, [Span(0, source.size())])
    return made


def _need(where: Place, listed: Manifest, entries: list[SealedSegment]) -> Need:
    return Need(_made_of(where, listed, entries), _NEXT)


def plan(where: Place) -> Compressed:
    """Return what of an archive could be compressed; nothing of it is by then. Only reads."""
    with state.opened(where) as found:
        listed = found.manifest
        wanted = [] if listed is None else [each for each in listed.segments if _is_plain(each)]
        files = [_file_size(where, listed, entry) for entry in wanted if listed is not None]
    return Compressed(where, len(files), sum(files))


def compress(
    where: Place,
    wait: float,
    progress: Callable[[int], None],
    *,
    level: int = zstd.LEVEL,
    chosen: Callable[[SealedSegment], bool] = lambda _entry: True,
) -> Compressed:
    """Compress the plain segments of an archive that are `chosen`, pinned ones included.

    `wait` is how many seconds to wait for the session's lock, which is released between batches;
    `progress` is given how many bytes are done. Segments that do not verify stay plain and are
    reported as problems. Raises as `transaction.begin` does; finished batches stay compressed.
    """
    done = Compressed(where)
    if not (where.archive / names.MANIFEST).exists() and archived_file.note(where) is not None:
        return done  # it was put away whole, and `archive` compresses that
    work = _Work(level, progress)
    while True:
        with transaction.begin(where, wait) as listed:
            wanted = [
                entry
                for entry in listed.segments
                if _is_plain(entry) and entry.segment.index not in work.problems and chosen(entry)
            ]
            batch = _batch(wanted, fs.free_bytes(where.archive))
            with (
                room.told(
                    "compress the archive",
                    where.archive,
                    partial(_need, where, listed, batch[:1]),
                ),
                storage("compress the archive"),
            ):
                made = _compress_batch(where, listed, batch, work)
        done = replace(
            done,
            segments=done.segments + len(made),
            before=done.before + sum(each.before for each in made),
            after=done.after + sum(each.after for each in made),
        )
        if len(batch) == len(wanted):
            return replace(done, problems=tuple(work.reported()))


def _is_plain(entry: SealedSegment) -> bool:
    return entry.codec == "plain" and entry.pruned is None


def _size(entry: SealedSegment) -> int:
    return entry.segment.span.size


def _file_size(where: Place, listed: Manifest, entry: SealedSegment) -> int:
    """Return how many bytes a segment's file has, with its header; without it, if that is gone."""
    try:
        return (where.archive / transaction.file_of(listed, entry)).stat().st_size
    except OSError:
        return _size(entry)


def _batch(wanted: list[SealedSegment], room: int | None) -> list[SealedSegment]:
    """Return the segments to compress next: where there is room, at least two.

    Of two, one reaches the disk while the other is compressed.
    """
    is_plenty = room is None or room > _PLENTY
    limit = max(replacing.BATCH, sum(map(_size, wanted[:2]))) if is_plenty else 0
    return next(replacing.batches(wanted, _size, limit, _MOST), [])


def _compress_batch(
    where: Place, listed: Manifest, batch: list[SealedSegment], work: _Work
) -> list[_Made]:
    """Compress some segments of an archive, whose lock is held, and have the manifest say so."""
    listing = frozenset(path.name for path in where.archive.iterdir())
    segments = load.of_manifest(where.archive, listing, listed)
    work.stop = Event()

    def file(entry: SealedSegment) -> Replacement[_Made]:
        path = where.archive / transaction.file_of(listed, replace(entry, codec="zstd"))
        draft = path.with_name(path.name + names.PARTIAL)
        old = where.archive / transaction.file_of(listed, entry)
        return Replacement(draft, path, partial(work.write, segments, entry, draft.name), old)

    def record(made: list[_Made]) -> None:
        changed = {each.entry.segment.index: replace(each.entry, codec="zstd") for each in made}
        transaction.replace_segments(where, listed, changed)

    def is_recorded() -> bool:
        there = load.read_small(where.archive, names.MANIFEST, manifest.MAX_BYTES)
        return there != manifest.dump(listed)

    files, threads = [file(entry) for entry in batch], compressed.workers(map(_size, batch))
    return replacing.replace_files(
        files, record, threads=threads, stop=work.stop, is_recorded=is_recorded
    )


class _Work:
    """Writes drafts, several at a time; `problems` says by number which segments do not verify."""

    def __init__(self, level: int, progress: Callable[[int], None]) -> None:
        self.problems: dict[int, str] = {}
        self.stop = Event()
        self._level = level
        self._progress = progress
        self._done = 0
        self._counting = Lock()

    def reported(self) -> list[str]:
        """Return the problems, by the number of the segment."""
        return [self.problems[index] for index in sorted(self.problems)]

    def write(
        self, segments: SegmentSet, entry: SealedSegment, name: str, draft: fs.Draft
    ) -> _Made | None:
        """Fill the draft of this name and read it back; None if the segment does not verify."""
        try:
            size = self._fill(segments, entry, draft)
            draft.sync()  # what is read back is what the disk took
            self._check(segments, entry.segment.index, name)
        except DamagedError as error:
            self.problems[entry.segment.index] = str(error)
            return None
        return _Made(entry, size, draft.size)

    def _fill(self, segments: SegmentSet, entry: SealedSegment, draft: fs.Draft) -> int:
        """Compress a segment's file into the draft; return the bytes that it has."""
        part = segments.parts[entry.segment.index]
        size = len(part.head) + _size(entry)
        if part.file is None:
            raise DamagedError(f"{describe(part)} is missing.")
        with opened(segments.folder, part.file) as plain:
            frame = compressed.Frame(draft, size, self._level)
            left, buffer = size, bytearray(READ)
            with memoryview(buffer) as view:
                while left and (read := plain.readinto(view[: min(left, READ)])):
                    frame.append(view[:read])
                    left -= read
                    self._advance(read)
            if left or plain.read(1):
                raise DamagedError(f"{describe(part)} is damaged: its length has changed.")
        frame.finish()
        return size

    def _check(self, segments: SegmentSet, index: int, name: str) -> None:
        """Raise an error unless the draft holds what the manifest says of the segment."""
        try:
            compressed.prove(segments, index, name, self._go_on)
        except StorageError:
            if not self.stop.is_set():
                check(segments, index)  # usually it is this one that is damaged
            raise

    def _advance(self, size: int) -> None:
        self._go_on()
        with self._counting:
            self._done += size
            self._progress(self._done)

    def _go_on(self) -> None:
        """Raise if the others have given up: an interrupt must not wait for a large segment."""
        if self.stop.is_set():
            raise StorageError("Another segment could not be compressed.")
