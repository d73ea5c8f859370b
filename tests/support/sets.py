"""Making sets of segments in tests, in one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.reading import stitch
from sessrotate.segments import load, split
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.model import Codec, Layout, SplitPlan
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
    return b"".join(bytes(piece) for piece in stitch.stream(load.load(folder, file)))
