"""Whether a live file goes on from its archive, and if not, why. Only reads.

Rule: by what the header of the live file says of the archive, and by what stands behind it. A
reason is a sentence for a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate import names
from sessrotate.archive import archived_file, restored
from sessrotate.archive.intent import Mark
from sessrotate.archive.late_lines import is_at
from sessrotate.errors import printable
from sessrotate.model import Span
from sessrotate.segments import live_header

if TYPE_CHECKING:
    from sessrotate.archive.found_files import FoundFiles
    from sessrotate.archive.recovery_table import Standing
    from sessrotate.segments.manifest import Manifest
    from sessrotate.system.source import Source


def problem(found: FoundFiles, listed: Manifest | None, standing: Standing) -> str | None:
    """Return why the live file does not go on from `listed`, None if it does.

    No live file at all goes on from anything: what is archived is all there is.
    """
    if found.live is None:
        return None
    begun, name = found.intent, printable(str(found.place.live))
    if found.is_archived and archived_file.is_doubled(found.place):
        return f"{name} appeared while its session was archived."
    if begun is not None and begun.operation == "restore" and standing == "after":
        is_whole = found.live.size() >= begun.swap.prefix
        return None if is_whole else f"{name} is shorter than the history that was put there."
    if standing == "unknown":
        return f"{name} is neither the file that was to be replaced nor the new one."
    reason = _misfit(found, found.live, listed)
    return None if reason is None else f"{name} does not go on from its archive: {reason}."


def _misfit(found: FoundFiles, live: Source, listed: Manifest | None) -> str | None:
    header = found.header
    if header is None:
        return None if listed is None else "it does not begin with its header any more"
    if listed is None:
        again = f"its {names.MANIFEST} is gone; the next rotation or restoration makes it again"
        return again if found.listing else f"{printable(str(found.place.archive))} is gone"
    if not restored.fits(listed, header):
        return "its header is from another time"
    begin = len(live_header.line(header))
    if not is_at(live, begin, Mark(header.carried_bytes, header.carried_digest)):
        return "the lines carried along were changed"
    start = begin + header.carried_bytes
    line = Span(start, min(live.line_end(start, live.size()) + 1, live.size()))
    if not is_at(live, start, Mark(line.size, header.boundary_digest)):
        return "it does not go on with the compaction that it was cut at"
    return None
