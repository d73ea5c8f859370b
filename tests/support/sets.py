"""Making sets of segments in tests, in one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.archive.state import State
from sessrotate.reading import pieces
from sessrotate.segments import load, split
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sessrotate.model import Codec, Layout, SplitPlan
    from sessrotate.reading.pieces import Holder
    from sessrotate.segments import SegmentSet
    from sessrotate.segments.manifest import Manifest


def nothing(_done: int) -> None:
    """Take progress and show none."""


def planned(path: Path, layout: Layout = "numbered", codec: Codec = "plain") -> SplitPlan:
    """Return the plan of splitting a file."""
    with Source(path) as source:
        return split.prepare(source, nothing, layout=layout, codec=codec)


def made(path: Path, folder: Path, layout: Layout = "numbered", codec: Codec = "plain") -> Manifest:
    """Split a file into a folder."""
    with Source(path) as source:
        plan = split.prepare(source, nothing, layout=layout, codec=codec)
        return split.execute(plan, source, folder, nothing)


def stitched(folder: Path, file: str | None = None) -> bytes:
    """Return what the segments of a folder give."""
    return whole(load.load(folder, file))


def holder(found: State | SegmentSet) -> Holder:
    """Return what reads a session in place, or a folder of segments, that is open already."""
    return pieces.of_state(found) if isinstance(found, State) else pieces.of_set(found)


def whole(found: State | SegmentSet, on_gap: Callable[[str], None] | None = None) -> bytes:
    """Return all bytes of what is open already."""
    return b"".join(bytes(piece) for piece in holder(found).stream(on_gap))
