"""What Claude Code leaves of a session file that it trims itself (2.1.287 to 2.1.332).

A client that is told to (`CLAUDE_CODE_TRANSCRIPT_LOCAL_GC`) writes a new file in the place of one
that was compacted: the lines from before the last compaction that outlive it, the compaction, the
last setting of each kind from before it, and all behind it. Then it goes on appending to that.

Rule: so it is in the client's own code, of which `row_classes` has the classes. Only reads.
Memory grows with the number of lines that outlive the compaction, not with the file.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate import names
from sessrotate.clients.claude import loading
from sessrotate.clients.claude.row_classes import (
    CLEARED,
    FILE_HISTORY,
    HEADER_TYPE,
    LAST_WINS,
    TRANSCRIPT,
    preserved,
)
from sessrotate.clients.claude.rows import Compaction, Link, compaction_of, turn_of
from sessrotate.clients.claude.survey import Survey
from sessrotate.clients.common import names_in
from sessrotate.model import Span
from sessrotate.parsing import json_line
from sessrotate.parsing.lines import WINDOW

if TYPE_CHECKING:
    from sessrotate.system.source import Source

_KEPT: Final = re.compile(r"(\d{1,15})-[0-9a-f]{8}\.jsonl\.replaced", re.ASCII)
"""What it calls such a file: milliseconds since 1970, and eight random digits."""

SUPERSEDED: Final = frozenset({"attribution-snapshot", "artifact-autoreact-ledger"})
"""Settings of which only the last stays, also behind the compaction."""

_VOID: Final = CLEARED - {HEADER_TYPE}  # a type that no client knows stays


def replaced(live: Path, session: str) -> list[Path]:
    """Return the files that were kept when a client trimmed this session, the oldest first.

    A second name of the live file itself is none yet. The client's own clean-up deletes all of
    them with the session.
    """
    kept = _kept(live, session)
    if kept:  # mostly nothing is: asked of thousands
        with suppress(OSError):
            itself = live.lstat()
            return [path for path in kept if not _is(path, itself)]
    return kept


def may_be_trimmed(live: Path, session: str) -> bool:
    """Tell whether anything is kept of this session, be it only a name for the next trim."""
    return bool(_kept(live, session))


def names_of(live: Path, session: str, status: os.stat_result) -> list[Path]:
    """Return which of the names for kept files the file with this status has.

    Our hook gives one to a live file that its client may trim.
    """
    return [path for path in _kept(live, session) if _is(path, status)]


def new_name(live: Path, session: str, at_ns: int | None = None) -> Path:
    """Return a name under which this live file is to be kept, and that nothing has.

    What is kept is put together in the order of names: `at_ns` is how old the file is, in
    nanoseconds since 1970, where it is not the live file any more.
    """
    at = (at_ns or time.time_ns()) // 10**6
    name = f"{at}-{os.urandom(4).hex()}.jsonl.replaced"
    return live.parent / session / names.KEPT / name


def _kept(live: Path, session: str) -> list[Path]:
    folder = Path(f"{live.parent}/{session}/{names.KEPT}")  # joined once, of thousands
    found = ((_KEPT.fullmatch(name), name) for name in names_in(folder))
    return [
        folder / name for _, name in sorted((int(match[1]), name) for match, name in found if match)
    ]


def _is(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.lstat(), status)
    except OSError:
        return False


def is_of_settings(line: bytes) -> bool:
    """Tell whether a line is a setting: clients write equal ones again and again."""
    row = turn_of(line)
    return row is not None and not row.uuid


def is_superseded(line: bytes) -> bool:
    """Tell whether a line is a setting of which only the last stays, behind a compaction, too."""
    row = turn_of(line)
    return row is not None and row.type in SUPERSEDED


def left(source: Source, boundaries: Sequence[int], end: int) -> list[Span] | None:
    """Return what a client leaves of the first `end` bytes of a file, in the order of the new file.

    `boundaries` is where the lines of its compactions begin. The spans are of whole lines, with
    their newlines. None if it would leave the file alone: what the last compaction preserved is not
    all there, or cannot be read.
    """
    cut = boundaries[-1]
    line = Span(cut, source.line_end(cut, end))
    compaction = None
    if json_line.is_small(line.size):
        compaction = compaction_of(source.read_at(line.start, line.size))
    if compaction is None:
        return None
    file = _File(Survey(source, WINDOW), cut, end)
    wanted = file.preserved(compaction)
    if wanted is None:
        return None
    file.read(wanted)
    plain = max((at for at in boundaries if not _says(source, at, end)), default=-1)
    moved = [
        span
        for (kind, *_), span in file.last.items()
        if span.start < cut and (kind != "attribution-snapshot" or span.start > plain)
    ]
    first = Span(cut, min(line.end + 1, end))
    behind = _without(Span(first.end, end), sorted(file.dropped, key=lambda span: span.start))
    return [*file.before(), first, *moved, *behind]


def _says(source: Source, start: int, end: int) -> bool:
    return loading.says_at(source, Span(start, source.line_end(start, end)))


def _without(whole: Span, gaps: Sequence[Span]) -> Iterator[Span]:
    """Yield what is left of a span without some parts of it."""
    start = whole.start
    for gap in gaps:
        if gap.start >= whole.start:
            if gap.start > start:
                yield Span(start, gap.start)
            start = gap.end
    if start < whole.end:
        yield Span(start, whole.end)


class _File:
    """What is known of a file that is to be trimmed; spans are of lines with their newlines."""

    def __init__(self, survey: Survey, cut: int, end: int) -> None:
        self.last: dict[tuple[object, ...], Span] = {}
        """The last setting of each key, by where the key comes first."""
        self.dropped: set[Span] = set()
        self._survey, self._cut, self._end = survey, cut, end
        self._always: list[Span] = []
        self._rows: dict[str, Span] = {}
        self._history: dict[tuple[object, ...], Span] = {}

    def preserved(self, compaction: Compaction) -> set[str] | None:
        """Return the rows that the last compaction preserved; None if they are not all there."""
        needed = preserved(compaction)
        if needed.required:
            missing = set(needed.required)
            for _, _, row in self._survey.forward(Span(0, self._end)):
                if row is not None and row.type in TRANSCRIPT:
                    missing.discard(row.uuid or "")
            return None if missing else needed.required
        found: set[str] = set()
        for tail, head in needed.walked.items():
            wanted: str | None = tail
            for _, _, row in self._survey.backward(max(self._cut - 1, 0)):
                if wanted is not None and row is not None and row.uuid == wanted:
                    found.add(wanted)
                    if wanted == head:
                        break
                    wanted = row.parent_uuid
            else:
                return None
        return found

    def read(self, wanted: set[str]) -> None:
        """Pass over the file; `wanted` are the rows that its last compaction preserved."""
        behind, parents = set[str](), set[str]()
        for start, _, row in self._survey.forward(Span(self._cut, self._end)):
            if row is not None and row.type in TRANSCRIPT and start >= self._cut:
                behind.add(row.uuid or "")
                parents.add(row.parent_uuid or "")
        rows = (wanted | parents) - behind - {""}
        for start, to, row in self._survey.forward(Span(0, self._end)):
            span = Span(start, min(to + 1, self._end))
            if row is not None and row.type in LAST_WINS:
                self._setting(row, span)
            elif row is not None and row.type in FILE_HISTORY and row.message_id in wanted:
                # Of a message the last snapshot, and every change.
                is_last = row.type == "file-history-snapshot"
                self._history[row.type, row.message_id, None if is_last else start] = span
            elif start >= self._cut:
                continue
            elif row is not None and row.type in TRANSCRIPT:
                if row.uuid in rows and row.uuid is not None:
                    self._rows[row.uuid] = span
            elif row is None or (row.type not in _VOID and row.type not in FILE_HISTORY):
                self._always.append(span)

    def before(self) -> list[Span]:
        """Return the lines from before the last compaction that stay there, in their order."""
        found = {*self._always, *self._rows.values(), *self._history.values()} - self.dropped
        return sorted(
            (span for span in found if span.start < self._cut), key=lambda span: span.start
        )

    def _setting(self, row: Link, span: Span) -> None:
        key = (row.type, *(part(row) for part in LAST_WINS[row.type or ""]))
        if row.type in SUPERSEDED and key in self.last:
            self.dropped.add(self.last[key])
        self.last[key] = span
