"""`intent.json` of an archive: what is being done to a session, for anybody to finish. Pure.

Rule: it is on the disk before the live file is replaced and until nothing is left to do. What it
says is enough to decide, by content and position alone, whether the live file was replaced, and
to go on from wherever a crash came.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from sessrotate import names
from sessrotate.errors import DamagedError
from sessrotate.model import Span
from sessrotate.segments import manifest
from sessrotate.segments.header import is_count
from sessrotate.system.digest import Fingerprint, is_digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessrotate.segments.manifest import Manifest

FORMAT: Final = 1

Operation = Literal["rotate", "restore", "late", "insert"]

OPERATIONS: Final[tuple[Operation, ...]] = ("rotate", "restore", "late", "insert")

HEAD: Final = 4096
"""Most bytes of a file's beginning by which it is recognised."""

_MAX_LINE: Final = 4096

MAX_BYTES: Final = manifest.MAX_BYTES + _MAX_LINE

MAX_HEAD: Final = _MAX_LINE + manifest.MAX_LINE
"""Bytes at the beginning that name the project, of an intent or a manifest."""


class Mark(Struct, frozen=True):
    """A run of bytes, told by its length and digest."""

    size: int
    digest: str

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
    floor: int


class Late(Struct, frozen=True):
    """Late lines that are kept in a file of their own, until they are put in their place.

    That is at offset `at` of the live file, behind the bytes of `edge`. `mark` tells their bytes;
    `end` is how large the pack was when they were copied from it, 0 when that is settled.
    """

    at: int
    mark: Mark
    edge: Mark
    end: int = 0


class Swap(Struct, frozen=True):
    """The replacement of a live file by another with the same tail.

    `old` and `new` are how either file begins, which is how they are told apart; of an insertion,
    `new` is what the new file has at `cut`. The tail begins at `cut` in the old file and at
    `prefix` in the new one; `tail` is what of it the new file had when it took the old one's
    place. `batch` is the last of the bytes that came late.
    """

    old: Mark
    new: Mark
    cut: int
    prefix: int
    tail: Mark
    batch: Batch | None = None


NO_SWAP: Final = Swap(Mark.of(b""), Mark.of(b""), 0, 0, Mark.of(b""))
"""Of an intent that no swap belongs to."""


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
    return _line(intent) + manifest.dump(intent.manifest)


def _line(intent: Intent) -> bytes:
    swap, batch, late = intent.swap, intent.swap.batch, intent.late
    marks = {"old": swap.old, "new": swap.new, "tail": swap.tail}
    fields = {
        "format": FORMAT,
        "operation": intent.operation,
        "first": intent.first,
        "cut": swap.cut,
        "prefix": swap.prefix,
        **{name: _told(mark) for name, mark in marks.items()},
        "batch": batch and {"start": batch.span.start, "end": batch.span.end, "floor": batch.floor},
        "late": late
        and {
            "at": late.at,
            "lines": _told(late.mark),
            "behind": _told(late.edge),
            "end": late.end,
        },
    }
    return json.dumps(fields).encode() + b"\n"


def _told(mark: Mark) -> dict[str, object]:
    return {"bytes": mark.size, "digest": mark.digest}


def parse(data: bytes) -> Intent:
    """Return the intent that these bytes are; raise DamagedError if they are none of ours."""
    first = BytesIO(data).readline(_MAX_LINE)
    try:
        found: Any = json.loads(first)
        intent = Intent(
            operation=found["operation"],
            swap=Swap(
                old=_mark(found["old"]),
                new=_mark(found["new"]),
                cut=_number(found["cut"]),
                prefix=_number(found["prefix"]),
                tail=_mark(found["tail"]),
                batch=None if found["batch"] is None else _batch(found["batch"]),
            ),
            first=_number(found["first"]),
            manifest=manifest.parse(data[len(first) :], may_be_empty=True),
            late=None if found["late"] is None else _late(found["late"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError, DamagedError):
        raise _damaged() from None
    if _line(intent) != first or not _is_sound(intent):
        raise _damaged()
    return intent


def project_of(data: bytes) -> str:
    """Return which project an intent that begins so names; raise DamagedError if it names none."""
    return manifest.project_of(data.partition(b"\n")[2])


def _is_sound(intent: Intent) -> bool:
    if intent.operation not in OPERATIONS or intent.first > len(intent.manifest.segments):
        return False
    swap, late = intent.swap, intent.late
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


def _mark(entry: Any) -> Mark:
    digest = entry["digest"]
    if not is_digest(digest):
        raise TypeError
    return Mark(_number(entry["bytes"]), digest)


def _batch(entry: Any) -> Batch:
    span = Span(_number(entry["start"]), _number(entry["end"]))
    if span.size <= 0:
        raise ValueError
    return Batch(span, _number(entry["floor"]))


def _late(entry: Any) -> Late:
    late = Late(
        _number(entry["at"]), _mark(entry["lines"]), _mark(entry["behind"]), _number(entry["end"])
    )
    if not late.mark.size or late.edge.size != min(HEAD, late.at):
        raise ValueError
    return late


def _number(value: object) -> int:
    if not is_count(value):
        raise TypeError
    return value


def _damaged() -> DamagedError:
    return DamagedError(f"The {names.INTENT} of the archive is damaged.")
