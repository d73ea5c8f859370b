"""The values that pass between stages: bytes → boundaries → plan → effect → report.

Rule: frozen, and nothing but data. Offsets and sizes are bytes in the source file; a timestamp
is the text of the record that carried it; text from a session is never trusted here, only held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Layout = Literal["numbered", "linked"]
Codec = Literal["plain", "zstd"]

LAYOUTS: Final[tuple[Layout, ...]] = ("numbered", "linked")
CODECS: Final[tuple[Codec, ...]] = ("plain", "zstd")


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes from `start` up to, not including, `end`."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """Length in bytes."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Boundary:
    """A compaction record: where a client reset the model's context.

    `offset` is the first byte of its line. The other fields are None where the record has no
    usable value of that name.
    """

    offset: int
    uuid: str | None = None
    timestamp: str | None = None
    trigger: str | None = None
    pre_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """What one pass over a session file found.

    `end` is how many of the file's bytes belong to the session as it was when it was opened;
    `opaque_lines` counts the lines that name a boundary but are no JSON, so that nobody can say.
    """

    end: int
    boundaries: tuple[Boundary, ...]
    opaque_lines: int


@dataclass(frozen=True, slots=True)
class Segment:
    """The bytes from one boundary up to the next; number 0 opens without a boundary.

    The timestamps are those of its first and last dated records in file order, looked for in
    what `dating` calls nearby; None where there is none.
    """

    index: int
    span: Span
    boundary: Boundary | None
    first_timestamp: str | None
    last_timestamp: str | None


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What tells whether a path still names the file that was read, unchanged."""

    device: int
    inode: int
    modified_ns: int
    size: int

    def is_same_file(self, other: FileIdentity) -> bool:
        """Tell whether the other is this file too, whatever state it was in."""
        return (self.device, self.inode) == (other.device, other.inode)


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """A whole split, decided and not yet done; a dry run shows the same value.

    `whole_lines` are the segments without the last line, if that has no newline yet: they are
    written instead if its client goes on with it meanwhile.
    """

    session: str
    client: str
    source: FileIdentity
    segments: tuple[Segment, ...]
    opaque_lines: int
    layout: Layout
    codec: Codec
    whole_lines: tuple[Segment, ...] | None = None

    @property
    def source_bytes(self) -> int:
        """How many bytes of the source the segments hold together."""
        return self.segments[-1].span.end


@dataclass(frozen=True, slots=True)
class Pruned:
    """The tombstone of a segment: when it was pruned (ISO 8601, UTC), and by which rule."""

    at: str
    rule: str


@dataclass(frozen=True, slots=True)
class SealedSegment:
    """A segment as it stands on the disk: the plan's segment and what was written of it.

    `digest` is of the body (the source's bytes, without header), `lines` counts its newline
    bytes and a last line that has none. `pin` is the note of who wants it kept whatever a policy
    says (it may be empty), None if nobody does; `pruned` is there instead of the file.
    """

    segment: Segment
    digest: str
    lines: int
    codec: Codec
    pin: str | None = None
    pruned: Pruned | None = None
