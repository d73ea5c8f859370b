"""The values that pass between stages: bytes → boundaries → plan → what is on the disk.

Rule: frozen, and nothing but data. Offsets and sizes are in bytes of the source file. A timestamp
is the text of the record that carries it (ISO 8601); text from a session is held here, never
trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Layout = Literal["numbered", "linked"]
"""How segments are named: by the session's id and a number, or by ids of their own."""

Codec = Literal["plain", "zstd"]
"""How a segment's file is stored."""

LAYOUTS: Final[tuple[Layout, ...]] = ("numbered", "linked")
CODECS: Final[tuple[Codec, ...]] = ("plain", "zstd")


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes from `start` up to, but not including, `end`."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """Length in bytes."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Boundary:
    """A compaction: the record with which a client reset the model's context.

    A field is None where the record has no usable value for it.
    """

    offset: int
    """Where the record's line begins in the history, in bytes."""
    uuid: str | None = None
    """The record's own id."""
    timestamp: str | None = None
    """When the session was compacted, ISO 8601 as the client wrote it."""
    trigger: str | None = None
    """Who asked for it, in the client's words: `auto` or `manual`."""
    pre_tokens: int | None = None
    """How many tokens the context had before."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What one pass over a session file found."""

    end: int
    """How many bytes of the file belong to the session, as it was when it was opened."""
    boundaries: tuple[Boundary, ...]
    """All boundaries, in the order of the file."""
    opaque_lines: int
    """How many lines name a boundary but are not JSON, so that nobody can tell what they are."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The bytes from one boundary up to the next. Segment 0 opens without a boundary."""

    index: int
    """The segment's number; 0 is the oldest."""
    span: Span
    """Where it stands in the source file, in bytes."""
    boundary: Boundary | None
    """The boundary that it opens with."""
    first_timestamp: str | None
    """The time of its first dated record near its beginning (`segments.dating`), or None."""
    last_timestamp: str | None
    """The time of its last dated record near its end, or None."""


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What tells whether a path still names the file that was read, unchanged."""

    device: int
    """The device that the file is on."""
    inode: int
    """The file's number on that device."""
    modified_ns: int
    """When the file last changed, in nanoseconds since 1970."""
    size: int
    """Size in bytes."""

    def is_same_file(self, other: FileIdentity) -> bool:
        """Tell whether the other is this file too, in whatever state."""
        return (self.device, self.inode) == (other.device, other.inode)


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """A whole split, decided but not yet done; a dry run shows the same value."""

    session: str
    """The session's id."""
    client: str
    """The client that wrote it."""
    source: FileIdentity
    """The file that the plan was made for."""
    segments: tuple[Segment, ...]
    """What it will be cut into; together they are the whole source."""
    opaque_lines: int
    """As in `Scan`."""
    layout: Layout
    """How the segments will be named."""
    codec: Codec
    """How their files will be stored."""
    whole_lines: tuple[Segment, ...] | None = None
    """The segments without a last line that has no newline yet; None if it has one.

    These are written instead if the client goes on with that line meanwhile.
    """

    @property
    def source_bytes(self) -> int:
        """How many bytes of the source the segments hold together."""
        return self.segments[-1].span.end


@dataclass(frozen=True, slots=True)
class Pruned:
    """What is left of a segment that was pruned: `at` is when (ISO 8601, UTC), `rule` is why."""

    at: str
    rule: str


@dataclass(frozen=True, slots=True)
class SealedSegment:
    """A segment as it stands on the disk: the plan's segment, and what was written of it."""

    segment: Segment
    """Where it was in the source."""
    digest: str
    """The digest of its body: the source's bytes, without the header."""
    lines: int
    """How many lines the body has; a last line without a newline counts."""
    codec: Codec
    """How its file is stored."""
    pin: str | None = None
    """The note of a user who wants it kept whatever the policy says (may be empty), or None."""
    pruned: Pruned | None = None
    """What is left of it if its file was pruned, else None."""
