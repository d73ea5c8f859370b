"""How Claude Code calls our hook, and what it writes when it compacts a session.

Promise: the questions of `in_place.Calls`, as 2.0.28 to 2.1.330 answer them
(docs/internals/clients.md).
"""

from __future__ import annotations

from typing import Final

from sessrotate.clients import common
from sessrotate.clients.claude import cleanup
from sessrotate.clients.claude.rows import compaction_of, shown_of
from sessrotate.clients.in_place import Compacted
from sessrotate.model import Boundary
from sessrotate.parsing.json_typed import DECLINED

_REPEATING: Final = ((2, 1, 112), (2, 1, 160))
"""Versions, from one to before another, that forget at a compaction which rows are on the disk."""

silenced: Final = cleanup.silenced


def compacted(line: bytes, boundary: Boundary) -> Compacted:
    """Return what the line of a boundary says of its compaction.

    2.1.112 writes all archived rows again at each further one, as a program's backend and where
    somebody asked for the compaction: it keeps the old rows in memory then, and looks in the file
    for those that it has written. After an automatic one, and in a terminal, it drops them.
    """
    try:
        row = compaction_of.fast(line)
    except DECLINED:
        return Compacted(boundary.trigger)
    version, (low, high) = common.version(row.version), _REPEATING
    is_such = version is not None and low <= version < high
    by_program = (row.entrypoint or "").startswith("sdk-")
    return Compacted(boundary.trigger, is_such and by_program and boundary.trigger == "manual")


def is_summary(line: bytes) -> bool:
    """Tell whether a line is the summary that ends the writing of a compaction."""
    try:
        return shown_of.fast(line).is_compact_summary
    except DECLINED:
        return False
