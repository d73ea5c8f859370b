"""`intent.json` of an archive: what is being done to a session, for anybody to finish. Pure.

Rule: it is on the disk before the live file is replaced and until nothing is left to do. What it
says is enough to decide, by content and position alone, whether the live file was replaced, and
to go on from wherever a crash came.
"""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from sessrotate import names
from sessrotate.errors import DamagedError
from sessrotate.model import Count, Digest, Span
from sessrotate.segments import manifest, one_line
from sessrotate.system.digest import Fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessrotate.segments.manifest import Manifest

Operation = Literal["rotate", "restore", "late", "insert"]

HEAD: Final = 4096
"""Most bytes of a file's beginning by which it is recognised."""

_MAX_LINE: Final = 4096

MAX_BYTES: Final = manifest.MAX_BYTES + _MAX_LINE

MAX_HEAD: Final = _MAX_LINE + manifest.MAX_LINE
"""Bytes at the beginning that name the project, of an intent or a manifest."""


class Mark(Struct, frozen=True):
    """A run of bytes, told by its length and digest."""

    size: Count
    digest: Digest

    @classmethod
    def of(cls, data: bytes) -> Mark:
        """Return the mark of these bytes."""
        return cls.of_pieces([data])

    @classmethod
    def of_pieces(cls, pieces: Iterable[bytes | memoryview]) -> Mark:
        """Return the mark of bytes that come in pieces, each valid until the next."""
        fingerprint, size = Fingerprint(), 0
        for piece in pieces:
            fingerprint.update(piece)
            size += len(piece)
        return cls(size, fingerprint.digest)


class Batch(Struct, frozen=True):
    """Late bytes of the pack that are being appended to a live file of at least `floor` bytes."""

    span: Span
    floor: Count


class Late(Struct, frozen=True):
    """Late lines that are kept in a file of their own, until they are put in their place.

    That is at offset `at` of the live file, behind the bytes of `edge`. `mark` tells their bytes;
    `end` is how large the pack was when they were copied from it, 0 when that is settled.
    """

    at: Count
    mark: Mark
    edge: Mark
    end: Count = 0


class Swap(Struct, frozen=True):
    """The replacement of a live file by another with the same tail.

    `old` and `new` are how either file begins, which is how they are told apart; of an insertion,
    `new` is what the new file has at `cut`. The tail begins at `cut` in the old file and at
    `prefix` in the new one; `tail` is what of it the new file had when it took the old one's
    place. `batch` is the last of the bytes that came late.
    """

    old: Mark
    new: Mark
    cut: Count
    prefix: Count
    tail: Mark
    batch: Batch | None = None


NO_SWAP: Final = Swap(Mark.of(b""), Mark.of(b""), 0, 0, Mark.of(b""))
"""Of an intent that no swap belongs to."""


class _Line(Struct, frozen=True):
    """What an intent's first line says: all but the manifest."""

    operation: Operation
    swap: Swap
    first: Count
    late: Late | None


class Intent(Struct, frozen=True):
    """One rotation or restoration, or what is left of it: the insertion of late lines.

    A rotation seals the segments of `manifest` from number `first` on, which are in the pack
    until then, or none if it only brings rows back, or what its client trimmed; `manifest` is what
    the archive's will be, and has no segments where there is to be none. A restoration takes
    nothing from the archive of `manifest`. Behind either, `late` lines may be left; "late" says
    that nothing else is, and "insert" that a live file with them is to take the place of the one
    without.
    """

    operation: Operation
    swap: Swap
    first: int
    manifest: Manifest
    late: Late | None = None

    @property
    def moves_nothing(self) -> bool:
        """Whether nothing of the history goes to the archive, or comes from it."""
        return self.operation != "restore" and self.first == len(self.manifest.segments)

    @property
    def listed(self) -> Manifest | None:
        """What the archive's manifest is, or will be; None where there is to be no archive."""
        return self.manifest if self.manifest.segments else None

    @property
    def finished_by(self) -> str:
        """The command that finishes it, or undoes it."""
        return "restore" if self.operation == "restore" else "rotate"

    @property
    def start(self) -> int:
        """Where in the history, in bytes, the old live file's body began."""
        segments = self.manifest.segments
        if self.first < len(segments):
            return segments[self.first].segment.span.start
        return self.manifest.source_bytes

    def in_pack(self, span: Span) -> Span:
        """Return where in the pack a part of the history stands that was not archived before."""
        shift = self.swap.cut - self.manifest.source_bytes
        return Span(span.start + shift, span.end + shift)


def dump(intent: Intent) -> bytes:
    """Return the intent as the bytes of its file: a line of its own, then the manifest."""
    line = _Line(intent.operation, intent.swap, intent.first, intent.late)
    return one_line.dump(line) + manifest.dump(intent.manifest)


def parse(data: bytes) -> Intent:
    """Return the intent that these bytes are; raise DamagedError if they are none of ours."""
    first = BytesIO(data).readline(_MAX_LINE)
    line = one_line.parse(first, _Line)
    with suppress(DamagedError):
        listed = manifest.parse(data[len(first) :], may_be_empty=True)
        if line is not None:
            intent = Intent(line.operation, line.swap, line.first, listed, line.late)
            if _is_sound(intent):
                return intent
    raise DamagedError(f"The {names.INTENT} of the archive is damaged.")


def project_of(data: bytes) -> str:
    """Return which project an intent that begins so names; raise DamagedError if it names none."""
    return manifest.project_of(data.partition(b"\n")[2])


def _is_sound(intent: Intent) -> bool:
    swap, late = intent.swap, intent.late
    is_batch = swap.batch is None or swap.batch.span.size > 0
    is_late = late is None or (late.mark.size > 0 and late.edge.size == min(HEAD, late.at))
    if not (is_batch and is_late) or intent.first > len(intent.manifest.segments):
        return False
    is_kept = late is None or late.end > 0
    moved = intent.manifest.source_bytes - intent.start
    if intent.operation == "rotate":
        # One that seals nothing gives the tail another prefix, and that must be told apart.
        does = moved > 0 or (not moved and swap.cut > 0 and swap.old != swap.new)
        return is_kept and does and swap.cut >= moved
    if intent.operation == "restore":
        is_whole = moved == 0 and swap.prefix == intent.manifest.source_bytes
        return is_kept and is_whole
    if late is None or moved:
        return False
    if intent.operation == "late":
        return swap == NO_SWAP and not late.end
    is_ours = is_kept or (late.at, late.mark) == (swap.cut, swap.new)
    return is_ours and swap.new.size == swap.prefix - swap.cut > 0
