"""What the made-up client needs to go on: the rows that its last compaction names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from sessrotate.clients.in_place import NEXT_COMPACTION, NOTHING, Archived, Carried, LivePlan
from sessrotate.model import Scan, Span
from sessrotate.system.source import Source
from support.made_up.client import row_of


def of_conversation(scanned: Scan, _start: int) -> Scan:
    return scanned


def plan(
    source: Source,
    boundaries: Sequence[int],
    end: int,
    archived: Archived = NOTHING,
    *,
    prefix: int = 0,  # noqa: ARG001 - the protocol's
    judged: int = 0,  # noqa: ARG001 - as above
    progress: Callable[[int], None] = lambda _done: None,
) -> LivePlan:
    """Return what a resume needs of what stands before the last compaction."""
    cut = boundaries[-1]
    compaction = row_of(source.read_at(cut, source.line_end(cut, end) - cut))
    wanted = set(compaction.get("needs", ()))
    found: dict[int, Carried] = {}
    hidden: int | None = None
    for index, segment in chain([(None, source)], archived.segments()):
        if wanted <= found.keys():
            break
        if segment is None:
            hidden = index
            continue
        for number, span in _lines(segment, cut if index is None else segment.size()):
            if number in wanted:
                found.setdefault(number, Carried(span, "named by the compaction", index))
    progress(end)
    lacks = wanted - found.keys()
    refusals = (f"Row {min(lacks)} is nowhere. {NEXT_COMPACTION}",) if lacks else ()
    carried = tuple(found[number] for number in sorted(found))
    return LivePlan(cut, carried, refusals, hidden if lacks else None)


def says_at(_source: Source, _line: Span) -> bool:
    return True


def dangles(_source: Source, _prefix: int, _judged: int) -> bool:
    return False


def last_row(source: Source, end: int) -> Span | None:
    return next((span for _, span in reversed([*_lines(source, end)])), None)


def ends_in_a_row(source: Source) -> bool:
    return bool(row_of(source.read_at(0, source.size()).rstrip(b"\n").rpartition(b"\n")[2]))


def _lines(source: Source, end: int) -> Iterator[tuple[int, Span]]:
    """Yield the number of each row before `end`, and where it stands."""
    start = 0
    while start < end:
        stop = source.line_end(start, end)
        if row := row_of(source.read_at(start, stop - start)):
            yield row["n"], Span(start, stop)
        start = stop + 1
