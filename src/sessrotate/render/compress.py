"""What `compress` prints: a line for each archive, or one document for programs. Pure.

Rule: sizes are those of the segments' files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.errors import printable
from sessrotate.render import common
from sessrotate.render.common import count, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessrotate.retention.compress import Compressed


def line(done: Compressed) -> str:
    """Return what became of one archive."""
    name = printable(done.where.session)
    if not done.segments:
        return f"{name}: nothing to compress.\n"
    many = count(done.segments, "segment")
    return f"{name}: {many}, {size(done.before)} became {size(done.after)}.\n"


def as_json(done: Sequence[Compressed]) -> str:
    """Return the same of all archives for programs."""
    return common.as_json(
        {
            "sessions": [
                {
                    "session": entry.where.session,
                    "segments": entry.segments,
                    "bytes_before": entry.before,
                    "bytes_after": entry.after,
                }
                for entry in done
            ],
            "bytes_before": sum(entry.before for entry in done),
            "bytes_after": sum(entry.after for entry in done),
        }
    )
