"""The values that pass between stages: bytes → boundaries → plan → what is on the disk.

Rule: frozen, and nothing but data. Offsets and sizes are in bytes of the source file. A timestamp
is the text of the record that carries it (ISO 8601); text from a session is held here, never
trusted.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

Layout = Literal["numbered", "linked"]
"""How segments are named: by the session's id and a number, or by ids of their own."""

Codec = Literal["plain", "zstd"]
"""How a segment's file is stored."""

LAYOUTS: Final[tuple[Layout, ...]] = ("numbered", "linked")
CODECS: Final[tuple[Codec, ...]] = ("plain", "zstd")


Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
"""A number of bytes, lines or segments, or nanoseconds since 1970."""

Digest = Annotated[str, Meta(pattern=r"\Axxh3_128:[0-9a-f]{32}\Z")]
"""What `system.digest` gives."""


class Span(Struct, frozen=True):
    """The bytes from `start` up to, but not including, `end`."""

    start: Count
    end: Count

    @property
    def size(self) -> int:
        """Length in bytes."""
        return self.end - self.start


class Boundary(Struct, frozen=True):
    """A compaction: the record with which a client reset the model's context.

    A field is None if the record has no usable value for it.
    """

    offset: int
    """Where the record's line begins in the history, in bytes."""
    uuid: str | None = None
    """The record's own id."""
    timestamp: str | None = None
    """When the session was compacted, ISO 8601 as the client wrote it."""
    trigger: str | None = None
    """Who asked for it, in the client's words: `auto` or `manual`."""
    pre_tokens: Count | None = None
    """How many tokens the context had before."""
    is_sidechain: bool = False
    """Whether it is an agent's: in the file of a session it resets nothing of the conversation."""


class Scan(Struct, frozen=True):
    """What one pass over a session file found.

    `end` is how many bytes of the file belong to the session, as it was when it was opened;
    `boundaries` are all there are, in the order of the file. `opaque_lines` is how many lines name
    a boundary but are not JSON, so that nobody can tell what they are.
    """

    end: int
    boundaries: tuple[Boundary, ...]
    opaque_lines: int


class Segment(Struct, frozen=True):
    """The bytes from one boundary up to the next.

    `index` is the segment's number, 0 the oldest; `span` is where it stands in the source file, in
    bytes; `boundary` is the one that it opens with, None for segment 0. `first_timestamp` is the
    time of its first dated record near its beginning, `last_timestamp` that of its last one near
    its end (`segments.scan`), or None. `is_cut`: its client cut most of it out, the boundary too,
    and this is what it kept.
    """

    index: int
    span: Span
    boundary: Boundary | None
    first_timestamp: str | None
    last_timestamp: str | None
    is_cut: bool = False


class FileIdentity(Struct, frozen=True):
    """What tells whether a path still names the file that was read, unchanged.

    `inode` is the file's number on its `device`; `modified_ns` is when it last changed, in
    nanoseconds since 1970; `size` is in bytes.
    """

    device: int
    inode: int
    modified_ns: int
    size: int

    def is_same_file(self, other: FileIdentity) -> bool:
        """Tell whether the other is this file too, in whatever state."""
        return (self.device, self.inode) == (other.device, other.inode)


class SplitPlan(Struct, frozen=True):
    """A whole split, decided but not yet done; a dry run shows the same value.

    `source` is the file that it was made for, `session` the session's id, `client` who wrote it.
    The `segments` together are all of it. `layout` says how their files will be named, `codec` how
    they will be stored. `opaque_lines` is as in `Scan`.
    """

    session: str
    client: str
    source: FileIdentity
    segments: tuple[Segment, ...]
    opaque_lines: int
    layout: Layout
    codec: Codec

    @property
    def source_bytes(self) -> int:
        """How many bytes of the source the segments hold together."""
        return self.segments[-1].span.end


class Pruned(Struct, frozen=True):
    """What is left of a segment that was pruned: `at` is when (ISO 8601, UTC), `rule` is why."""

    at: str
    rule: str


class SealedSegment(Struct, frozen=True):
    """A segment as it stands on the disk: the plan's segment, and what was written of it.

    `segment` says where it was in the source, `codec` how its file is stored. `digest` is that of
    its body: the source's bytes, without the header. `lines` is how many lines the body has; a last
    one without a newline counts. `pin` is the note (which may be empty) of a user who wants it kept
    whatever the policy says; `pruned` is what is left of it if its file was pruned.
    """

    segment: Segment
    digest: Digest
    lines: Count
    codec: Codec
    pin: str | None = None
    pruned: Pruned | None = None
