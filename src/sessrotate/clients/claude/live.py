"""Which rows from before its last compaction a resume of a Claude Code session loads.

Rule: the same rows that a rotation carries (`claude_contract`), found in another way: whatever
holds the session, plain or compressed, is read line by line from its end, and only as far as
rows are missing. What is nowhere is not missed, as clients do not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sessrotate.clients.claude.lasting import preserved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sessrotate.parsing.records import Record

    Row = dict[str, Any]


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


def row_of(record: Record) -> Row | None:
    """Return what a record holds as JSON, None if it is no object, or too long to be held."""
    return parsed(record.line) if record.is_whole else None


def parsed(line: bytes) -> Row | None:
    """Return what a line holds as JSON, None if it is no object."""
    if line[:1] not in {b"{", b" ", b"\t"}:
        return None
    try:
        row = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def needed_by(tail: Iterable[Record]) -> Needed:
    """Return which rows from before it the newest segment needs; its first row is a compaction."""
    wanted, own = Needed(), set[str]()
    for number, record in enumerate(tail):
        row = row_of(record) or {}
        if not number:
            kept = preserved(row)
            wanted.listed |= kept.listed
            if kept.ends is not None:
                first, last = kept.ends
                wanted.walked[last] = first
        if (uuid := text(row, "uuid")) is not None:
            own.add(uuid)
        parent = text(row, "parentUuid")
        if parent is not None and parent not in own:
            wanted.chained.add(parent)
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
        row = row_of(record) or {}
        if (uuid := text(row, "uuid")) is not None:
            known[uuid] = number, text(row, "parentUuid")
    numbers = set()
    while here := needed.missing() & known.keys():
        for uuid in here:
            number, parent = known[uuid]
            numbers.add(number)
            needed.take(uuid, parent)
    return numbers


def text(row: Row, name: str) -> str | None:
    """Return a value that is a text."""
    value = row.get(name)
    return value if isinstance(value, str) else None
