"""A session that is in no file as it is, open like any other: any bytes of it, by offset.

Its client compressed it, or its parts are in an archive.

Rule: it is only read. What it comes to stands in a file without a name, which is gone when it is
closed, by whatever.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from sessrotate import clients, fs, names
from sessrotate.errors import DamagedError, InUseError, RefusedError, printable, storage
from sessrotate.model import FileIdentity
from sessrotate.segments.segment_set import content
from sessrotate.system.source import Source

_SUFFIX: Final = names.CODEC_SUFFIX["zstd"]


def is_session(file_name: str) -> bool:
    """Tell whether a file of this name is a session that its client compressed, and no segment.

    Segments are called by a session's id; a client that compresses has names of its own (Codex
    from 0.169 on: `rollout-<time>-<uuid>.jsonl.zst`).
    """
    return file_name.endswith(_SUFFIX) and any(
        client.session_of(file_name) != names.session_of(file_name) for client in clients.clients()
    )


def opened(path: Path) -> Source:
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
    except (DamagedError, RefusedError) as error:
        then = ": put it back from a backup" if isinstance(error, DamagedError) else ""
        raise type(error)(f"{printable(str(path))} cannot be read: {error}{then}") from None


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
