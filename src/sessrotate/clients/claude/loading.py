"""What a client loads of the rows that stand before a session's last compaction.

Rule: so it is in the code of 2.1.112 and 2.1.330, and real clients hold it. What an older client
does counts only where that client wrote the compaction.

| the last compaction | before it | loaded of what stands before |
|---|---|---|
| says what it preserved, and all of it is there | | that alone |
| says what it preserved, and some of it is nowhere | | everything |
| preserved nothing | no compaction that did | everything |
| preserved nothing | one that did | nothing |
| preserved nothing, in a file over 5 MiB | | nothing |

2.1.30 and older know nothing of preserved rows or of large files: they load everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from sessrotate.clients import common
from sessrotate.parsing import json_line

if TYPE_CHECKING:
    from sessrotate.clients.claude.rows import Compaction
    from sessrotate.model import Boundary, Scan, Span
    from sessrotate.system.source import Source

Loaded = Literal["everything", "preserved", "nothing"]

SMALL_FILE: Final = 5 * 1024 * 1024
"""Bytes up to which 2.1.80 and later read a session from its beginning, branches and all."""

_FIRST: Final = (2, 1, 80)
"""The first version seen that knows preserved rows, and leaves out what large files begin with."""

_BY_PLACE: Final = (2, 1, 112)
"""The first version seen that goes on behind the last compaction, whatever the rows' times say."""


_SAYS: Final[json_line.Shape] = {
    "compactMetadata": {
        "preservedMessages": {"anchorUuid": None},
        "preservedSegment": {"anchorUuid": None},
    }
}


def loaded(*, says: bool, has_all: bool, said_before: bool, size: int) -> Loaded:
    """Return what 2.1.80 and later load of what stands before the last compaction.

    `says` and `said_before` tell whether it, or one before it, says what it preserved; `size` is
    the file's, in bytes.
    """
    if says:
        return "preserved" if has_all else "everything"
    return "nothing" if said_before or size > SMALL_FILE else "everything"


def of_conversation(scanned: Scan, start: int) -> Scan:
    """Leave out compactions of agents where the conversation has none to cut at behind `start`."""
    new = [boundary for boundary in scanned.boundaries if boundary.offset > start]
    if is_compacted(new, scanned.end):
        return scanned
    return replace(scanned, boundaries=scanned.boundaries[: len(scanned.boundaries) - len(new)])


def is_compacted(boundaries: Iterable[Boundary], size: int) -> bool:
    """Tell whether the conversation in a file of `size` bytes can be cut at one of these.

    Clients of 1.0 wrote their agents' rows into the session's own file (ccstatusline PR #425). A
    file of up to 5 MiB is loaded whole, so that all of the conversation would stay. In a larger one
    2.1.112 goes on behind any compaction, whosever it is.
    """
    return any(size > SMALL_FILE or not boundary.is_sidechain for boundary in boundaries)


def says(compaction: Compaction) -> bool:
    """Tell whether a compaction says what it preserved."""
    metadata = compaction.compact_metadata
    return metadata is not None and (
        metadata.preserved_messages is not None or metadata.preserved_segment is not None
    )


def says_at(source: Source, line: Span) -> bool:
    """Tell whether a compaction says what it preserved, however long its record is."""
    found = json_line.values(source.pieces(line), line.size, _SAYS) or {}
    metadata = found.get("compactMetadata")
    return isinstance(metadata, dict) and any(
        isinstance(value, dict) for value in metadata.values()
    )


def is_old(version: str | None) -> bool:
    """Tell whether a client loads everything, whatever a compaction says."""
    return _is_before(version, _FIRST)


def goes_by_time(version: str | None) -> bool:
    """Tell whether a client goes on from the newest row that it loaded, by its time."""
    return _is_before(version, _BY_PLACE)


def _is_before(version: str | None, first: tuple[int, int, int]) -> bool:
    found = common.version(version)
    return found is not None and found < first
