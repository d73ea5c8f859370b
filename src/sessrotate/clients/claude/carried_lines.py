"""What Claude Code needs, to resume a session, of the lines before its last compaction.

Promise: the questions of `in_place.Resume`.

Rule: when the real client resumes `carried lines · boundary · tail`, it must send the same request
as from the whole file: the client that wrote the boundary, and every later one. `loading` says what
those load of the rows before it and which other rows outlive a compaction, and `opening` which line
shows how the session began; the tests with real clients hold it. Lines are carried unchanged, in
the order of the history, and nothing after the cut is ever dropped. If the request could differ,
the plan says why and must not be carried out.

One pass over the lines before the cut finds what goes along whatever a resume needs (`Before`):
rows of the conversation are only looked at; of settings, the last of each counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from sys import getsizeof
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from sessrotate import parsing
from sessrotate.clients.claude import ancestry, loading
from sessrotate.clients.claude.ancestry import (
    HISTORY_OF_KEPT,
    PER_LINE,
    NoPlanError,
    Room,
    Search,
    Survey,
    Tail,
)
from sessrotate.clients.claude.loading import (
    CLEARED,
    FILE_HISTORY,
    LAST_WINS,
    TRANSCRIPT,
    Loaded,
    preserved,
)
from sessrotate.clients.claude.opening import BEGINS, Opening, opening
from sessrotate.clients.claude.rows import Compaction, Link, Name, compaction_of, seconds
from sessrotate.clients.in_place import NEXT_COMPACTION, NOTHING, Archived, Carried, LivePlan
from sessrotate.model import Span
from sessrotate.parsing import json_line

if TYPE_CHECKING:
    from sessrotate.system.source import Source

# ── the lines before the cut ─────────────────────────────────────────────────────────────────


_TOLD: Final = 4 * 1024 * 1024
"""Bytes between two reports of progress."""


class Before(Struct):
    """What one pass over the lines before the cut finds."""

    tail: Tail
    search: Search
    room: Room
    progress: Callable[[int], None]
    always: list[Carried] = field(default_factory=list)
    last: dict[tuple[object, ...], Span] = field(default_factory=dict)
    copies: set[str] = field(default_factory=set)
    """The rows that stand behind the cut too."""
    continued: set[str] = field(default_factory=set)
    """The rows that rows behind the cut continue."""
    newest: str = ""
    """The latest time of a row of the conversation."""
    is_named: bool = False
    """Whether the row is there that 2.1.330 is to go on from."""

    def look_through(self, source: Source, survey: Survey, end: int) -> bool:
        """Pass over the lines before `end`; return whether they have rows that are needed as well.

        Then what else is needed has to be looked for, and all of this again.
        """
        grows = False
        kept = self.tail.uuids | self.search.found.keys()
        told = 0
        for start, to, row in survey.forward(Span(0, end)):
            if start >= told:
                self.progress(start)
                told = start + _TOLD
            if row is not None and row.type in TRANSCRIPT:
                # Almost all rows. A uuid that is longer than any name is not in the tail.
                if row.uuid in self.tail.uuids and row.uuid is not None:
                    self.copies.add(row.uuid)
                if row.uuid in self.tail.parents and row.uuid is not None:
                    self.continued.add(row.uuid)
                self.is_named |= row.uuid is not None and row.uuid == self.tail.checkpoint
                if row.timestamp is not None and row.timestamp > self.newest:
                    time = None if row.is_sidechain else ancestry.name(row.timestamp)
                    self.newest = time or self.newest
                grows |= self.search.see(source, start, to, row)
            elif row is not None and (key := _key(row)) is not None:
                if key not in self.last:
                    self.room.take(PER_LINE + sum(map(getsizeof, key)))
                self.last[key] = Span(start, to)
            elif (reason := _reason(row, kept)) is not None:
                self.room.take(PER_LINE)
                self.always.append(Carried(Span(start, to), reason))
        return grows

    def lines(self) -> Iterator[Carried]:
        """Yield the metadata lines to carry."""
        yield from self.always
        for span in self.last.values():
            yield Carried(span, "the latest value of each setting (title, mode, …)")


def _key(row: Link) -> tuple[object, ...] | None:
    """Return what the last row is wanted of, or None if every row of its type is."""
    parts = LAST_WINS.get(row.type or "")
    return None if parts is None else (row.type, *(_short(part(row)) for part in parts))


def _short(value: Name) -> Name:
    """Return a part of a key; what is longer than a name is none."""
    if isinstance(value, str):
        return value if len(value) <= json_line.MAX_TEXT else None
    return value if value is None or abs(value) < 10**json_line.MAX_DIGITS else None


def _reason(row: Link | None, kept: set[str]) -> str | None:
    """Return why a line is carried of itself, or None if it is not."""
    if row is None:
        return "not a record, but clients keep it"
    if row.type in FILE_HISTORY:
        return HISTORY_OF_KEPT if ancestry.name(row.message_id) in kept else None
    return None if row.type in CLEARED else "of a type that clients keep"


# ── the plan ─────────────────────────────────────────────────────────────────────────────────


_HEADER: Final = 1024
"""Bytes that a live file's header has at most, about."""

_NEXT_ROWS: Final = "Wait for the session's next rows: they usually resolve this."
"""What helps where a session is refused for how it ends at this moment."""


def plan(
    source: Source,
    boundaries: Sequence[int],
    end: int,
    archived: Archived = NOTHING,
    *,
    prefix: int = 0,
    judged: int = 0,
    progress: Callable[[int], None] = lambda _done: None,
) -> LivePlan:
    """Return what a resume needs of the session `source` up to `end`, cut at its last boundary.

    `boundaries` is where the lines of its compactions begin, in bytes; the first `prefix` bytes
    were put there by a rotation. The rows before offset `judged` were there at the last one: what
    they continue, and is not in the file, clients do not load, so that nobody looks for it. Reads
    the tail once, history forwards once, and backwards only as far as the last row that is needed:
    mostly that is not as far as the archive. `progress` is told how many bytes are done, on the way
    forwards.
    """
    try:
        planner = Planner(source, boundaries, end, archived, prefix=prefix, judged=judged)
        return planner.plan(progress)
    except NoPlanError as refusal:
        return LivePlan(boundaries[-1], (), (str(refusal),))


class Planner:
    """One session, and what is known of it."""

    def __init__(
        self,
        source: Source,
        boundaries: Sequence[int],
        end: int,
        archived: Archived,
        *,
        prefix: int,
        judged: int,
    ) -> None:
        self._source: Final = source
        self._survey: Final = Survey(source, parsing.WINDOW)
        *self._earlier, self._cut = boundaries
        self._end: Final = end
        self._archived: Final = archived
        self._prefix: Final = prefix
        self._size: Final = archived.size + end - prefix  # of the file, had it not been rotated
        self._judged: Final = min(max(judged, self._cut), end)
        self._room: Final = Room()
        if source.line_end(self._cut, end) >= end:
            raise NoPlanError(f"The last line is not complete. {_NEXT_ROWS}")
        # A torn line further on stays what it was: the last one, and the client's to judge.
        self._compaction: Final = self._read(self._cut)
        self._says: Final = loading.says(self._compaction)
        self._is_old: Final = loading.is_old(self._compaction.version)
        self._tail: Final = ancestry.read_tail(self._survey, self._behind, self._room.take)

    def plan(self, progress: Callable[[int], None]) -> LivePlan:
        """Return the plan; raise NoPlanError if there can be none."""
        loaded = self._loaded(has_all=True)
        search, before = self._search(loaded, progress)
        if self._says and not self._has_all(search):
            loaded = self._loaded(has_all=False)
            search, before = self._search(loaded, progress)
        found, first = dict(search.found), []
        began = opening(self._source, (*self._earlier, self._cut)[0])
        misleads = began is not None and self._misleads(loaded, search, before, began)
        if began is not None and (began.is_spared or not misleads):
            # In front even of what comes back from the archive; needed as a row, it is that row.
            line = began.line
            first = [line if began.uuid is None else found.pop(began.uuid, line)]
        carried = {
            _order(entry): entry
            for entry in (*before.lines(), *search.history, *found.values())
            if entry not in first
        }
        lines = (*first, *(carried[order] for order in sorted(carried)))
        refusals = [*self.refusals(loaded, search, before), *self._notices(loaded, search)]
        if misleads and first:
            refusals.append(
                "A row after the last compaction may continue the first row, which stays. "
                + NEXT_COMPACTION
            )
        size = _HEADER + sum(entry.span.size + 1 for entry in lines) + self._end - self._cut
        if loaded == "everything" and self._size <= loading.SMALL_FILE < size:
            # The whole file reaches that size too, with hardly more than a header's length.
            refusals.append(
                f"With the carried lines, clients would not load all of the file. {_NEXT_ROWS}"
            )
        goes = misleads and not first
        return LivePlan(self._cut, lines, tuple(refusals), search.hidden, misleads=goes)

    @property
    def _behind(self) -> Span:
        return Span(self._cut, self._end)

    def _read(self, start: int) -> Compaction:
        size = self._source.line_end(start, self._end) - start
        if not json_line.is_small(size):
            raise NoPlanError(
                f"The last compaction's record is too long to read. {NEXT_COMPACTION}"
            )
        compaction = compaction_of(self._source.read_at(start, size))
        if compaction is None:
            raise NoPlanError(f"The last compaction's record cannot be read. {NEXT_COMPACTION}")
        return compaction

    @cached_property
    def _said_before(self) -> bool:
        if any(map(self._says_at, self._earlier)):
            return True
        # What is archived is asked only where it matters: by a row that goes back.
        return bool(self._tail.parents) and self._archived.says()

    def _says_at(self, start: int) -> bool:
        return loading.says_at(self._source, Span(start, self._source.line_end(start, self._end)))

    def _loaded(self, *, has_all: bool) -> Loaded:
        return loading.loaded(
            says=self._says,
            has_all=has_all,
            said_before=not self._says and self._size <= loading.SMALL_FILE and self._said_before,
            size=self._size,
        )

    def _has_all(self, search: Search) -> bool:
        """Tell whether all that the last compaction preserved is there, as clients look for it."""
        metadata = self._compaction.compact_metadata
        there = search.found.keys() | self._tail.uuids
        if metadata is not None and metadata.preserved_messages is not None:
            return search.needed.required <= there
        heads = search.needed.walked.values()
        return bool(heads) and all(head in search.found for head in heads)

    def _search(self, loaded: Loaded, progress: Callable[[int], None]) -> tuple[Search, Before]:
        """Find what is needed in the live file, and what is not there in the archive."""
        needed = preserved(self._compaction)
        if loaded != "nothing" or self._is_old:
            needed.chained |= self._tail.parents
        needed.has_ancestors = loaded == "everything" or self._is_old
        answers = self._tail.answers if loaded == "everything" else None
        search = Search(needed, self._tail.uuids, answers, self._room)
        while True:
            while search.look_back(self._survey, self._cut) and search.lacks:
                pass  # what stands below the row that continues it
            before = Before(self._tail, search, self._room, progress)
            if not before.look_through(self._source, self._survey, self._cut):
                break
        search.give_up(self._judged_orphans(search))
        search.look_further(self._archived.segments)
        if loaded == "preserved" and not self._is_old:
            for uuid in self._unread(search):
                del search.found[uuid]
        return search, before

    def _unread(self, search: Search) -> set[str]:
        """Return the rows that others continue, and that clients do not read of the whole file."""
        chained = search.needed.chained - search.needed.wanted_by_compaction()
        there = chained & search.found.keys()
        return {uuid for uuid in there if not self._is_read(search.found[uuid])}

    @cached_property
    def _plain(self) -> int | None:
        """Where in the file the last plain compaction before the last one is, None if nowhere."""
        return max((start for start in self._earlier if not self._says_at(start)), default=None)

    @cached_property
    def _archived_plain(self) -> int:
        return self._archived.plain()  # which reads the archive

    def _is_read(self, entry: Carried) -> bool:
        """Tell whether clients read a line of the whole file.

        Of a large one they read what stands behind its last plain compaction.
        """
        if self._size <= loading.SMALL_FILE:
            return True
        if self._plain is not None:
            return entry.segment is None and entry.span.start >= self._plain
        if entry.segment is not None:
            return entry.segment >= self._archived_plain
        # The first prompt was carried along from segment 0.
        is_first = entry.reason == BEGINS and entry.span.start < self._prefix
        return not (is_first and self._archived_plain)

    def _judged_orphans(self, search: Search) -> set[str]:
        """Return what only rows that a rotation has judged continue, and that is nowhere here."""
        orphans = self._tail.parents - search.found.keys()
        if not orphans or self._judged == self._cut:
            return set()
        since = Span(self._judged, self._end)
        return orphans - ancestry.read_tail(self._survey, since, self._room.take).parents

    def refusals(self, loaded: Loaded, search: Search, before: Before) -> Iterator[str]:
        """Yield why a resume might not be the same, each with what helps."""
        behind, copies = self._tail, before.copies - search.needed.listed
        if not behind.is_spoken and loaded != "preserved":
            # Its client ended in between. What newer ones send then begins before such a
            # compaction, and if nothing there is loaded, with the first prompt, which stays.
            yield f"The last compaction has no summary. {_NEXT_ROWS}"
        if search.hidden is not None:
            yield (
                f"A row that a resume needs may be in segment {search.hidden}, which is missing or "
                "cannot be read. Put it back from a backup, or wait for the session's next "
                "compaction."
            )
        crossing = behind.parents
        if before.copies:
            crossing = ancestry.crossing(self._survey, self._behind, before.copies)
        is_archived = any(entry.segment is not None for entry in search.found.values())
        is_lost = bool(crossing & before.continued) or is_archived
        is_lost = loaded == "nothing" and is_lost and not self._says_again(search)
        if self._is_old and (is_lost or (loaded == "preserved" and self._unread(search))):
            yield (
                "A row after the last compaction continues one from before it, and clients from "
                f"2.1.80 on have lost that branch. {NEXT_COMPACTION}"
            )
        is_by_time = loading.goes_by_time(self._compaction.version)
        if (
            is_by_time
            and (self._is_old or loaded == "everything")
            and behind.newest < before.newest
        ):
            yield (
                "A row from before the last compaction is newer than all rows after it. Wait for "
                "newer rows, or for a compaction by Claude Code 2.1.112 or later."
            )
        if loaded == "everything" and before.is_named:
            yield f"A resume continues from a row from before the last compaction. {_NEXT_ROWS}"
        orphans = behind.parents - search.found.keys()
        is_large = loaded == "preserved" and self._size > loading.SMALL_FILE
        if (loaded == "everything" or is_large) and not (
            search.needed.chained <= search.found.keys() | behind.uuids | orphans
            and ancestry.is_near(self._survey, self._behind, orphans, seconds(before.newest))
        ):
            yield (
                "A row after the last compaction continues one that is nowhere in the file. "
                + NEXT_COMPACTION
            )
        if copies and self._are_told_by_place(loaded):
            yield from self._of_copies(copies, search, crossing)

    def _of_copies(self, copies: set[str], search: Search, crossing: set[str]) -> Iterator[str]:
        """Yield why rows that stand on both sides of the cut are in the way, if they are."""
        listed, carried = search.needed.listed, search.answers
        is_apart = ancestry.is_told_apart(self._survey, self._behind, copies, listed, carried)
        if not is_apart or crossing - search.found.keys():
            many = f"{len(copies):,} {'row occurs' if len(copies) == 1 else 'rows occur'}"
            yield f"{many} both before and after the last compaction. {NEXT_COMPACTION}"

    def _misleads(self, loaded: Loaded, search: Search, before: Before, began: Opening) -> bool:
        """Tell whether clients would go on from a session's first row, and not in the whole file.

        Copies of rows from before the compaction do not count if no turn goes on from them.
        """
        if loaded == "everything":
            return False
        parents, copies = self._tail.parents, before.copies
        if copies and ancestry.is_told_apart(
            self._survey, self._behind, copies, set(), search.answers
        ):
            parents = ancestry.crossing(self._survey, self._behind, copies)
        time, orphans = began.time or "", parents - search.found.keys()
        is_newer = loading.goes_by_time(self._compaction.version) and self._tail.newest < time
        is_apart = ancestry.is_near(self._survey, self._behind, orphans, seconds(time))
        is_named = began.uuid is not None and began.uuid == self._tail.checkpoint
        may_be = began.uuid in parents or is_named or is_newer or not is_apart
        # The archive is asked last, and of hardly any session.
        return may_be and (loaded == "nothing" or not self._is_read(began.line))

    def _notices(self, loaded: Loaded, search: Search) -> Iterator[str]:
        """Yield why clients would load more of the shorter file than they do of the whole."""
        if loaded == "preserved":
            wanted = search.needed.required | search.needed.walked.keys()
            found = [search.found[uuid] for uuid in wanted if uuid in search.found]
            if not all(map(self._is_read, found)):
                yield (
                    "The last compaction preserved a row from before a plain compaction. "
                    + NEXT_COMPACTION
                )

    def _says_again(self, search: Search) -> bool:
        """Tell whether a compaction goes along that says what it preserved.

        Of what goes along with it newer clients load as little as of the whole.
        """
        here = {entry.span.start for entry in search.found.values() if entry.segment is None}
        return any(start in here and self._says_at(start) for start in self._earlier)

    def _are_told_by_place(self, loaded: Loaded) -> bool:
        """Tell whether clients drop a row by where it stands for the first time."""
        return loaded == "preserved" or (loaded == "nothing" and self._said_before)


def _order(entry: Carried) -> tuple[bool, int, int]:
    return entry.segment is None, entry.segment or 0, entry.span.start


# ── what else a resume is asked ───────────────────────────────────────────────────────────────────

of_conversation: Final = loading.of_conversation

says_at: Final = loading.says_at


def last_row(source: Source, end: int) -> Span | None:
    """Return the last row of the conversation before an offset, no agent's, without its newline.

    Clients go on from the row that stands last, whatever follows it (2.1.112 and later).
    """
    for start, stop, row in Survey(source, parsing.WINDOW).backward(end):
        if row is not None and row.uuid and not row.is_sidechain:
            return Span(start, stop)
    return None


def ends_in_a_row(source: Source) -> bool:
    """Tell whether a file's last line is a row of the conversation, whole."""
    last = next(Survey(source, parsing.WINDOW).backward(source.size()), None)
    return last is not None and last[2] is not None and bool(last[2].uuid)


def dangles(source: Source, prefix: int, judged: int) -> bool:
    """Tell whether a row from offset `judged` on continues one that is nowhere in the file.

    A user went back, in a client that ran, to a message that a rotation had archived: the client
    knows it still, and what it writes from then on continues a row of the archive. Never wrong
    where it says no: whether the archive has the row, and what else a resume needs then, is for
    `carried_lines` to say.

    What stands before was there when the session was rotated, or carried along, in the first
    `prefix` bytes. The first row of those is the session's first prompt, mostly, and may be one
    that clients would not load of the whole. True as well if the rows are too many to tell.
    """
    survey, end = Survey(source, parsing.WINDOW), source.size()
    try:
        parents = ancestry.read_tail(survey, Span(min(judged, end), end), Room().take).parents
    except NoPlanError:
        return True
    first = None
    for start, _, row in survey.forward(Span(0, judged)) if parents else ():
        if row is not None and row.uuid is not None:
            if first is None and start < prefix and row.uuid in parents:
                return True
            first = row.uuid
            parents.discard(row.uuid)
    return bool(parents)
