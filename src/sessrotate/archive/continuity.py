"""Whether a live file goes on from its archive, and if not, why. Only reads.

Rule: by what the header of the live file says of the archive, and by what stands behind it. A
reason is a sentence for a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate import names
from sessrotate.archive import archived_file, continued
from sessrotate.errors import printable

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
        lost = "damaged" if names.MANIFEST in found.listing else "gone"
        again = f"its {names.MANIFEST} is {lost}; the next rotation or restoration makes it again"
        return again if found.listing else f"{printable(str(found.place.archive))} is gone"
    if not continued.ends_at(listed, header):
        return "its header is from another time"
    return continued.misfit(header, live)
