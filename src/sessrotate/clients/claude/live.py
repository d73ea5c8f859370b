"""Which rows from before its last compaction a resume of a Claude Code session loads.

Rule: these are the rows that a rotation carries (`contract`), found in another way: the segments
are read from the newest back, plain or compressed, and only while rows are missing. A row that is
nowhere is left out, as clients do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.clients.claude.carried_rows import Needed, preserved
from sessrotate.clients.claude.rows import Row, compaction_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sessrotate.parsing.records import Record


def needed_by(tail: Iterable[Record]) -> Needed:
    """Return which rows from before it the newest segment needs; its first row is a compaction."""
    needed, own = Needed(), set[str]()
    for number, record in enumerate(tail):
        row = row_of.of(record) or Row()
        if not number and (compaction := compaction_of.of(record)) is not None:
            needed = preserved(compaction)
        if row.uuid is not None:
            own.add(row.uuid)
        if row.parent_uuid is not None and row.parent_uuid not in own:
            needed.chained.add(row.parent_uuid)
    needed.chained -= own
    needed.listed -= own
    return needed


def found(needed: Needed, older: Iterable[Callable[[], Iterator[Record]]]) -> Iterator[Record]:
    """Yield the needed rows in the order of the history.

    `older` gives what stands before, the nearest first, each to be read as often as is needed.
    """
    parts, taken = [], set[str]()
    for part in older:
        if not needed.wanted() - taken:
            break
        numbers = _numbers(needed, taken, part())
        if numbers:
            parts.append((part, numbers))
        elif parts:
            break  # what two neighbours do not have is nowhere
    for part, numbers in reversed(parts):
        for number, record in enumerate(part()):
            if number in numbers:
                yield record


def _numbers(needed: Needed, taken: set[str], rows: Iterator[Record]) -> set[int]:
    """Return which rows are needed, by number, and add them to those that are `taken`."""
    known: dict[str, tuple[int, str | None]] = {}
    for number, record in enumerate(rows):
        row = row_of.of(record)
        if row is not None and row.uuid is not None:
            known[row.uuid] = number, row.parent_uuid
    numbers = set()
    while here := (needed.wanted() - taken) & known.keys():
        taken |= here
        for uuid in here:
            number, parent = known[uuid]
            numbers.add(number)
            needed.follow(uuid, parent)
    return numbers
