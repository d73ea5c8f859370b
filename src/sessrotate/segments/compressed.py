"""What is compressed: a segment's file, read back before anybody goes by it; or a whole session.

Promise: a `Frame` takes a segment's plain bytes and fills a draft; `prove` raises unless what was
written is, decompressed, what the set says of that segment; `sealed` gives any bytes of it, by
offset.

Rule: the plain bytes go only after `prove`. Small segments are compressed side by side, `workers`
at a time; a large one has all cores to itself, so that memory stays the same. What is decompressed
to be read has no name, or only for an instant where the system needs one to make a file.

A session that is in no file as it is, since its client compressed it or its parts are in an
archive, is open like any other: any bytes of it, by offset. It is only read. What it comes to
stands in a file without a name, which is gone when it is closed, by whatever.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from sessrotate import clients, fs, names
from sessrotate.errors import (
    DamagedError,
    InUseError,
    StorageError,
    printable,
    storage,
)
from sessrotate.model import FileIdentity, SealedSegment, Span
from sessrotate.segments import SegmentSet, body, content
from sessrotate.system import inside
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source

_LARGE: Final = 16 * 1024 * 1024
"""Bytes from which on one segment occupies all cores by itself."""

_MOST: Final = 2
"""Small segments at a time; each takes 12 MiB or more, with what its thread keeps."""

_CORES: Final = 2
"""Cores that a large segment occupies; each takes about 3 MiB."""


def workers(sizes: Iterable[int]) -> int:
    """Return how many segments are best compressed at a time, if they have so many bytes."""
    return 1 if any(size >= _LARGE for size in sizes) else min(os.cpu_count() or 1, _MOST)


class Frame:
    """A draft that is given plain bytes, `size` of them, and has them compressed."""

    def __init__(self, draft: fs.Draft, size: int) -> None:
        from sessrotate.system import zstd  # noqa: PLC0415 - not needed where nothing is sealed

        self._draft: Final = draft
        threads = min(os.cpu_count() or 1, _CORES) if size >= _LARGE else 0
        self._frame: Final = zstd.compressor(size, threads)

    def append(self, data: bytes | memoryview) -> None:
        """Compress all of `data`."""
        self._draft.append(self._frame.compress(data))

    def finish(self) -> None:
        """Write what is left; nothing can be appended any more."""
        self._draft.append(self._frame.flush())


def prove(segments: SegmentSet, index: int, file: str) -> None:
    """Read a compressed segment back from `file`; raise StorageError if it has changed."""
    part = replace(segments.parts[index], file=file, codec="zstd")
    try:
        for _ in body(segments, part):
            pass
    except DamagedError:
        raise StorageError(
            f"{printable(file)} does not read back as it was written: the disk is failing."
        ) from None


def file_of(session: str, entry: SealedSegment) -> str:
    """Return where a segment of a session's archive is, seen from the archive; be it the trash."""
    file = names.segment_file(session, "numbered", entry.segment.index, entry.codec)
    return file if entry.pruned is None else f"{names.TRASH}/{file}"


@contextmanager
def sealed(folder: Path, session: str, entry: SealedSegment) -> Iterator[Source | None]:
    """Open a segment of a session's archive; None where it is not there, or is damaged.

    Raises OSError if there is no room for what it is decompressed to.
    """
    file = file_of(session, entry)
    try:
        fd = inside.opened(folder, file)
    except (DamagedError, FileNotFoundError):
        fd = None
    if fd is None:
        yield None
    elif entry.codec == "plain":
        with Source(folder / file, fd) as source:
            yield source if _is_whole(source, entry) else None
    else:
        scratch = _decompressed(fd, folder)
        if scratch is None:
            yield None
            return
        with Source(folder / file, scratch) as source:
            yield source if _is_whole(source, entry) else None


def _is_whole(source: Source, entry: SealedSegment) -> bool:
    """Tell whether what stands behind a segment's header is what was sealed."""
    size, found = source.size(), Fingerprint()
    if size < entry.segment.span.size:
        return False
    for piece in source.pieces(Span(size - entry.segment.span.size, size)):
        found.update(piece)
    return found.digest == entry.digest


def _decompressed(fd: int, folder: Path) -> int | None:
    """Return an open file without a name of what a compressed one holds; None if it is damaged."""
    with FileIO(fd, "rb") as stream, suppress(DamagedError):
        pieces = (memoryview(data)[:size] for data, size in content(stream, "zstd"))
        return fs.scratch(folder, pieces)
    return None


# ── a whole session ───────────────────────────────────────────────────────────────────────────────

_SUFFIX: Final = names.CODEC_SUFFIX["zstd"]


def is_session(file_name: str) -> bool:
    """Tell whether a file of this name is a session that its client compressed, and no segment.

    Segments are called by a session's id; a client that compresses has names of its own (Codex
    from 0.169 on: `rollout-<time>-<uuid>.jsonl.zst`).
    """
    return file_name.endswith(_SUFFIX) and any(
        client.session_of(file_name) != names.session_of(file_name) for client in clients.clients()
    )


def opened_session(path: Path) -> Source:
    """Open a session file, compressed or not. Raises as `plain` does.

    Raises DamagedError if it cannot be decompressed, StorageError if there is no room for that.
    """
    return CompressedSession(path) if is_session(path.name) else plain(path)


def plain(path: Path) -> Source:
    """Open a session file as it is.

    Raises as `Source` does; RefusedError if it is a link among a client's sessions, where no
    client puts one. Elsewhere, a person who names a link means what it leads to.
    """
    if path.is_symlink() and not clients.keep(path):
        return Source(path)
    return Source.itself(path)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Say which file it is that cannot be decompressed."""
    try:
        yield
    except DamagedError as error:
        told = f"{printable(str(path))} cannot be read: {error}: put it back from a backup"
        raise DamagedError(told) from None


class CompressedSession(Source):
    """A compressed session: it reads as what is in it."""

    def __init__(self, path: Path) -> None:
        with plain(path) as source:
            super().__init__(path, os.dup(source.fd))
        self._compressed = self._fd
        self._was = super().identity()
        with ExitStack() as failed:
            failed.callback(os.close, self._compressed)
            with (
                FileIO(self._compressed, "rb", closefd=False) as stream,
                storage("decompress the session"),
                named(path),
            ):
                pieces = (memoryview(data)[:size] for data, size in content(stream, "zstd"))
                self._fd = fs.scratch(path.parent, pieces)
            failed.pop_all()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        os.close(self._compressed)

    def identity(self) -> FileIdentity:
        """Return which file this is; its size is that of what is in it."""
        return replace(self._was, size=os.fstat(self._fd).st_size)

    def check_unreplaced(self) -> None:
        """Raise InUseError unless the file is what it was when it was opened."""
        super().check_unreplaced()
        if os.fstat(self._compressed).st_mtime_ns != self._was.modified_ns:
            raise InUseError("The session file was changed while it was read; try again.")


class ComposedSession(Source):
    """A session that is put together from its parts, under the name of its live file."""

    def __init__(self, path: Path, pieces: Iterable[memoryview], folder: Path) -> None:
        """Write the pieces to a file without a name in `folder`.

        Raises what `pieces` does, and StorageError if there is no room.
        """
        with ExitStack() as failed:
            with storage("put the session together"):
                fd = fs.scratch(folder, pieces)
            failed.callback(os.close, fd)
            super().__init__(path, fd)
            failed.pop_all()

    def check_unreplaced(self) -> None:
        """Do nothing: nobody else has what was put together."""
