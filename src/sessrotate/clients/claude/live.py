"""Which rows from before its last compaction a resume of a Claude Code session loads.

Rule: these are the rows that a rotation carries (`contract`), found in another way: the segments
are read from the newest back, plain or compressed, and only while rows are missing. A row that is
nowhere is left out, as clients do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sessrotate.clients.claude.carried_rows import preserved
from sessrotate.clients.claude.rows import Row, compaction_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sessrotate.parsing.records import Record


@dataclass(slots=True)
class Needed:
    """Rows that are needed from before a compaction, by uuid, as far as they are known yet."""

    listed: set[str] = field(default_factory=set)
    chained: set[str] = field(default_factory=set)
    walked: dict[str, str] = field(default_factory=dict)
    """A row of a preserved segment that is yet to be found → the segment's first row."""

    taken: set[str] = field(default_factory=set)

    def missing(self) -> set[str]:
        """Return the uuids to look for."""
        return (self.listed | self.chained | self.walked.keys()) - self.taken

    def take(self, uuid: str, parent: str | None) -> None:
        """Note that a row was found, and what it needs in its turn."""
        self.taken.add(uuid)
        if parent is None:
            return
        if uuid in self.chained:
            self.chained.add(parent)
        first = self.walked.get(uuid, uuid)
        if first != uuid:
            self.walked[parent] = first


def needed_by(tail: Iterable[Record]) -> Needed:
    """Return which rows from before it the newest segment needs; its first row is a compaction."""
    wanted, own = Needed(), set[str]()
    for number, record in enumerate(tail):
        row = row_of.of(record) or Row()
        if not number and (compaction := compaction_of.of(record)) is not None:
            kept = preserved(compaction)
            wanted.listed |= kept.listed
            wanted.walked.update(kept.walked)
        if row.uuid is not None:
            own.add(row.uuid)
        if row.parent_uuid is not None and row.parent_uuid not in own:
            wanted.chained.add(row.parent_uuid)
    wanted.chained -= own
    wanted.listed -= own
    return wanted


def found(needed: Needed, older: Iterable[Callable[[], Iterator[Record]]]) -> Iterator[Record]:
    """Yield the needed rows in the order of the history.

    `older` gives what stands before, the nearest first, each to be read as often as is needed.
    """
    parts = []
    for part in older:
        if not needed.missing():
            break
        numbers = _numbers(needed, part())
        if numbers:
            parts.append((part, numbers))
        elif parts:
            break  # what two neighbours do not have is nowhere
    for part, numbers in reversed(parts):
        for number, record in enumerate(part()):
            if number in numbers:
                yield record


def _numbers(needed: Needed, rows: Iterator[Record]) -> set[int]:
    """Return which rows are needed, by number, and take them off what is missing."""
    known: dict[str, tuple[int, str | None]] = {}
    for number, record in enumerate(rows):
        row = row_of.of(record)
        if row is not None and row.uuid is not None:
            known[row.uuid] = number, row.parent_uuid
    numbers = set()
    while here := needed.missing() & known.keys():
        for uuid in here:
            number, parent = known[uuid]
            numbers.add(number)
            needed.take(uuid, parent)
    return numbers
