"""Copying segments from the pack to files of their own.

Rule: a segment is on the disk under its name, with the bytes that were planned, before the pack may
lose them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from sessrotate import fs, names
from sessrotate.errors import DamagedError
from sessrotate.fs import replacing
from sessrotate.fs.replacing import Replacement
from sessrotate.segments import header
from sessrotate.system.digest import ZERO, Fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.archive.intent import Intent
    from sessrotate.archive.state import State
    from sessrotate.model import SealedSegment, Span

BUFFER: Final = 256 * 1024

_BATCH: Final = 256 * 1024 * 1024
"""Bytes of segments that are copied before the pack loses them: each time all must be on the disk,
and the disk has nothing to do until the next are copied."""

_PLENTY: Final = 8 * _BATCH
"""Free bytes from which on batches may be larger than the largest segment."""


def batches(pending: list[SealedSegment], room: int | None) -> Iterator[list[SealedSegment]]:
    """Yield the segments from the last to the first, as many at once as may be copied at once.

    The first segment of a session is alone, since it needs no copy. On a disk that is almost full
    a batch is no larger than the largest segment.
    """
    largest = max((entry.segment.span.size for entry in pending), default=0)
    limit = max(largest, _BATCH if room is not None and room > _PLENTY else 0)
    copied = [entry for entry in reversed(pending) if entry.segment.index]
    yield from replacing.batches(copied, lambda entry: entry.segment.span.size, limit)
    yield from ([entry] for entry in pending if not entry.segment.index)


def name(found: State, entry: SealedSegment) -> str:
    """Return the name of a segment's file."""
    return names.segment_file(found.place.session, "numbered", entry.segment.index)


def copy(found: State, begun: Intent, batch: list[SealedSegment]) -> None:
    """Write segments from the pack; they are on the disk under their names when this returns."""

    def file(entry: SealedSegment) -> Replacement[SealedSegment]:
        path = found.place.archive / name(found, entry)
        draft = path.with_name(path.name + names.PARTIAL)
        return Replacement(draft, path, partial(_write, found, begun, entry))

    # What is under a segment's name counts: no other record has to say so.
    replacing.replace_files([file(entry) for entry in batch])


def _write(found: State, begun: Intent, entry: SealedSegment, draft: fs.Draft) -> SealedSegment:
    """Write a segment; raise DamagedError if the pack has not what was planned."""
    draft.append(_header(begun, entry))
    if _copied(found, begun.in_pack(entry.segment.span), draft) != entry.digest:
        raise changed(entry)
    return entry


def _header(begun: Intent, entry: SealedSegment) -> bytes:
    index = entry.segment.index
    return header.of(
        entry.segment,
        session=begun.manifest.session,
        layout="numbered",
        digest=entry.digest,
        parent_digest=begun.manifest.segments[index - 1].digest if index else ZERO,
        segments=None,
        source_bytes=None,
    )


def _copied(found: State, span: Span, file: fs.NewFile) -> str:
    copied, buffer = Fingerprint(), bytearray(BUFFER)
    pack = found.pack
    with memoryview(buffer) as view:
        for start in range(span.start, span.end, BUFFER):
            size = min(BUFFER, span.end - start)
            if pack is not None:
                pack.fill(view[:size], start)
            copied.update(view[:size])
            file.append(view[:size])
    return copied.digest


def changed(entry: SealedSegment) -> DamagedError:
    """Return the error that a segment is not what was planned."""
    return DamagedError(f"Segment {entry.segment.index} has changed in the {names.PACK}.")
