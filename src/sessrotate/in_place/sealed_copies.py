"""Copying segments from the pack to compressed files of their own.

Rule: a segment is on the disk under its name, with the bytes that were planned, before the pack may
lose them. It was read back by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import fs, names
from sessrotate.errors import DamagedError
from sessrotate.fs import replacing
from sessrotate.fs.replacing import Replacement
from sessrotate.model import SealedSegment, Span
from sessrotate.segments import compressed, header
from sessrotate.segments.segment_set import SegmentSet
from sessrotate.system.digest import ZERO, Fingerprint

if TYPE_CHECKING:
    from sessrotate.archive.record import Intent
    from sessrotate.archive.state import State

BUFFER: Final = 256 * 1024

_BATCH: Final = 256 * 1024 * 1024
"""Bytes of segments that are copied before the pack loses them: each time all must be on the disk,
and the disk has nothing to do until the next are copied."""

_PLENTY: Final = 8 * _BATCH
"""Free bytes from which on batches may be larger than the largest segment."""


class Sealing(Struct, frozen=True):
    """One sealing: the session as it was found, its intent, and what the archive will be."""

    found: State
    begun: Intent
    segments: SegmentSet


def batches(pending: list[SealedSegment], room: int | None) -> Iterator[list[SealedSegment]]:
    """Yield the segments from the last to the first, as many at once as may be copied at once.

    On a disk that is almost full it is one segment: nobody knows the sizes before.
    """
    limit = _BATCH if room is not None and room > _PLENTY else 0
    yield from replacing.batches(pending[::-1], lambda entry: entry.segment.span.size, limit)


def name(found: State, entry: SealedSegment) -> str:
    """Return the name of a segment's file."""
    return names.sealed_file(found.place.session, entry.segment.index)


def copy(sealing: Sealing, batch: list[SealedSegment]) -> None:
    """Write segments from the pack; they are on the disk under their names when this returns."""

    def file(entry: SealedSegment) -> Replacement[SealedSegment]:
        path = sealing.found.place.archive / name(sealing.found, entry)
        draft = path.with_name(path.name + names.PARTIAL)
        return Replacement(draft, path, partial(_write, sealing, entry, draft.name))

    # What is under a segment's name counts: no other record has to say so.
    threads = compressed.workers(entry.segment.span.size for entry in batch)
    replacing.replace_files([file(entry) for entry in batch], threads=threads)


def _write(sealing: Sealing, entry: SealedSegment, file: str, draft: fs.Draft) -> SealedSegment:
    """Write a segment; raise DamagedError if the pack has not what was planned.

    It is read back before it is synced. What is read comes from memory in any case, and a write
    that the disk refuses is an error of the sync.
    """
    head = _header(sealing.begun, entry)
    frame = compressed.Frame(draft, len(head) + entry.segment.span.size)
    frame.append(head)
    span = sealing.begun.in_pack(entry.segment.span)
    if _copied(sealing.found, span, frame.append) != entry.digest:
        raise DamagedError(f"Segment {entry.segment.index} has changed in the {names.PACK}.")
    frame.finish()
    compressed.prove(sealing.segments, entry.segment.index, file)
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


def _copied(found: State, span: Span, append: Callable[[memoryview], None]) -> str:
    copied, buffer = Fingerprint(), bytearray(BUFFER)
    pack = found.pack
    with memoryview(buffer) as view:
        for start in range(span.start, span.end, BUFFER):
            size = min(BUFFER, span.end - start)
            if pack is not None:
                pack.fill(view[:size], start)
            copied.update(view[:size])
            append(view[:size])
    return copied.digest
