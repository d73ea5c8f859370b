"""A split: read and planned, then carried out.

Rule: the source is only read. The order of writes makes every crash recognisable: the intent is
on the disk before the first segment, all segments before the manifest, the manifest before the
intent goes. A set with an intent is unfinished, and the next split into its folder starts over.

A segment's header says what its body's digest is, so a plain one's is filled in when the body is
there, and a compressed one, which cannot be changed afterwards, is read twice. Copying one segment
goes on while the one before reaches the disk.
"""

from __future__ import annotations

import json
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from sessrotate import clients, fs, names, platforms
from sessrotate.clients.protocol import Client
from sessrotate.errors import InUseError, RefusedError, StorageError, printable, storage
from sessrotate.model import (
    CODECS,
    LAYOUTS,
    Boundary,
    Codec,
    Layout,
    SealedSegment,
    Segment,
    Span,
    SplitPlan,
)
from sessrotate.segments import headers, manifest, scan
from sessrotate.segments.manifest import Manifest
from sessrotate.system.digest import ZERO, Fingerprint, Tally
from sessrotate.units import amount

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sessrotate.system.source import Source


# ── writing ──────────────────────────────────────────────────────────────────────────────────


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
        plan = self._plan
        name = names.segment_file(plan.session, plan.layout, segment.index, plan.codec)
        path = self._folder / name
        if plan.codec == "zstd":
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
        return headers.of(
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


# ── a split ──────────────────────────────────────────────────────────────────────────────────


_MAX_INTENT: Final = 16 * 1024


def prepare(
    source: Source, progress: Callable[[int], None], *, layout: Layout, codec: Codec
) -> SplitPlan:
    """Read a session once and return the plan of its split; nothing is written.

    `progress` is told how many bytes are done. Raises NotASessionError if the file is no session
    of a known client, InUseError if it shrinks or is replaced meanwhile.
    """
    identity = source.identity()
    with storage("read the session"):
        # A compaction makes a session of anything, however torn its beginning is.
        client = clients.recognised(source) or clients.first()
        scanned = scan.scan(source, client, progress, identity.size)
        if not scanned.boundaries:
            clients.client_of(source)  # nobody's: raises
        parts = manifest.spans(scanned)
        segments = manifest.planned(parts, scan.times(source, client, parts))
        return SplitPlan(
            session=client.session_of(source.path.name),
            client=client.NAME,
            source=identity,
            segments=segments,
            opaque_lines=scanned.opaque_lines,
            layout=layout,
            codec=codec,
        )


def check_folder(plan: SplitPlan, folder: Path) -> tuple[str, ...]:
    """Return the files that a run of `plan` into `folder` would have to remove first.

    An interrupted split of the same session has left them; mostly there are none.

    Raises RefusedError if the folder holds anything but an unfinished split of this session.
    """
    name = printable(str(folder))
    with storage("look into the output folder"):
        try:
            entries = {entry.name: entry.lstat() for entry in folder.iterdir()}
        except FileNotFoundError:
            return ()
        except NotADirectoryError:
            raise RefusedError(f"{name} is a file, not a folder.") from None
    if not entries:
        return ()
    found = sorted(entries)
    if not _is_ours(plan, folder, entries):
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
    with storage("look into the output folder"), _alone(folder):
        pass
    # The intent goes last, so that the folder stays recognisable until it is empty.
    return (*(file for file in found if file != names.INTENT), names.INTENT)


def _is_ours(plan: SplitPlan, folder: Path, entries: Mapping[str, os.stat_result]) -> bool:
    """Tell whether a folder holds an unfinished split of this very session, and nothing else.

    Files of such a split are removed, so the session itself must not be among them, under
    whatever name, and a foreign file called like an intent gives no right to anything.
    """
    if names.INTENT not in entries or not all(stat.S_ISREG(e.st_mode) for e in entries.values()):
        return False
    if any(
        (e.st_dev, e.st_ino) == (plan.source.device, plan.source.inode) for e in entries.values()
    ):
        return False
    with storage("look into the output folder"), (folder / names.INTENT).open("rb") as file:
        intent = file.read(_MAX_INTENT)
    # An intent is on the disk before any segment, so one that a crash has torn stands alone.
    is_torn = len(entries) == 1 and _intent(plan).startswith(intent)
    try:
        return is_torn or json.loads(intent)["session"] == plan.session
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


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
        fs.remove_files(folder, leftovers)
        fs.create_file(folder / names.INTENT, _intent(plan))
        with _alone(folder):
            return _execute(plan, source, folder, progress)


def _execute(
    plan: SplitPlan, source: Source, folder: Path, progress: Callable[[int], None]
) -> Manifest:
    sealed, whole = write(plan, source, folder, progress)
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


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a folder's intent; raise InUseError if another process writes there."""
    try:
        with fs.held(folder / names.INTENT):
            yield
    except BlockingIOError:
        name = printable(str(folder))
        raise InUseError(f"Another split is writing to {name}: wait for it.") from None


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


def _check_source(plan: SplitPlan, source: Source) -> None:
    """Raise InUseError unless the source is what was planned, or has only got further lines."""
    source.check_unreplaced()
    now = source.identity()
    if now == plan.source:
        return
    client = clients.of_set(
        plan.client, lambda: source.read_at(0, min(clients.HEAD, source.size()))
    )
    # Nothing says that a format without boundaries is only ever appended to.
    if (
        now.size <= plan.source.size
        or not _ends_a_line(source, plan.source_bytes)
        or not client.MARKER
        or not all(_stands(source, client, segment.boundary) for segment in plan.segments[1:])
    ):
        raise InUseError("The session was changed while it was read; try again.")


def _ends_a_line(source: Source, end: int) -> bool:
    """Tell whether a client that appends begins a new line there."""
    return not end or source.read_at(end - 1, 1) == b"\n"


def _stands(source: Source, client: Client, boundary: Boundary | None) -> bool:
    """Tell whether a boundary still is where it was: growth may hide an edit before it."""
    if boundary is None:
        return False
    line = Span(boundary.offset, source.line_end(boundary.offset, source.size()))
    return client.boundary(source.pieces(line), line) == boundary


def _check_room(plan: SplitPlan, folder: Path, leftovers: tuple[str, ...]) -> None:
    """Raise StorageError at once rather than fill a disk that cannot hold the segments."""
    room = fs.free_bytes(folder)
    if room is None or leftovers:  # what the leftovers free is not known exactly
        return
    if room < plan.source_bytes:
        raise StorageError(
            f"The segments need {amount(plan.source_bytes, up=True)}, but {amount(room)} is free "
            f"where {printable(str(folder))} is: nothing was written."
        )
