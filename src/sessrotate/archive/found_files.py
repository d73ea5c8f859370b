"""The files of one session in place that are there, open, all of one moment.

Rule: only what was read from them and nothing that follows from it, which is `state`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sessrotate import names
from sessrotate.segments import live_header

if TYPE_CHECKING:
    from sessrotate.archive.intent import Intent
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
