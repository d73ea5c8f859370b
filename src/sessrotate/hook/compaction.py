"""Waiting until the compaction that a client has announced is on the disk.

Promise: the compaction is found within some milliseconds of its writing, and no other is taken for
it. In come the session and what its file was when the client called; out comes what there is to
know of the compaction, or nothing. The client calls before it writes: 17 to 751 ms, and the summary
may come with another write than its boundary (2.0.28, docs/internals/clients.md).

Rule: only a boundary that was nowhere before counts, neither in the live file nor in the archive,
since clients write old ones again. Only reads, and never longer than it is told.
"""

from __future__ import annotations

import os
import time
from typing import Final

from msgspec import Struct, field

from sessrotate.archive import state
from sessrotate.archive.place import Place
from sessrotate.clients.in_place import Compacted
from sessrotate.errors import SessrotateError
from sessrotate.model import Boundary, Span
from sessrotate.parsing import LONG, WINDOW, Window
from sessrotate.segments import scan
from sessrotate.system.source import Source

PATIENCE: Final = 30.0
"""Seconds to wait: a compaction that was cancelled, or that failed, writes nothing."""

_PAUSE: Final = 0.02
"""Seconds between two looks at the file's size."""


def awaited(where: Place, before: os.stat_result, patience: float = PATIENCE) -> Compacted | None:
    """Return the compaction that comes after the client called, None if none does in these seconds.

    `before` is the status of the live file as it was at that moment.
    """
    watch = _Watch(where, before)
    deadline = time.monotonic() + patience
    while True:
        found = watch.look()
        if found is not None or time.monotonic() >= deadline:
            return found
        time.sleep(_PAUSE)


class _Watch(Struct):
    """What has been seen of a session's live file: up to `at`, of the file with the status `seen`.

    `known` are the boundaries that were there before; `found` is the new one, if only its summary
    is missing.
    """

    where: Place
    before: os.stat_result
    known: set[str | None] = field(default_factory=set)
    seen: os.stat_result | None = None
    at: int = 0
    found: Compacted | None = None

    def look(self) -> Compacted | None:
        try:
            here, seen = self.where.live.lstat(), self.seen
            is_same = seen is not None and os.path.samestat(here, seen)
            if seen is not None and is_same and here.st_size == seen.st_size:
                return None
            with Source.itself(self.where.live) as source:
                if seen is None:
                    self._begin(source)
                elif not is_same:
                    self.at, self.found = 0, None  # somebody rotated it, or saved it by rename
                self.seen = here
                return self._read(source, source.line_start(min(here.st_size, source.size())))
        except (SessrotateError, OSError):
            return None  # it is being replaced, or is gone: look again

    def _begin(self, source: Source) -> None:
        """Note which boundaries there are already."""
        known = _archived(self.where)
        if os.path.samestat(os.fstat(source.fd), self.before):
            files = self.where.client.files
            scanned = scan.scan(source, files, lambda _done: None, self.before.st_size)
            known |= {boundary.uuid for boundary in scanned.boundaries}
            self.at = source.line_start(scanned.end)
        self.known = known

    def _read(self, source: Source, end: int) -> Compacted | None:
        """Look at the lines up to `end`, and return the compaction if all of it is there."""
        window = Window(source, WINDOW)
        for start, stop, at in window.forward(Span(self.at, end)):
            if at == LONG:
                continue  # no boundary and no summary has a megabyte
            line = bytes(window.view[at : at + stop - start])
            if self.found is None:
                self.found = self._new(line, Span(start, stop))
            elif self.where.client.calls.is_summary(line):
                return self.found
        self.at = max(self.at, end)
        return None

    def _new(self, line: bytes, span: Span) -> Compacted | None:
        files = self.where.client.files
        if files.MARKER not in line:
            return None
        boundary = files.boundary([line], span)
        if not isinstance(boundary, Boundary) or boundary.uuid in self.known:
            return None
        return self.where.client.calls.compacted(line, boundary)


def _archived(where: Place) -> set[str | None]:
    with state.opened(where) as there:
        segments = () if there.manifest is None else there.manifest.segments
    opening = (entry.segment.boundary for entry in segments)
    return {boundary.uuid for boundary in opening if boundary is not None}
