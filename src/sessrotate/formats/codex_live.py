"""What a resume of a Codex session loads, and what of it is sent.

Rule: the client decides. A compaction that carries its history is a complete base, and what came
before it does not matter (0.105 and later; `codex-rs/core`, rollout_reconstruction). Without one,
everything is loaded: a compaction leaves what the user asked, and its summary (0.36 to 0.101).
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from sessrotate.formats import codex_said
from sessrotate.formats.codex_history import items
from sessrotate.formats.codex_rows import row_of, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.formats.client import Reading
    from sessrotate.formats.codex_rows import Row
    from sessrotate.records import Record

_ROLLED_BACK: Final = b'"thread_rolled_back"'
_STARTED: Final = b'"task_started"'

_NOT_SENT: Final = frozenset({"ghost_snapshot", "other"})
"""Items that the client keeps for itself."""


def live(session: Reading) -> Iterator[Record]:
    """Yield what a resume would load, in the order of the file.

    That is the session's first row, and all from the last compaction on that carries its history.
    """
    base = _base(session)
    if base:
        yield from islice(session.segment(0), 1)
    for index in range(base, session.newest + 1):
        yield from session.segment(index)


def conversation(session: Reading) -> Iterator[Record]:
    """Yield what a resume sends, in the order of the conversation: messages, calls, results.

    The items of a compaction's history are records of their own, which stand inside its line.
    Turns that the user took back are left out. The live records are read several times.
    """
    dropped = _dropped(session)
    for number, (record, _) in enumerate(_sent(session)):
        if not any(start <= number < end for start, end in dropped):
            yield record


def _base(session: Reading) -> int:
    """Return the segment with which a resume can start; 0 where it needs all.

    A client from 0.118 to 0.145 that takes back turns goes further back, if there were not as
    many since the compaction.
    """
    taken_back = turns = 0
    for index in range(session.newest, 0, -1):
        records = session.segment(index)
        first = next(records, None)
        is_begun = False
        for record in records:
            if _ROLLED_BACK in record.line:
                taken_back += _rolled_back(row_of(record))
            elif _STARTED in record.line:
                is_begun = True
            elif is_begun and (row := row_of(record)) is not None and _is_prompt(row):
                turns += 1
        if first is not None and _carries(first) and turns >= taken_back:
            return index
    return 0


def _carries(record: Record) -> bool:
    row = row_of(record)
    return row is not None and row.type == "compacted" and "replacement_history" in row.payload


def _is_prompt(row: Row) -> bool:
    return row.type == "response_item" and codex_said.prompt(row) is not None


def _rolled_back(row: Row | None) -> int:
    """Return how many turns a row takes back."""
    if row is None or row.type != "event_msg" or text(row.payload, "type") != "thread_rolled_back":
        return 0
    number = row.payload.get("num_turns")
    return number if type(number) is int and number > 0 else 0


def _sent(session: Reading) -> Iterator[tuple[Record, Row | None]]:
    """Yield the items that are sent, with those that take turns back among them."""
    base = _base(session)
    left = _left_by_summary(session, base)
    segments = chain.from_iterable(map(session.segment, range(left, session.newest + 1)))
    if left > base:
        yield from _asked(session, base, left)
    for record in segments:
        row = row_of(record)
        if row is None:
            continue
        if row.type == "compacted":
            if "replacement_history" in row.payload:
                for item in items(record, session.bytes_of(record)):
                    yield item, row_of(item)
            else:
                yield record, row
        elif _is_sent(row) or _rolled_back(row):
            yield record, row


def _is_sent(row: Row) -> bool:
    return row.type == "response_item" and text(row.payload, "type") not in _NOT_SENT


def _left_by_summary(session: Reading, base: int) -> int:
    """Return the last segment from `base` on that begins with a summary and no history."""
    for index in range(session.newest, base, -1):
        first = next(iter(session.segment(index)), None)
        row = row_of(first) if first is not None else None
        if row is not None and row.type == "compacted":
            return index
    return base


def _asked(session: Reading, start: int, end: int) -> Iterator[tuple[Record, Row | None]]:
    """Yield what the user asked in these segments, which is what such a compaction keeps."""
    for index in range(start, end):
        for record in session.segment(index):
            row = row_of(record)
            if row is not None and _is_prompt(row):
                yield record, row


def _dropped(session: Reading) -> list[tuple[int, int]]:
    """Return which of the sent items were taken back, as ranges of their numbers."""
    dropped: list[tuple[int, int]] = []
    prompts: list[int] = []
    for number, (_, row) in enumerate(_sent(session)):
        if row is None:
            continue
        count = _rolled_back(row)
        if count:
            start = prompts[-count] if count < len(prompts) else next(iter(prompts), number)
            dropped.append((start, number + 1))
            del prompts[-count:]
        elif _is_prompt(row):
            prompts.append(number)
    return dropped
