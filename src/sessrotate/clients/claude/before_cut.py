"""One pass over the lines before a cut: which of them go along, whatever a resume needs.

Rule: rows of the conversation are only looked at; of settings, the last of each counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from sys import getsizeof
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from sessrotate.clients.claude import tail
from sessrotate.clients.claude.ancestry import HISTORY_OF_KEPT, PER_LINE, Room, Search
from sessrotate.clients.claude.carried_rows import CLEARED, FILE_HISTORY, LAST_WINS, TRANSCRIPT
from sessrotate.clients.claude.rows import Link, Name
from sessrotate.clients.claude.survey import Survey
from sessrotate.clients.claude.tail import Tail
from sessrotate.clients.in_place import Carried
from sessrotate.model import Span
from sessrotate.parsing import json_line

if TYPE_CHECKING:
    from sessrotate.system.source import Source

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
                    time = None if row.is_sidechain else tail.name(row.timestamp)
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
            yield Carried(span, "the current setting of its kind (title, mode, …)")


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
        return HISTORY_OF_KEPT if tail.name(row.message_id) in kept else None
    return None if row.type in CLEARED else "of a type that clients keep"
