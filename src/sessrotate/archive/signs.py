"""What tells whether an interrupted swap was done: the columns of `recovery_table`. Only reads.

Rule: told by what the files hold and by which file a name has, never by a number or a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate import names
from sessrotate.archive.late_lines import is_at, is_told_new

if TYPE_CHECKING:
    import os

    from sessrotate.archive.found_files import FoundFiles
    from sessrotate.archive.intent import Intent
    from sessrotate.archive.recovery_table import Drafted, Match, Sign
    from sessrotate.system.source import Source


def match(found: FoundFiles, begun: Intent) -> Match:
    """Return what the live file is."""
    live, pack = found.live, found.pack
    if live is None:
        return "absent"
    if pack is not None and pack.identity().is_same_file(live.identity()):
        return "pack"
    if is_told_new(live, begun):
        return "new"
    if found.successor is not live:
        return "kept"
    return "old" if is_at(live, 0, begun.swap.old) else "other"


def drafted(found: FoundFiles) -> Drafted:
    """Return what has the draft's name, without opening it."""
    # Not opened: a rotation under way proves by a lease that nobody has it open.
    if names.DRAFT not in found.listing:
        return "absent"
    try:
        status = found.place.draft.lstat()
    except FileNotFoundError:
        return "absent"
    if _is(found.pack, status):
        return "old"
    return "live" if _is(found.live, status) else "unread"


def _is(source: Source | None, status: os.stat_result) -> bool:
    here = None if source is None else source.identity()
    return here is not None and (here.device, here.inode) == (status.st_dev, status.st_ino)


def sign(found: FoundFiles, sealed: frozenset[int]) -> Sign:
    """Return what else tells."""
    # Only after the swap anything is sealed, or the tail dropped from the pack.
    if sealed or (found.pack is not None and is_dropped(found)):
        return "done"
    return "none" if found.pack is not None else "no pack"


def sealed(found: FoundFiles) -> frozenset[int]:
    """Return the numbers of the intent's new segments whose files are there."""
    begun = found.intent
    if begun is None or begun.operation == "restore":
        return frozenset()
    new = [entry.segment.index for entry in begun.manifest.segments[begun.first :]]
    session = found.place.session
    return frozenset(index for index in new if names.sealed_file(session, index) in found.listing)


def is_dropped(found: FoundFiles) -> bool:
    """Tell whether nothing is in the pack that could come late."""
    begun = found.intent
    if begun is None or found.pack is None:
        return True
    return begun.operation == "rotate" and found.pack.size() <= begun.swap.cut
