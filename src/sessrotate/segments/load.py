"""A folder of segments → what it must hold, and what is wrong with it.

Rule: the manifest says what a complete set is; if it is lost, the headers do (`header_chain`).
Names, numbers and digests from either are compared with the folder's own listing, and a name that
was read from a file is never opened. Only reads.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from sessrotate import names
from sessrotate.clients.common import names_in
from sessrotate.errors import DamagedError, RefusedError, StorageError, printable, storage
from sessrotate.segments import (
    READ,
    Problem,
    SegmentFile,
    SegmentSet,
    compressed,
    cuts,
    header_chain,
    headers,
    manifest,
    missing,
    opened,
    pruned,
)
from sessrotate.segments.header_chain import Folder
from sessrotate.system.digest import ZERO


def load(folder: Path, file: str | None = None) -> SegmentSet:
    """Return the set in `folder`, or the one that `file` in it belongs to.

    Raises NotASessionError if there is none, WrongUsageError if there are several and no `file`
    tells which, DamagedError if the manifest is unreadable, StorageError as the system reports.
    """
    return _load(Folder(folder), file)


def _load(folder: Folder, file: str | None) -> SegmentSet:
    if folder.is_unfinished:
        # Whatever else is there may be half of it, and the session itself is still whole.
        problem = Problem(
            "unfinished", "The folder holds an unfinished split: split the session again."
        )
        return SegmentSet(folder.path, "", (), 0, None, (problem,))
    if names.MANIFEST in folder.names:
        listed = _manifest(folder.path)
        if file is None or _belongs(listed, file):
            return of_manifest(folder.path, folder.names, listed)
    return header_chain.from_headers(folder, file)


def find(path: Path, folder: Folder | None = None) -> SegmentSet | None:
    """Return the set that a folder, or a file in one, stands for; None for a file of no set.

    `folder` is the one that a file is in, if somebody has looked at that. Raises as `load` does,
    and as opening a session does if `path` is no file.
    """
    with storage("look at the source"):
        is_folder = path.is_dir()
    if is_folder:
        return load(path)
    with compressed.plain(path):
        folder = Folder(path.parent) if folder is None else folder
        return _load(folder, path.name) if is_segment(folder, path.name) else None


def is_segment(folder: Folder, file: str) -> bool:
    """Tell whether a file is part of a set, rather than a session that was never split.

    In doubt it is: a damaged segment must never pass for a whole session.
    """
    if not file.endswith(names.SUFFIXES):
        return False
    if folder.is_unfinished:
        return True
    if file.endswith(names.CODEC_SUFFIX["zstd"]):
        return not compressed.is_session(file)
    if names.MANIFEST in folder.names:
        # Any other program may have a file of that name: then it says nothing.
        with suppress(DamagedError, RefusedError):
            if _belongs(_manifest(folder.path), file):
                return True
    if file in folder.lines:
        return True
    return not folder.roots.isdisjoint(names.possible_sessions(file))


def read_small(folder: Path, file: str, limit: int) -> bytes:
    """Return what a file of the folder holds, if that is at most `limit` bytes.

    Raises DamagedError with a sentence that names the file if it cannot be opened, or is larger;
    StorageError if the disk fails: the file may be whole.
    """
    data = bytearray()
    try:
        with opened(folder, file) as stream, storage("read the archive"):
            while (piece := stream.read(READ)) and len(data) <= limit:
                data += piece
    except DamagedError as error:
        reason = error.__cause__
        if isinstance(reason, OSError) and reason.errno == errno.EIO:
            shown = printable(str(folder / file))
            raise StorageError(f"{shown} cannot be read: {reason.strerror}.") from None
        raise DamagedError(f"The {file} is damaged: {error}.") from None
    if len(data) > limit:
        raise DamagedError(f"The {file} is too large to be sessrotate's.")
    return bytes(data)


def _manifest(folder: Path) -> manifest.Manifest:
    return manifest.parse(read_small(folder, names.MANIFEST, manifest.MAX_BYTES))


def _belongs(listed: manifest.Manifest, file: str) -> bool:
    plain = file.removesuffix(names.CODEC_SUFFIX["zstd"])
    return any(
        names.segment_file(listed.session, listed.layout, sealed.segment.index) == plain
        for sealed in listed.segments
    )


def of_manifest(folder: Path, listing: frozenset[str], listed: manifest.Manifest) -> SegmentSet:
    """Return the set that a manifest describes, in a folder that holds these files."""
    parts: list[SegmentFile] = []
    parent = ZERO
    grows = listed.source_digest is None
    trashed = frozenset(names_in(folder / names.TRASH))
    for sealed in listed.segments:
        segment = sealed.segment
        name = listed.file_of(sealed)
        head = headers.of(
            segment,
            session=listed.session,
            layout=listed.layout,
            digest=sealed.digest,
            parent_digest=parent,
            segments=None if grows else len(listed.segments),
            source_bytes=None if grows else listed.source_bytes,
        )
        parts.append(
            SegmentFile(
                index=segment.index,
                name=name,
                file=None if sealed.pruned is not None else _file(listing, trashed, name),
                codec=sealed.codec,
                size=segment.span.size,
                head=head,
                digest=sealed.digest,
                lines=sealed.lines,
                segment=segment,
                pruned=sealed.pruned,
            )
        )
        parent = sealed.digest
    return SegmentSet(
        folder,
        listed.session,
        tuple(parts),
        listed.source_bytes,
        listed.source_digest,
        (
            *missing(parts),
            *pruned(folder, listed.session, parts),
            *cuts([part.segment for part in parts if part.segment is not None]),
            *_leftovers(listed, listing, parts),
        ),
        listed.client,
    )


def _file(listing: frozenset[str], trashed: Collection[str], name: str) -> str | None:
    """Return where a segment is, None if it is gone: in the trash if a restoration was interrupted.

    The manifest has it without a tombstone by then, so it counts as there.
    """
    if name in listing:
        return name
    return f"{names.TRASH}/{name}" if name in trashed else None


def _leftovers(
    listed: manifest.Manifest, listing: frozenset[str], parts: list[SegmentFile]
) -> Iterator[Problem]:
    """Yield what has the name of a segment of this session and is none."""
    known = {part.name for part in parts}
    for file in sorted(listing - known):
        if file.endswith(names.SUFFIXES) and listed.session in names.possible_sessions(file):
            yield Problem("leftover", f"{printable(file)} is not part of the set.")
