"""Writing the segments of a plan: read once, fingerprinted on the way, on the disk when done.

Rule: a segment's header says what its body's digest is, so a plain one's is filled in when the
body is there, and a compressed one, which cannot be changed afterwards, is read twice. Copying
one segment goes on while the one before reaches the disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from sessrotate import fs, names, platforms
from sessrotate.errors import InUseError
from sessrotate.model import SealedSegment, Segment, SplitPlan
from sessrotate.segments import header
from sessrotate.system.digest import ZERO, Fingerprint, Tally

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sessrotate.system.source import Source

BUFFER: Final = 256 * 1024
"""Bytes copied at once: read, fingerprinted and written while in the processor's cache."""

_AT_A_TIME: Final = 16
"""Segments that may wait to reach the disk: `fsync` goes on beside the copying of the next."""

_WORKERS: Final = 2


def write(
    plan: SplitPlan, source: Source, folder: Path, progress: Callable[[int], None]
) -> tuple[tuple[SealedSegment, ...], str]:
    """Write every segment of `plan` into `folder`, where none of them is yet.

    Returns them as written, and the digest of all together; their content is on the disk, their
    names are not yet. Raises InUseError if the source is not as long as planned any more, OSError
    as the system reports it.
    """
    writer = _Writer(plan, source, folder, progress)
    sealed: list[SealedSegment] = []
    # What is on its way to the disk, and the file that is open for it meanwhile.
    waiting: deque[tuple[Future[None], fs.NewFile | None]] = deque()
    parent_digest = ZERO
    with platforms.pool(_WORKERS) as pool:
        try:
            for segment in plan.segments:
                tally, finish, file = writer.begin(segment, parent_digest)
                waiting.append((pool.submit(finish), file))
                parent_digest = tally.digest
                sealed.append(SealedSegment(segment, tally.digest, tally.lines, plan.codec))
                if len(waiting) > _AT_A_TIME:
                    waiting.popleft()[0].result()
            while waiting:
                waiting.popleft()[0].result()
        finally:
            pool.shutdown(cancel_futures=True)
            for _, file in waiting:
                if file is not None:
                    file.close()
    return tuple(sealed), writer.whole.digest


def file_name(plan: SplitPlan, segment: Segment) -> str:
    """Return the name of a planned segment's file."""
    return names.segment_file(plan.session, plan.layout, segment.index, plan.codec)


class _Writer:
    """Writes segments one after the other; what is left to do of each may be done side by side."""

    def __init__(
        self, plan: SplitPlan, source: Source, folder: Path, progress: Callable[[int], None]
    ) -> None:
        self.whole = Fingerprint()
        self._plan = plan
        self._progress = progress
        self._done = 0
        self._counting = Lock()
        self._source = source
        self._folder = folder
        self._buffer = bytearray(BUFFER)

    def _advance(self, size: int) -> None:
        # Called by both workers where segments are compressed.
        with self._counting:
            self._done += size
            self._progress(self._done)

    def begin(
        self, segment: Segment, parent_digest: str
    ) -> tuple[Tally, Callable[[], None], fs.NewFile | None]:
        """Fingerprint a segment; return that, what is left to do, and the file open for it.

        A plain segment is written while it is read, its header filled in when the digest is
        known. A compressed one cannot be changed afterwards, so it is read twice.
        """
        path = self._folder / file_name(self._plan, segment)
        if self._plan.codec == "zstd":
            tally = self._fingerprint(segment, lambda _data: None)
            head = self._header(segment, tally.digest, parent_digest)
            return tally, lambda: self._compress(path, segment, head, tally.digest), None
        file = fs.NewFile(path)

        def copy(data: memoryview) -> None:
            file.append(data)
            self._advance(len(data))

        try:
            file.append(self._header(segment, ZERO, parent_digest))
            tally = self._fingerprint(segment, copy)
            file.fill_in(self._header(segment, tally.digest, parent_digest), 0)
        except BaseException:
            file.close()
            raise
        return tally, lambda: _sync_and_close(file), file

    def _fingerprint(self, segment: Segment, use: Callable[[memoryview], None]) -> Tally:
        """Read a segment in order, hand each part of it to `use`; return what it adds up to."""
        tally = Tally()
        with memoryview(self._buffer) as view:
            for size in self._read(segment, self._buffer):
                tally.update(self._buffer, size)
                self.whole.update(view[:size])
                use(view[:size])
        return tally

    def _compress(self, path: Path, segment: Segment, head: bytes, digest: str) -> None:
        from sessrotate.system import zstd  # noqa: PLC0415 - not needed by plain sets

        buffer, again = bytearray(BUFFER), Fingerprint()
        with fs.NewFile(path) as file, memoryview(buffer) as view:
            frame = zstd.compressor(len(head) + segment.span.size)
            file.append(frame.compress(head))
            for size in self._read(segment, buffer):
                again.update(view[:size])
                file.append(frame.compress(view[:size]))
                self._advance(size)
            file.append(frame.flush())
            if again.digest != digest:
                raise InUseError("The session was changed while it was read; try again.")
            file.sync()

    def _read(self, segment: Segment, buffer: bytearray) -> Iterator[int]:
        """Fill the buffer with one part of the segment after the other; yield each one's size."""
        with memoryview(buffer) as view:
            for start in range(segment.span.start, segment.span.end, len(buffer)):
                size = min(len(buffer), segment.span.end - start)
                self._source.fill(view[:size], start)
                yield size

    def _header(self, segment: Segment, digest: str, parent_digest: str) -> bytes:
        plan = self._plan
        return header.of(
            segment,
            session=plan.session,
            layout=plan.layout,
            digest=digest,
            parent_digest=parent_digest,
            segments=len(plan.segments),
            source_bytes=plan.source_bytes,
        )


def _sync_and_close(file: fs.NewFile) -> None:
    with file:
        file.sync()
