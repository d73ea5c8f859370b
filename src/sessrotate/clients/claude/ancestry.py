"""The rows behind a cut, and which rows from before it these have to do with.

Rule: a line's row is what `JSON.parse` makes of it, and no line over `LONGEST` is held: such a line
is followed by its brackets (`parsing.json_line`).

The tail is what stands behind the place where a session is cut, as far as it says what else is
needed. It is read once, from the boundary to the end; what is asked rarely is read again then. Only
names are kept, never rows.

Three kinds of rows before the cut are found: those that the compaction preserved; those that others
continue, up to the root where that matters; and beside these the other parts of the same answers of
the model with their results, which newer clients fetch by the answer's id (calls side by side,
2.1.112 and 2.1.330). Of a row that stands there more than once the last copy counts, as for the
clients. What is found says where it stands and why it is needed; memory is bounded by `ROOM`,
whatever the rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from sessrotate.clients.claude.loading import FILE_HISTORY, TRANSCRIPT, Needed
from sessrotate.clients.claude.rows import Link, has_result, link_of, seconds, turn_of
from sessrotate.clients.claude.thread import NEAR
from sessrotate.clients.in_place import NEXT_COMPACTION, Carried
from sessrotate.model import Span
from sessrotate.parsing import LONG, LONGEST, WINDOW, Window, json_line
from sessrotate.parsing.json_typed import DECLINED

if TYPE_CHECKING:
    from sessrotate.parsing import LineSpan
    from sessrotate.system.source import Source

    Found = tuple[int, int, Link | None]
    """Where a line starts and ends, without its newline, and the row on it; None if that is no
    object. No `Span`: there may be millions, and few are kept."""

# ── the rows of a history, each with where it stands ────────────────────────────────────────────

_NAMES: Final[json_line.Shape] = {**dict.fromkeys(link_of.names), "message": {"id": None}}


class Survey:
    """Passes over the lines of a source; one pass at a time, `window` bytes in view."""

    def __init__(self, source: Source, window: int) -> None:
        self._source: Final = source
        self._window: Final = Window(source, window)

    def forward(self, span: Span) -> Iterator[Found]:
        """Yield every line of `span` that is not empty."""
        return self._rows(self._window.forward(span))

    def backward(self, end: int) -> Iterator[Found]:
        """Yield every line before the one that ends at `end`, and that one, the last first."""
        return self._rows(self._window.backward(end))

    def _rows(self, places: Iterator[LineSpan]) -> Iterator[Found]:
        decode, view = link_of.fast, self._window.view
        for start, end, at in places:
            if at == LONG:
                yield start, end, self._long(Span(start, end))
                continue
            try:
                yield start, end, decode(view[at : at + end - start])
            except DECLINED:
                yield start, end, self._refused(Span(start, end))

    def _long(self, span: Span) -> Link | None:
        if span.size > LONGEST:
            return self._refused(span)
        with memoryview(bytearray(span.size)) as line:
            self._source.fill(line, span.start)
            try:
                return link_of.fast(line)
            except DECLINED:
                return self._refused(span)

    def _refused(self, span: Span) -> Link | None:
        found = json_line.values(self._source.pieces(span), span.size, _NAMES)
        return None if found is None else link_of.fitted(found)


# ── the tail ──────────────────────────────────────────────────────────────────────────────────────

PER_NAME: Final = 120
"""What CPython takes for a uuid, with its share of a set."""

_NONE: Final = "00000000-0000-0000-0000-000000000000"
"""What a `last-prompt` names before anything was said (2.1.330)."""


class Tail(Struct):
    """The rows from a boundary on."""

    uuids: set[str] = field(default_factory=set)
    parents: set[str] = field(default_factory=set)
    """The rows that these continue, and that are none of them."""
    answers: set[str] = field(default_factory=set)
    """The answers of the model that have rows here, by the ids of their messages."""
    newest: str = ""
    """The latest time of a row of the conversation."""
    is_spoken: bool = False
    """Whether a message follows the boundary: its summary, or what came after."""
    checkpoint: str | None = None
    """The row that 2.1.330 goes on from, where a `last-prompt` behind all others names one."""


def read_tail(survey: Survey, span: Span, take: Callable[[int], None]) -> Tail:
    """Return what stands in `span`; `take` is told the bytes that are kept for each name."""
    tail = Tail()
    for row in _rows(survey, span):
        uuid, parent = name(row.uuid), name(row.parent_uuid)
        if uuid is not None and uuid not in tail.uuids:
            take(PER_NAME + len(uuid))
            tail.uuids.add(uuid)
        # Mostly the parent came before, and need not be kept twice.
        if parent is not None and parent not in tail.uuids and parent not in tail.parents:
            take(PER_NAME + len(parent))
            tail.parents.add(parent)
        if row.type == "last-prompt":
            tail.checkpoint = name(row.leaf_uuid) if isinstance(row.leaf_uuid, str) else None
        if row.type in TRANSCRIPT and not row.is_sidechain:
            tail.checkpoint = None
            tail.newest = max(tail.newest, name(row.timestamp) or "")
            tail.is_spoken |= row.type in {"user", "assistant"}
        answer = answer_of(row)
        if answer is not None and answer not in tail.answers:
            take(PER_NAME + len(answer))
            tail.answers.add(answer)
    tail.parents -= tail.uuids
    if tail.checkpoint in {*tail.uuids, _NONE}:
        tail.checkpoint = None
    return tail


def crossing(survey: Survey, span: Span, copies: set[str]) -> set[str]:
    """Return what the rows of `span` that are no copies continue, and that is not in `span`."""
    uuids, parents = set[str](), set[str]()
    for row in _rows(survey, span):
        if row.uuid is not None:
            uuids.add(row.uuid)
        if row.uuid not in copies and (parent := name(row.parent_uuid)) is not None:
            parents.add(parent)
    return parents - uuids


def is_told_apart(
    survey: Survey, span: Span, copies: set[str], listed: set[str], carried: set[str]
) -> bool:
    """Tell whether no other row of `span` has to do with these copies of rows from before it.

    None continues one, or is of the same answer, and a resume does not go on from one. The rows
    that the compaction listed have their places, whatever they continue. `carried` are the answers
    of the rows that stay of those before `span`.
    """
    answers: tuple[set[str], set[str]] = {*carried}, set()
    last = checkpoint = None
    for row in _rows(survey, span):
        is_copy = row.uuid in copies
        is_other = not is_copy and row.uuid not in listed
        if is_other and row.parent_uuid in copies:
            return False
        if (answer := answer_of(row)) is not None:
            answers[is_copy].add(answer)
        if row.type in TRANSCRIPT and not row.is_sidechain and row.uuid is not None:
            last = row.uuid
            checkpoint = checkpoint if is_copy else None  # what goes on behind it makes it void
        elif row.type == "last-prompt" and isinstance(row.leaf_uuid, str):
            checkpoint = row.leaf_uuid  # 2.1.330 goes on from there, older clients from the last
    return (checkpoint or last) not in copies and answers[0].isdisjoint(answers[1])


def is_near(survey: Survey, span: Span, orphans: set[str], newest_before: float) -> bool:
    """Tell whether rows whose parents are nowhere follow rows of `span` all the same.

    2.1.112 and later have such a row follow the one before it by time, if that is at most five
    seconds older. `newest_before` is the latest time of the rows before `span`, in seconds.
    """
    times: list[float] = []
    for row in _rows(survey, span) if orphans else ():
        time = seconds(name(row.timestamp))
        if name(row.parent_uuid) in orphans:
            nearest = max((other for other in times if other <= time), default=0.0)
            is_out_of_reach = newest_before < time - NEAR / 1000
            if not time or not (is_out_of_reach or newest_before < nearest):
                return False
        if row.type in TRANSCRIPT and not row.is_sidechain and time:
            times = [*times[-_RECENT:], time]
    return True


_RECENT: Final = 1000
"""Of how many rows the time is kept: what is at most five seconds older is among the last ones."""


def name(text: str | None) -> str | None:
    """Return what names a row, or is its time; a text that is longer than either is none."""
    return None if text is None or len(text) > json_line.MAX_TEXT else text


def answer_of(row: Link) -> str | None:
    """Return the answer of the model that a row is a part of."""
    message = row.message if row.type == "assistant" else None
    return None if message is None else name(message.id)


def _rows(survey: Survey, span: Span) -> Iterator[Link]:
    return (row for _, _, row in survey.forward(span) if row is not None)


# ── the rows before the cut ──────────────────────────────────────────────────────────────────────

ROOM: Final = 20 * 1024 * 1024
"""Bytes that a plan may hold of what it found: about 130,000 rows behind the cut, or 60,000 lines
to carry. A session has thousands of either at most."""

PER_LINE: Final = 350
"""What CPython takes for a line to carry, with its share of sets and lists."""

PRESERVED: Final = "preserved by the compaction"
CONTINUED: Final = "continued by a row after the compaction"
BESIDE: Final = "part of an answer that stays, or a result of its tools"
HISTORY_OF_KEPT: Final = "file history of a message that stays"


class NoPlanError(Exception):
    """Why there can be no plan at all, and what helps; never leaves the planner."""


class Room:
    """How many bytes a plan may still hold."""

    def __init__(self) -> None:
        self.left = ROOM

    def take(self, size: int) -> None:
        """Take so many bytes; raise NoPlanError when there are no more."""
        self.left -= size
        if self.left < 0:
            raise NoPlanError(
                "A resume needs more of the session than can be kept in memory. " + NEXT_COMPACTION
            )


class Search:
    """What is needed of the rows before a cut, and which of them were found.

    `behind` are the uuids of the rows that need no search. `answers` are those of which all parts
    are wanted, by their messages' ids; None if only rows that are named are wanted.
    """

    def __init__(
        self, needed: Needed, behind: set[str], answers: set[str] | None, room: Room
    ) -> None:
        self.needed: Final = needed
        self.found: Final[dict[str, Carried]] = {}
        self.history: Final[list[Carried]] = []
        """File history of what was found in the archive."""
        self.answers: Final[set[str]] = set()
        """The answers of the model that what was found is of, by their messages' ids."""
        self.hidden: int | None = None
        """The sealed segment that may have a row that is needed, but cannot be looked into."""
        self._behind: Final = behind
        self._answers: Final = None if answers is None else {*answers}
        self._parts: Final[set[str]] = set()
        self._beside: Final[set[str]] = set()
        self._room: Final = room
        self._missing: Final = needed.wanted() - behind

    @property
    def lacks(self) -> bool:
        """Whether a row is missing that may not be: of `allUuids` one may be nowhere."""
        needed = self.needed
        return bool(self._missing & (needed.chained | needed.required | needed.walked.keys()))

    def look_back(self, survey: Survey, end: int, segment: int | None = None) -> bool:
        """Find what is missing, last copy first, since a row's parent stands before it.

        Return whether anything was found.
        """
        before = len(self.found)
        for start, to, row in survey.backward(end - 1) if self._missing else ():
            uuid = None if row is None else name(row.uuid)
            if row is not None and uuid is not None and uuid in self._missing:
                self._missing.remove(uuid)
                is_preserved = uuid in self.needed.listed or uuid in self.needed.walked
                reason = PRESERVED if is_preserved else CONTINUED
                self._keep(uuid, row, Carried(Span(start, to), reason, segment))
                if not self._missing:
                    break
        return len(self.found) > before

    def _keep(self, uuid: str, row: Link, line: Carried) -> None:
        parent = name(row.parent_uuid)
        self._room.take(PER_LINE + PER_NAME + len(uuid) + len(parent or ""))
        self.found[uuid] = line
        if (answer := answer_of(row)) is not None:
            self.answers.add(answer)
            if self._answers is not None:
                self._answers.add(answer)
        further = self.needed.follow(uuid, parent)
        if further is not None and further not in self.found and further not in self._behind:
            self._missing.add(further)

    def see(
        self, source: Source, start: int, to: int, row: Link, segment: int | None = None
    ) -> bool:
        """Keep a row if it belongs beside what was found; return whether it is new."""
        uuid = None if self._answers is None else name(row.uuid)
        if uuid is None:
            return False
        answer = answer_of(row)
        if answer is not None:
            if answer not in (self._answers or ()):
                return False
            self._parts.add(uuid)
        elif row.type != "user" or row.parent_uuid not in self._parts:
            return False
        if uuid in self._behind or (uuid in self.found and uuid not in self._beside):
            return False
        if answer is None and not _has_result(source, Span(start, to)):
            return False
        is_new = uuid not in self.found
        self._beside.add(uuid)
        self.needed.chained.add(uuid)
        self._missing.discard(uuid)
        self._keep(uuid, row, Carried(Span(start, to), BESIDE, segment))
        return is_new

    def give_up(self, uuids: set[str]) -> None:
        """Look for these rows no further."""
        self.needed.chained -= uuids
        self._missing.difference_update(uuids)

    def look_further(self, older: Callable[[], Iterator[tuple[int, Source | None]]]) -> None:
        """Look for what is still missing in the sealed segments, the newest first.

        So it is when a user rewinds, in a client that runs, to a prompt that was archived.
        """
        for index, source in older() if self.lacks else ():
            if source is None:
                self.hidden = index
                return
            survey, end, known = Survey(source, WINDOW), source.size(), self.found.keys() | set()
            grows = self.look_back(survey, end, index)
            while grows:
                grows = False
                for start, to, row in survey.forward(Span(0, end)):
                    grows |= row is not None and self.see(source, start, to, row, index)
                grows |= self.look_back(survey, end, index)
            if found := self.found.keys() - known:
                self._keep_history(survey, end, found, index)
            if not self.lacks:
                return

    def _keep_history(self, survey: Survey, end: int, found: set[str], segment: int) -> None:
        for start, to, row in survey.forward(Span(0, end)):
            if row is not None and row.type in FILE_HISTORY and name(row.message_id) in found:
                self._room.take(PER_LINE)
                self.history.append(Carried(Span(start, to), HISTORY_OF_KEPT, segment))


def _has_result(source: Source, span: Span) -> bool:
    """Tell whether a message brings a tool's result; yes of one that is too long to be read."""
    if span.size > LONGEST:
        return True
    row = turn_of(source.read_at(span.start, span.size))
    return row is not None and has_result(row)
