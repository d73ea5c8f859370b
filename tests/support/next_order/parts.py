"""What stands in the files of the model: lines, a header, segments, the manifest, the record.

A line is a short string. `a1`, `b2` are rows; `B1` is a compaction's boundary, at which a segment
begins; what a client writes has the letter of what it did (`events.py`) and a number. A line that
ends with `(` is torn: its writer still has its other half, which ends with `)`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

Content: TypeAlias = tuple[Any, ...]
"""The entries of a session's file: lines, and a header before them where it has one."""

FIRST: Final[Content] = ("a1", "a2", "B1", "b1", "b2", "B2", "c1")
"""The session at the beginning: two compactions, so that a rotation makes two segments."""


class Header(NamedTuple):
    """The first entry of a rotated file: it goes on from so many segments."""

    segments: int


class SegmentHeader(NamedTuple):
    """The first entry of a segment's file: by it the file is known to be whole."""

    lines: Content
    following: str
    """The line that comes after the segment, with which the tail (or the next one) begins."""


class Segment(NamedTuple):
    """What the manifest says of a segment."""

    lines: Content
    following: str
    counted: bool = False
    """Whether a live file went on from it: then it is an error if it lacks."""
    tombstone: bool = False
    """Whether it was pruned."""


class Waiting(NamedTuple):
    """A file that had the live name: clients may still write to it."""

    path: str
    known: Content
    """What it began with when it was last compared: all of that is in the history."""
    batch: tuple[int, int] | None
    """Late lines that are being brought over: up to where in it, from where in the live file."""
    since: int
    """The day on which something last came to it."""


class Exchange(NamedTuple):
    """An exchange of names that has begun."""

    begins: Content
    """How the new file begins: its header, or what a restoration brings back."""
    tail: Content
    draft: int
    """The inode of the new file."""
    ready: bool
    """Whether the names may have been exchanged."""


class Record(NamedTuple):
    """What must not be forgotten between two runs."""

    number: int = 0
    """The last exchange's."""
    exchange: Exchange | None = None
    waiting: tuple[Waiting, ...] = ()


Manifest: TypeAlias = tuple[Segment, ...]


def count_of(content: Content) -> int:
    """Return how many segments a live file goes on from."""
    return content[0].segments if content and isinstance(content[0], Header) else 0


def body_of(content: Content) -> Content:
    """Return a live file without its header."""
    return content[1:] if content and isinstance(content[0], Header) else content


def lines_of(content: Content) -> set[str]:
    """Return the lines of a file that has lines; of others, nothing."""
    return {entry for entry in content if isinstance(entry, str)}


def is_boundary(line: str) -> bool:
    """Return whether a compaction's boundary stands there."""
    return line.startswith("B")


def is_half(line: Any) -> bool:
    """Return whether that is the first half of a line."""
    return isinstance(line, str) and line.endswith("(")


def other_half(line: str) -> str:
    """Return what ends a torn line."""
    return f"{line[:-1]})"


def is_torn(content: Content) -> bool:
    """Return whether a file ends within a line."""
    return bool(content) and is_half(content[-1])


def last_boundary(content: Content) -> int:
    """Return where the last compaction's boundary stands, or 0."""
    found = [at for at, entry in enumerate(content) if isinstance(entry, str) and entry[0] == "B"]
    return found[-1] if found else 0


def has_no_uuid(line: str) -> bool:
    """Return whether a line cannot be told from another one of the same bytes."""
    return line.startswith("L")
