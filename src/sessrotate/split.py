"""A split: read and planned, then carried out.

Rule: the source is only read. The order of writes makes every crash recognisable: the intent is
on the disk before the first segment, all segments before the manifest, the manifest before the
intent goes. A set with an intent is unfinished, and the next split into its folder starts over.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

from sessrotate import dating, fs, header, manifest, names, scan
from sessrotate import plan as plans
from sessrotate.digest import ZERO, Fingerprint, Tally
from sessrotate.errors import (
    InUseError,
    NotASessionError,
    RefusedError,
    StorageError,
    printable,
    storage,
)
from sessrotate.formats import claude
from sessrotate.header import Header
from sessrotate.manifest import Manifest
from sessrotate.model import CODECS, LAYOUTS, Scan, SealedSegment, Segment, SplitPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from sessrotate.model import Codec, FileIdentity, Layout
    from sessrotate.source import Source

BUFFER: Final = 256 * 1024
"""Bytes copied at once: read, fingerprinted and written while in the processor's cache."""

_HEAD: Final = 256 * 1024
"""Bytes by which a file is recognised."""

_AT_A_TIME: Final = 16
"""Segments that may wait to reach the disk: `fsync` goes on beside the copying of the next."""

_WORKERS: Final = 2


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What an interrupted split of the same session left in a folder."""

    files: tuple[str, ...]


def prepare(
    source: Source, progress: Callable[[int], None], *, layout: Layout, codec: Codec
) -> SplitPlan:
    """Read a session once and return the plan of its split; nothing is written.

    `progress` is told how many bytes are done. Raises NotASessionError if the file is no session
    of a known client, InUseError if it shrinks or is replaced meanwhile.
    """
    identity = source.identity()
    with storage("read the session"):
        scanned = scan.scan(source, progress)
        head = source.read_at(0, min(_HEAD, scanned.end))
        if scanned.end and not scanned.boundaries and not claude.recognise(head):
            name = printable(str(source.path))
            raise NotASessionError(f"{name} is no session of a client that sessrotate knows.")
        return _planned(source, identity, scanned, layout, codec)


def _planned(
    source: Source, identity: FileIdentity, scanned: Scan, layout: Layout, codec: Codec
) -> SplitPlan:
    return plans.split(
        session=names.session_of(source.path.name),
        client=claude.NAME,
        source=identity,
        scan=scanned,
        times=dating.times(source, plans.spans(scanned)),
        layout=layout,
        codec=codec,
    )


def check_folder(plan: SplitPlan, folder: Path) -> Leftovers:
    """Return what a run of `plan` into `folder` would have to remove first, mostly nothing.

    Raises RefusedError if the folder holds anything but an unfinished split of this session.
    """
    with storage("look into the output folder"):
        try:
            found = sorted(entry.name for entry in folder.iterdir())
        except FileNotFoundError:
            return Leftovers(())
        except NotADirectoryError:
            raise RefusedError(f"{printable(str(folder))} is a file, not a folder.") from None
    if not found:
        return Leftovers(())
    name = printable(str(folder))
    if names.INTENT not in found:
        raise RefusedError(f"{name} is not empty: empty it, or name another folder with --out.")
    ours = {names.MANIFEST, f"{names.MANIFEST}.partial", names.INTENT}
    for layout, codec in product(LAYOUTS, CODECS):
        ours.update(
            names.segment_file(plan.session, layout, segment.index, codec)
            for segment in plan.segments
        )
    if not ours.issuperset(found):
        raise RefusedError(
            f"{name} holds an unfinished split, but not only of this session: "
            "empty it, or name another folder with --out."
        )
    # The intent goes last, so that the folder stays recognisable until it is empty.
    return Leftovers((*(file for file in found if file != names.INTENT), names.INTENT))


def execute(
    plan: SplitPlan, source: Source, folder: Path, progress: Callable[[int], None]
) -> Manifest:
    """Write the segments of `plan` into `folder`, which `check_folder` has accepted.

    Returns the manifest that stands there when all is on the disk. `progress` is told how many
    bytes of the source are done. Raises InUseError if the source is not what was planned any
    more, StorageError if the disk is full or fails; either leaves an unfinished set, and the
    source as it was.
    """
    leftovers = check_folder(plan, folder)
    if plan.codec == "plain":
        _check_room(plan, folder, leftovers)
    with storage("write the segments"):
        fs.create_folder(folder)
        fs.remove_files(folder, leftovers.files)
        fs.create_file(folder / names.INTENT, _intent(plan))
        if _has_torn_end(plan, source):
            plan = _without_last_line(plan, source)
        sealed, whole = _Writer(plan, source, folder).write(progress)
        if _has_torn_end(plan, source):
            # Somebody went on with the last line while it was copied: once more, without it.
            fs.remove_files(folder, (_file_name(plan, segment) for segment in plan.segments))
            plan = _without_last_line(plan, source)
            sealed, whole = _Writer(plan, source, folder).write(progress)
        _check_source(plan, source)
        fs.sync_folder(folder)
        done = Manifest(
            session=plan.session,
            client=plan.client,
            layout=plan.layout,
            source_bytes=plan.source_bytes,
            source_digest=whole,
            segments=sealed,
        )
        fs.create_file_at_once(folder / names.MANIFEST, manifest.dump(done))
        fs.remove_files(folder, [names.INTENT])
    return done


@dataclass(frozen=True, slots=True)
class _Pending:
    """A segment that a worker brings to the disk, and the file that is open for it meanwhile."""

    segment: Segment
    file: fs.NewFile | None
    finished: Future[None]


class _Writer:
    """Writes the segments one after the other, and lets them reach the disk side by side."""

    def __init__(self, plan: SplitPlan, source: Source, folder: Path) -> None:
        self._plan = plan
        self._source = source
        self._folder = folder
        self._buffer = bytearray(BUFFER)
        self._whole = Fingerprint()

    def write(self, progress: Callable[[int], None]) -> tuple[tuple[SealedSegment, ...], str]:
        """Return the segments as written, and the digest of all of them together."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - a dry run needs none

        sealed: list[SealedSegment] = []
        waiting: deque[_Pending] = deque()
        parent_digest = ZERO
        with ThreadPoolExecutor(_WORKERS) as pool:
            try:
                for segment in self._plan.segments:
                    tally, finish, file = self._begin(segment, parent_digest)
                    waiting.append(_Pending(segment, file, pool.submit(finish)))
                    parent_digest = tally.digest
                    sealed.append(
                        SealedSegment(segment, tally.digest, tally.lines, self._plan.codec)
                    )
                    if len(waiting) > _AT_A_TIME:
                        self._await(waiting, progress)
                while waiting:
                    self._await(waiting, progress)
            finally:
                pool.shutdown(cancel_futures=True)
                for pending in waiting:
                    if pending.file is not None:
                        pending.file.close()
        return tuple(sealed), self._whole.digest

    def _await(self, waiting: deque[_Pending], progress: Callable[[int], None]) -> None:
        waiting[0].finished.result()
        progress(waiting.popleft().segment.span.end)

    def _begin(
        self, segment: Segment, parent_digest: str
    ) -> tuple[Tally, Callable[[], None], fs.NewFile | None]:
        """Fingerprint a segment; return that, what is left to do, and the file open for it.

        A plain segment is written while it is read, its header filled in when the digest is
        known. A compressed one cannot be changed afterwards, so it is read twice.
        """
        path = self._folder / _file_name(self._plan, segment)
        tally = Tally()
        if self._plan.codec == "zstd":
            with memoryview(self._buffer) as view:
                for size in self._read(segment, self._buffer):
                    tally.update(self._buffer, size)
                    self._whole.update(view[:size])
            head = self._header(segment, tally.digest, parent_digest)
            return tally, lambda: self._compress(path, segment, head, tally.digest), None
        file = fs.NewFile(path)
        try:
            file.append(self._header(segment, ZERO, parent_digest))
            with memoryview(self._buffer) as view:
                for size in self._read(segment, self._buffer):
                    tally.update(self._buffer, size)
                    self._whole.update(view[:size])
                    file.append(view[:size])
            file.fill_in(self._header(segment, tally.digest, parent_digest), 0)
        except BaseException:
            file.close()
            raise
        return tally, lambda: _sync_and_close(file), file

    def _compress(self, path: Path, segment: Segment, head: bytes, digest: str) -> None:
        from sessrotate import zstd  # noqa: PLC0415 - not needed by plain sets

        buffer, again = bytearray(BUFFER), Fingerprint()
        with fs.NewFile(path) as file, memoryview(buffer) as view:
            frame = zstd.compressor(len(head) + segment.span.size)
            file.append(frame.compress(head))
            for size in self._read(segment, buffer):
                again.update(view[:size])
                file.append(frame.compress(view[:size]))
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
        if segment.index == 0:
            return b""
        plan, parent = self._plan, segment.index - 1
        name = names.segment_file if plan.layout == "numbered" else names.segment_id
        return header.line(
            Header(
                layout=plan.layout,
                parent=name(plan.session, plan.layout, parent),
                root=plan.session,
                index=segment.index,
                timestamp=segment.boundary.timestamp if segment.boundary else None,
                start=segment.span.start,
                digest=digest,
                parent_digest=parent_digest,
                segments=len(plan.segments),
                source_bytes=plan.source_bytes,
            )
        )


def _sync_and_close(file: fs.NewFile) -> None:
    with file:
        file.sync()


def _file_name(plan: SplitPlan, segment: Segment) -> str:
    return names.segment_file(plan.session, plan.layout, segment.index, plan.codec)


def _intent(plan: SplitPlan) -> bytes:
    """Return what the intent of a split says; only people read it."""
    document = {
        "format": manifest.FORMAT,
        "operation": "split",
        "session": plan.session,
        "segments": len(plan.segments),
        "sourceBytes": plan.source_bytes,
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def _has_torn_end(plan: SplitPlan, source: Source) -> bool:
    """Tell whether the plan ends within a line that has been gone on with since."""
    if source.size() <= plan.source.size or not plan.source_bytes:
        return False
    return source.read_at(plan.source_bytes - 1, 1) != b"\n"


def _without_last_line(plan: SplitPlan, source: Source) -> SplitPlan:
    """Return the plan for the session up to the last newline that it had."""
    end = source.line_start(plan.source_bytes)
    boundaries = tuple(
        segment.boundary
        for segment in plan.segments
        if segment.boundary is not None and segment.boundary.offset < end
    )
    scanned = Scan(end, boundaries, plan.opaque_lines)
    return _planned(source, plan.source, scanned, plan.layout, plan.codec)


def _check_source(plan: SplitPlan, source: Source) -> None:
    """Raise InUseError unless the source is what was planned, or has only been appended to."""
    source.check_unreplaced()
    now = source.identity()
    if now.size <= plan.source.size and now != plan.source:
        raise InUseError("The session was changed while it was read; try again.")


def _check_room(plan: SplitPlan, folder: Path, leftovers: Leftovers) -> None:
    """Raise StorageError at once rather than fill a disk that cannot hold the segments."""
    room = fs.free_bytes(folder)
    if room is None or leftovers.files:  # what the leftovers free is not known exactly
        return
    if room < plan.source_bytes:
        raise StorageError(
            f"The segments need {plan.source_bytes:,} bytes and {room:,} are free where "
            f"{printable(str(folder))} is: nothing was written."
        )
