"""What a rotation gains the disk: measured around it, estimated before it.

Rule: bytes of the disk are allocated blocks, of the live file and of its whole archive. What is
moved from one to the other is no gain; that the archive is compressed is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import fs, names
from sessrotate.archive import place
from sessrotate.archive.place import Place
from sessrotate.clients.claude import client as claude
from sessrotate.clients.claude import trim
from sessrotate.in_place.room import NOTHING, Need
from sessrotate.model import SealedSegment, Span
from sessrotate.system import disk_use

if TYPE_CHECKING:
    from sessrotate.archive.state import State
    from sessrotate.in_place.put_together import Kept
    from sessrotate.in_place.rotate import RotationPlan

WORTH: Final = 1024 * 1024
"""Bytes of the disk that a rotation gains at least to be worth it, where nobody named a session."""

USUAL: Final = 0.25
"""Which part of its bytes history takes compressed: as sessions with real content do, pictures
among it (docs/internals/performance.md).
"""

_NEWEST: Final = 16
"""Segments that tell how small the next ones become."""

BLOCK: Final = 4096
"""Bytes by which usual file systems allocate; of a file, half of the last one is empty."""


ASIDE: Final = 8 * BLOCK
"""Bytes that notes, locks and manifests take meanwhile."""

_LISTED: Final = 450
"""Bytes of a segment's line in the manifest, about."""


class Forecast(Struct, frozen=True):
    """What a plan says of the disk, in bytes: what is moved or freed, and about what it gains.

    `need` is what has to be free before.
    """

    moved: int = 0
    gained: int = 0
    need: Need = NOTHING


class DiskUse(Struct, frozen=True):
    """How many bytes of the disk a session takes before and after; in a plan, `after` is told.

    `is_estimated`: it is a plan.
    """

    before: int
    after: int
    is_estimated: bool = False

    @property
    def gain(self) -> int:
        """How many bytes the disk has more afterwards; negative if it has fewer."""
        return self.before - self.after


def measured(where: Place) -> int:
    """Return how many bytes of the disk a session, its archive and what its client kept take."""
    kept = trim.replaced(where.live, where.session)
    return disk_use.of(where.live, where.archive, *kept)


def put_aside(planned: RotationPlan, where: Place) -> int:
    """Return how many bytes of the disk a rotation puts aside, which are not the session's then."""
    return disk_use.of(where.archive) if planned.puts_aside else 0


def measured_all() -> int:
    """Return how many bytes of the disk all sessions take, with what is beside, and archives."""
    return disk_use.of(claude.projects_folder(), place.root())


def expected(planned: RotationPlan, found: State) -> int:
    """Return about how many bytes a rotation of the session `found` will gain the disk.

    Nothing is gained where there is nothing to do.
    """
    if planned.live is None or found.live is None:
        return 0
    spans = [segment.span for segment in planned.to_seal]
    new = (
        0 if planned.archived or planned.taken else 2 * BLOCK
    )  # the archive's folder and its manifest
    # What the client left out as a hole is written out.
    live = disk_use.allocated(os.fstat(found.live.fd)) - blocks(planned.bytes_after)
    return live - _stored(_share(found.place, planned.archived), spans) - new


def needed(planned: RotationPlan, found: State) -> Need:
    """Return about what has to be free for a rotation, at once.

    First for the new live file. That costs nothing any more once the old one has lost its copy of
    the tail; then for one segment after the other, compressed, of which each frees its part.
    """
    what = "the new live file, or the next segment compressed"
    if found.live is None:
        return Need(planned.bytes_after, "the new live file")
    spans = [planned.in_live(segment.span) for segment in planned.to_seal]
    root = place.root()
    beside = _beside(planned, root)
    least = blocks(planned.bytes_after) + beside
    free = fs.free_bytes(root)
    most = max((span.size for span in spans), default=0) + BLOCK * len(spans)
    if not spans or free is None or free >= least + most:
        return Need(least, what)
    tail = blocks(found.live.size()) - blocks(spans[-1].end)
    sealing = _sealing(_share(found.place, planned.archived), spans)
    return Need(max(least, least - tail + sealing), what)


def _beside(planned: RotationPlan, root: Path) -> int:
    """Return how many bytes of the disk the record takes, and the folders that are not there yet.

    The record lists each segment. Where folders take no blocks (tmpfs, btrfs), the client's own
    does not either. `root` is that of all that is ours.
    """
    folders = [root, root / place.ARCHIVES, root / place.LOCKS]
    missing = sum(not os.path.lexists(folder) for folder in folders) + (not planned.archived)
    try:
        each = min(BLOCK, disk_use.allocated(root.parent.lstat()))
    except OSError:
        each = BLOCK
    listed = _LISTED * (len(planned.segments) + 1)
    return blocks(listed) + missing * each


def peak(steps: Iterable[tuple[int, int]]) -> int:
    """Return how many bytes have to be free for steps that each take some, and then free some."""
    most = gained = 0
    for takes, frees in steps:
        most = max(most, takes - gained)
        gained += frees - takes
    return most


def _sealing(share: float, spans: Sequence[Span]) -> int:
    """Return about how many bytes have to be free to seal these parts of a file, the last first."""
    return peak(
        (blocks(round(share * span.size)), blocks(span.end) - blocks(span.start))
        for span in reversed(spans)
    )


def of_finishing(found: State) -> Forecast:
    """Return about what the disk gains when an interrupted rotation is finished.

    What it replaced goes, and what of that is not sealed yet takes its place in the archive, one
    segment after the other. Where nothing was replaced, what was made for it goes;
    by a restoration, nothing is gained.
    """
    begun, pack = found.intent, found.pack
    if begun is None or found.deed == "undo":
        return Forecast(gained=_of_leftovers(found))
    if found.deed != "finish":
        return Forecast()
    rest = Need(ASIDE, "what is left to be done")
    if pack is None or begun.operation != "rotate":
        return Forecast(need=rest)
    new = begun.manifest.segments[begun.first :]
    spans = [
        begun.in_pack(each.segment.span) for each in new if each.segment.index not in found.sealed
    ]
    if not spans:
        return Forecast(gained=disk_use.of(found.place.pack), need=rest)
    share = _share(found.place, begun.manifest.segments[: begun.first])
    return Forecast(
        gained=disk_use.of(found.place.pack) - _stored(share, spans),
        need=Need(_sealing(share, spans) + ASIDE, "the next segment, compressed"),
    )


def _of_leftovers(found: State) -> int:
    """Return what files take that are there only while something is being done.

    The pack may be another name of the live file.
    """
    where = found.place
    files = [where.archive / name for name in found.listing if names.is_leftover(name)]
    return disk_use.of(where.live, *files) - disk_use.of(where.live)


def of_kept(kept: Kept) -> int:
    """Return about how many bytes the disk gains by a rotation, of what a client kept.

    Each of its files has most of the one before once more.
    """
    files = sum(disk_use.allocated(os.fstat(source.fd)) for source, _ in kept.parts)
    return files - sum(_stored(USUAL, [span]) for _, span in kept.parts)


def _stored(share: float, spans: Sequence[Span]) -> int:
    """Return about how many bytes of the disk these parts of a file take as segments."""
    stored = round(share * sum(span.size for span in spans))
    return max(stored + len(spans) * BLOCK // 2, len(spans) * BLOCK) + len(spans) * _LISTED


def _share(where: Place, archived: Sequence[SealedSegment]) -> float:
    """Return about which part of its bytes history takes once it is a segment.

    The newest segments of this archive tell, and the usual figure where it has less than 1 MiB.
    """
    newest = [each for each in archived if each.pruned is None][-_NEWEST:]
    size = sum(each.segment.span.size for each in newest)
    if size < WORTH:
        return USUAL
    sealed = (names.sealed_file(where.session, each.segment.index) for each in newest)
    return disk_use.of(*(where.archive / name for name in sealed)) / size


def blocks(size: int) -> int:
    """Return how many bytes of the disk a file of `size` bytes takes."""
    return -(-size // BLOCK) * BLOCK
