"""What a rotation gains the disk: measured around it, estimated before it.

Rule: bytes of the disk are allocated blocks, of the live file and of its whole archive. What is
moved from one to the other is no gain; that the archive is compressed is.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import clients, fs, names
from sessrotate.archive import place
from sessrotate.clients.common import is_link, listed, real
from sessrotate.in_place import obstacles
from sessrotate.in_place.obstacles import NOTHING, Need
from sessrotate.model import Span
from sessrotate.system import disk_use

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.archive.state import State
    from sessrotate.in_place.rotate import RotationPlan
    from sessrotate.system.source import Source

WORTH: Final = 1024 * 1024
"""Bytes of the disk that a rotation gains at least to be worth it, where nobody named a session."""

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
    kept = where.client.trims.replaced(where.live, where.session)
    return disk_use.of(where.live, where.archive, *kept)


def put_aside(planned: RotationPlan, where: Place) -> int:
    """Return how many bytes of the disk a rotation puts aside, which are not the session's then."""
    return disk_use.of(where.archive) if planned.puts_aside else 0


def measured_all() -> int:
    """Return how many bytes of the disk all sessions take, with what is beside, and archives.

    Of a project whose folder is a link, that is the sessions and their folders: whatever else is
    where it leads is no client's.
    """
    files = clients.in_place().files
    projects = real(files.projects_folder())
    linked = {each.name for each in listed(projects) if is_link(each)}
    lives = (path for path in files.sessions() if path.parent.name in linked) if linked else ()
    beside = (each for live in lives for each in (live, live.with_suffix("")))
    return disk_use.of(projects, place.root(), *beside)


def expected(planned: RotationPlan, source: Source | None) -> int:
    """Return about how many bytes a rotation of the live file `source` will gain the disk.

    Reads samples of what goes to the archive. Nothing is gained where there is nothing to do.
    """
    if planned.live is None or source is None:
        return 0
    spans = [planned.in_live(segment.span) for segment in planned.to_seal]
    new = (
        0 if planned.archived or planned.taken else 2 * BLOCK
    )  # the archive's folder and its manifest
    # What the client left out as a hole is written out.
    live = disk_use.allocated(os.fstat(source.fd)) - blocks(planned.bytes_after)
    return live - _stored(source, spans) - new


def needed(planned: RotationPlan, source: Source) -> Need:
    """Return about what has to be free for a rotation: the old live file goes only in the end.

    Reads samples of what goes to the archive, unless there is room for all of it as it is.
    """
    what = "the segments, compressed, and the new live file"
    spans = [planned.in_live(segment.span) for segment in planned.to_seal]
    root = place.root()
    is_looked_after = any(span.size > obstacles.STEP for span in spans)
    least = blocks(planned.bytes_after) + _beside(planned, root) + is_looked_after * obstacles.STEP
    free, most = fs.free_bytes(root), sum(blocks(span.size) + _LISTED for span in spans)
    if not spans or free is None or free >= least + most:
        return Need(least + most, what)
    return Need(least + blocks(_stored(source, spans)), what)


def _beside(planned: RotationPlan, root: Path) -> int:
    """Return how many bytes of the disk notes take, and the folders that are not there yet.

    The new manifest lists the segments that are archived already, too. Where folders take no
    blocks (tmpfs, btrfs), the client's own does not either. `root` is that of all that is ours.
    """
    folders = [root, root / place.ARCHIVES, root / place.LOCKS]
    missing = sum(not os.path.lexists(folder) for folder in folders) + (not planned.archived)
    try:
        each = min(BLOCK, disk_use.allocated(root.parent.lstat()))
    except OSError:
        each = BLOCK
    return BLOCK + blocks(_LISTED * len(planned.archived)) + missing * each


def peak(steps: Iterable[tuple[int, int]]) -> int:
    """Return how many bytes have to be free for steps that each take some, and then free some."""
    most = gained = 0
    for takes, frees in steps:
        most = max(most, takes - gained)
        gained += frees - takes
    return most


def of_finishing(found: State) -> Forecast:
    """Return about what the disk gains when an interrupted rotation is finished.

    What it replaced goes. Where nothing was replaced, what was made for it goes; by a restoration,
    nothing is gained.
    """
    begun = found.intent
    if begun is None or found.deed == "undo":
        return Forecast(gained=_of_leftovers(found))
    if found.deed != "finish":
        return Forecast()
    gained = disk_use.of(found.place.pack) if begun.operation == "rotate" else 0
    return Forecast(gained=gained, need=Need(ASIDE, "what is left to be done"))


def _of_leftovers(found: State) -> int:
    """Return what files take that are there only while something is being done.

    The pack may be another name of the live file.
    """
    where, copies = (
        found.place,
        () if found.intent is None else found.intent.files(found.place.session),
    )
    made = [each for each in found.listing if names.is_leftover(each) or each in copies]
    files = [where.archive / name for name in made]
    return disk_use.of(where.live, *files) - disk_use.of(where.live)


def of_kept(parts: Sequence[tuple[Source, Span]]) -> int:
    """Return about how many bytes the disk gains by a rotation, of the files that a client kept.

    Each of them has most of the one before once more; `parts` are what it has alone. Reads samples.
    """
    files = sum(disk_use.allocated(os.fstat(source.fd)) for source, _ in parts)
    return files - sum(_stored(source, [span]) for source, span in parts)


def _stored(source: Source, spans: Sequence[Span]) -> int:
    """Return about how many bytes of the disk these parts of a file take as segments."""
    stored = estimated(source, spans)
    return max(stored + len(spans) * BLOCK // 2, len(spans) * BLOCK) + len(spans) * _LISTED


def blocks(size: int) -> int:
    """Return how many bytes of the disk a file of `size` bytes takes."""
    return -(-size // BLOCK) * BLOCK


# ── how small parts of a session become, told from samples ──────────────────────────────────────

_MOST: Final = 32 * 1024 * 1024
"""Bytes that are read and compressed at most, about, however large the parts are."""

_PIECE: Final = 8 * 1024 * 1024

_LITTLE: Final = 1024 * 1024
"""Bytes below which the figure may be rough: nobody decides anything by it."""

_SAMPLE: Final = 32 * 1024


def estimated(source: Source, spans: Sequence[Span]) -> int:
    """Return about how many bytes these parts of `source` have compressed, each by itself.

    Samples are whole parts, or long pieces of them, because pictures and files stand twice not far
    from each other: short samples would not show that.
    """
    total = sum(span.size for span in spans)
    if total < _LITTLE:
        pieces = [Span(span.start, min(span.end, span.start + _SAMPLE)) for span in spans[-1:]]
    elif total <= _MOST:
        pieces = [*spans]
    else:
        pieces = _spread(spans, total)
    taken = sum(piece.size for piece in pieces)
    return round(total * sum(_made(source, piece) for piece in pieces) / taken) if taken else 0


def _spread(spans: Sequence[Span], total: int) -> list[Span]:
    """Return pieces of `_MOST` bytes together, spread evenly over all parts."""
    chosen, taken, passed = list[Span](), 0, 0
    for span in spans:
        for start in range(span.start, span.end, _PIECE):
            piece = Span(start, min(span.end, start + _PIECE))
            passed += piece.size
            if (passed - piece.size / 2) * _MOST >= taken * total:
                chosen.append(piece)
                taken += piece.size
    return chosen


def _made(source: Source, span: Span) -> int:
    from sessrotate.system import zstd  # noqa: PLC0415 - wanted only here

    frame = zstd.compressor(span.size)
    made = sum(len(frame.compress(data)) for data in source.pieces(span))
    return made + len(frame.flush())
