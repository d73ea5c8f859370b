"""Sealed segments become compressed ones, proved by decompressing before the plain file goes.

Rule: the plain file stays until the manifest on the disk names the compressed one, and that one
was read back from its file and had the segment's digest. Whatever fails leaves a segment as it
was. Segments are compressed side by side, in batches that are each done for good.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event, Lock
from typing import TYPE_CHECKING, Final

from sessrotate import fs, names
from sessrotate.archive import state
from sessrotate.errors import DamagedError, SessrotateError, StorageError, printable, storage
from sessrotate.retention import transaction
from sessrotate.segments import load, manifest
from sessrotate.segments.files import READ, body, describe, opened
from sessrotate.system import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.archive.place import Place
    from sessrotate.model import SealedSegment
    from sessrotate.segments.files import Part, SegmentSet
    from sessrotate.segments.manifest import Manifest

BATCH: Final = 64 * 1024 * 1024
"""Bytes of plain segments that are compressed before a manifest says so: a crash costs no more."""

_MOST: Final = 2048
"""Segments of a batch."""

_PLENTY: Final = 4 * BATCH
"""Free bytes below which each batch is one segment, so that its room is free for the next."""

_LARGE: Final = 16 * 1024 * 1024
"""Bytes from which on one segment alone occupies all cores."""


@dataclass(frozen=True, slots=True)
class Compressed:
    """What became of one archive: how many segments, and the bytes of their files.

    `problems` says of each segment that stayed plain why it did.
    """

    where: Place
    segments: int
    before: int
    after: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Job:
    """One segment on its way: what it is, and the files that it is read from and written to."""

    entry: SealedSegment
    part: Part
    file: str
    size: int

    @property
    def draft(self) -> str:
        return f"{self.file}{names.PARTIAL}"


def plain_bytes(where: Place) -> int:
    """Return how many bytes of an archive could be compressed. Only reads."""
    with state.opened(where) as found:
        segments = () if found.manifest is None else found.manifest.segments
        return sum(entry.segment.span.size for entry in segments if _is_plain(entry))


def compress(
    where: Place,
    wait: float,
    progress: Callable[[int], None],
    *,
    level: int = zstd.LEVEL,
    chosen: Callable[[SealedSegment], bool] = lambda _entry: True,
) -> Compressed:
    """Compress what is plain of an archive and `chosen`; pinned segments, too.

    `wait` is how many seconds to wait for the session's lock, which is let go between batches;
    `progress` is told how many bytes are done. Segments that do not verify stay plain, as
    problems. Raises as `transaction.begin` does; what is compressed by then, is.
    """
    done = Compressed(where, 0, 0, 0)
    failed: set[int] = set()
    seen = 0
    while True:
        with transaction.begin(where, wait) as listed:
            wanted = [
                entry
                for entry in listed.segments
                if _is_plain(entry) and entry.segment.index not in failed and chosen(entry)
            ]
            if not wanted:
                return done
            segments = _segments(where, listed)
            batch = list(_batch(segments, wanted, fs.free_bytes(where.archive)))
            with storage("compress the archive"):
                outcome = _Batch(_Archive(where, listed, segments), level, progress, seen).run(
                    batch
                )
        seen += sum(job.size for job in batch)
        failed |= outcome.failed
        done = replace(
            done,
            segments=done.segments + outcome.done.segments,
            before=done.before + outcome.done.before,
            after=done.after + outcome.done.after,
            problems=(*done.problems, *outcome.done.problems),
        )
        if len(batch) == len(wanted):
            return done


def _is_plain(entry: SealedSegment) -> bool:
    return entry.codec == "plain" and entry.pruned is None


def _segments(where: Place, listed: Manifest) -> SegmentSet:
    listing = frozenset(entry.name for entry in where.archive.iterdir())
    return load.of_manifest(where.archive, listing, listed)


def _batch(segments: SegmentSet, wanted: list[SealedSegment], room: int | None) -> Iterator[_Job]:
    size = 0
    is_plenty = room is None or room > _PLENTY
    limit, least = (BATCH, 2) if is_plenty else (0, 1)  # one reaches the disk beside the other
    for number, entry in enumerate(wanted):
        part = segments.parts[entry.segment.index]
        file = names.segment_file(segments.session, "numbered", part.index, "zstd")
        job = _Job(entry, part, file, len(part.head) + entry.segment.span.size)
        size += job.size
        if (number >= least and size > limit) or number == _MOST:
            return
        yield job


@dataclass(frozen=True, slots=True)
class _Outcome:
    done: Compressed
    failed: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Archive:
    where: Place
    listed: Manifest
    segments: SegmentSet


class _Batch:
    """Compresses some segments of one archive, whose lock is held."""

    def __init__(
        self, of: _Archive, level: int, progress: Callable[[int], None], seen: int
    ) -> None:
        self._where, self._listed, self._segments = of.where, of.listed, of.segments
        self._level = level
        self._progress = progress
        self._done = seen
        self._counting = Lock()
        self._stop = Event()

    def run(self, jobs: list[_Job]) -> _Outcome:
        """Compress, verify, have the manifest say so, remove the plain files."""
        folder = self._where.archive
        try:
            problems = self._written(jobs)
            whole = [job for job in jobs if job.entry.segment.index not in problems]
            fs.remove_files(folder, [job.draft for job in jobs if job not in whole])
            fs.rename_files({folder / job.draft: folder / job.file for job in whole})
            after = sum((folder / job.file).lstat().st_size for job in whole)
            changed = {job.entry.segment.index: replace(job.entry, codec="zstd") for job in whole}
            if changed:
                transaction.replace_segments(self._where, self._listed, changed)
        except (OSError, SessrotateError):
            with suppress(OSError, SessrotateError):
                self._undo(jobs)
            raise
        fs.remove_files(folder, [job.part.name for job in whole])
        before = sum(job.size for job in whole)
        told = tuple(problems.values())
        done = Compressed(self._where, len(whole), before, after, told)
        return _Outcome(done, frozenset(problems))

    def _undo(self, jobs: list[_Job]) -> None:
        """Remove what was written, unless a manifest may already go by it: a full disk needs it."""
        folder = self._where.archive
        told = load.read_small(folder, names.MANIFEST, manifest.MAX_BYTES)
        if told == manifest.dump(self._listed):
            drafts = [f"{names.MANIFEST}{names.PARTIAL}", *(job.draft for job in jobs)]
            fs.remove_files(folder, [*drafts, *(job.file for job in jobs)])

    def _written(self, jobs: list[_Job]) -> dict[int, str]:
        """Write and verify all drafts, side by side; return why some could not be made."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - not needed at start-up

        problems: dict[int, str] = {}
        with ThreadPoolExecutor(_cores()) as pool:
            futures = [(job, pool.submit(self._write, job)) for job in jobs]
            try:
                for job, future in futures:
                    try:
                        future.result()
                    except DamagedError as error:
                        problems[job.entry.segment.index] = str(error)
            finally:
                self._stop.set()
                pool.shutdown(cancel_futures=True)
        return problems

    def _write(self, job: _Job) -> None:
        """Write one draft, on the disk when this returns, and read it back."""
        folder, part = self._where.archive, job.part
        if part.file is None:
            raise DamagedError(f"{describe(part)} is missing.")
        threads = _cores() if job.size >= _LARGE else 0
        with opened(folder, part.file) as plain, fs.NewFile(folder / job.draft) as file:
            frame = zstd.compressor(job.size, self._level, threads)
            left, buffer = job.size, bytearray(READ)
            with memoryview(buffer) as view:
                while left and (size := plain.readinto(view[: min(left, READ)])):
                    file.append(frame.compress(view[:size]))
                    left -= size
                    self._advance(size)
            if left or plain.read(1):
                raise DamagedError(f"{describe(part)} is damaged: it is not as long as it was.")
            file.append(frame.flush())
            file.sync()
        self._check(job)

    def _check(self, job: _Job) -> None:
        """Raise unless the draft holds what the manifest says of the segment."""
        part = job.part
        try:
            for _ in body(self._segments, replace(part, file=job.draft, codec="zstd")):
                self._go_on()
        except DamagedError:
            for _ in body(self._segments, part):  # mostly it is this one that is damaged
                self._go_on()
            name = printable(job.draft)
            raise StorageError(f"{name} is not what was written to it: the disk fails.") from None

    def _advance(self, size: int) -> None:
        self._go_on()
        with self._counting:
            self._done += size
            self._progress(self._done)

    def _go_on(self) -> None:
        """Raise if the others have given up: an interrupt must not wait for a large segment."""
        if self._stop.is_set():
            raise StorageError("Another segment could not be compressed.")


def _cores() -> int:
    return min(os.cpu_count() or 1, 4)
