"""The files of one session in place that are there, open, all of one moment.

Rule: what was read from them, and whether it may be used; all else that follows is `state`'s.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sessrotate import fs, names
from sessrotate.errors import DamagedError, printable
from sessrotate.segments import live_header

if TYPE_CHECKING:
    from sessrotate.archive.intent import Intent, Late
    from sessrotate.archive.late_lines import Residue
    from sessrotate.archive.place import Place
    from sessrotate.segments.live_header import LiveHeader
    from sessrotate.segments.manifest import Manifest
    from sessrotate.system.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFiles:
    """What was found. Files that are there are open; `listing` is the archive's folder.

    Where the live file is gone (`is_gone`) and the pack is there whole, `live` is the pack: it is
    the old live file.
    """

    place: Place
    live: Source | None
    header: LiveHeader | None
    pack: Source | None
    late: Source | None
    listing: frozenset[str]
    intent: Intent | None
    manifest: Manifest | None
    is_gone: bool

    @property
    def is_archived(self) -> bool:
        """Whether the session was archived whole, or is on its way there or back."""
        return names.ARCHIVED_NOTE in self.listing

    @property
    def prefix(self) -> int:
        """How many bytes of the live file are no part of the history."""
        return 0 if self.header is None else live_header.prefix(self.header)


def with_way_out(place: Place, error: DamagedError) -> DamagedError:
    """Return an error that says, once, what helps where no other command does."""
    name = printable(place.session)
    hint = f"If nothing else helps, `sessrotate aside {name}` puts its archive aside, whole."
    return error if hint in str(error) else DamagedError(f"{error} {hint}")


def problem_of_late(
    found: FoundFiles, pending: Late | None, rest: Residue, *, is_pack_known: bool
) -> str | None:
    """Return why late lines cannot be had, None if they can or there are none."""
    if pending is not None and (found.late is None or found.late.size() != pending.mark.size):
        return f"{printable(str(found.place.late))} is not what it was."
    if rest.span.size and not is_pack_known:
        return f"{printable(str(found.place.pack))} is not the file that was replaced."
    if rest.span.size and found.pack is not None and has_other_name(found.place, found.pack):
        return other_name(found.place)
    return None


def has_other_name(place: Place, pack: Source) -> bool:
    """Tell whether a pack that is not the live file any more has a second name.

    A rotation refuses a live file that has one. So it is a backup's, or somebody put another file
    there, of which lines would get into the session. A kill in the middle of a swap leaves it the
    draft's name, which is ours.
    """
    status = os.fstat(pack.fd)
    return status.st_nlink > 1 + fs.same_as(status)(place.draft)


def other_name(place: Place) -> str:
    """Return the sentence that a pack has a second name."""
    return (
        f"{printable(str(place.pack))} has another name (a hard link), so it may be any file: "
        "remove the other name, and try again."
    )
