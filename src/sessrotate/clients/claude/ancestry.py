"""Finds the rows from before a cut that rows behind it have to do with.

Rule: of a row that stands there more than once the last copy counts, as for the clients. What is
found says where it stands and why it is needed; memory is bounded by `ROOM`, whatever the rows are.

Three kinds of rows are found: those that the compaction preserved; those that others continue, up
to the root where that matters; and beside these the other parts of the same answers of the model
with their results, which newer clients fetch by the answer's id (calls side by side, 2.1.112 and
2.1.330).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from sessrotate.clients.claude.loading import FILE_HISTORY, Needed
from sessrotate.clients.claude.rows import Link, has_result, turn_of
from sessrotate.clients.claude.tail import PER_NAME, Survey, answer_of, name
from sessrotate.clients.in_place import NEXT_COMPACTION, Carried
from sessrotate.model import Span
from sessrotate.parsing import LONGEST, WINDOW

if TYPE_CHECKING:
    from sessrotate.system.source import Source

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
