"""Which messages a resume of a Gemini CLI session loads, and which of them it sends.

Rule: as the client rebuilds them (0.61.0, `loadConversationRecord`). A message with a known id
takes the place of the one before it. An update of `messages` replaces all messages. `$rewindTo`
takes back a message and everything after it, or all messages if none has that id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

from sessrotate.clients.common import in_order
from sessrotate.clients.gemini.prompts import is_sent
from sessrotate.clients.gemini.rows import NONE, identity, row_of
from sessrotate.clients.gemini.updates import NAMED, UPDATED, messages_in, replaces
from sessrotate.clients.protocol import Reading
from sessrotate.errors import SessrotateError
from sessrotate.parsing.records import Record

_REWIND: Final = b'"$rewindTo"'


def live(session: Reading) -> Iterator[Record]:
    """Yield the lines that a resume needs: metadata, and all from the last full update on.

    If a segment turns out to begin with a torn line instead of such an update, the segment before
    it is read too.
    """
    base = session.newest
    while base and not _is_base(session, base):
        base -= 1
    if base:
        with suppress(SessrotateError):  # a resume does without it where the first one was pruned
            first = next(iter(session.segment(0)), None)
            if first is not None and (row_of(first) or NONE).kind == "metadata":
                yield first
    for index in range(base, session.newest + 1):
        yield from session.segment(index)


def _is_base(session: Reading, index: int) -> bool:
    with suppress(SessrotateError):
        first = next(iter(session.segment(index)), None)
        return first is not None and replaces(first, session.bytes_of)
    return False


def conversation(
    session: Reading,
    *,
    with_agents: bool = False,  # noqa: ARG001 - agents have files of their own
) -> Iterator[Record]:
    """Yield the messages that a resume sends, in its order; those of updates one by one.

    The live lines are read twice. Memory grows with the number of messages.
    """
    order: dict[str, int] = {}
    number = 0
    for record, name in _steps(session, live(session)):
        if record is None:
            _take_back(order, name)
            continue
        if name is not None:
            order[name] = number
        number += 1

    def records() -> Iterator[Record]:
        return (record for record, _ in _steps(session, live(session)) if record is not None)

    for found in in_order(records, [*order.values()]):
        row = row_of(found)
        if row is None or is_sent(row):
            yield found


def rewound(session: Reading) -> Callable[[Record], bool]:
    """Return what tells whether a message was taken back by `$rewindTo`, and did not come again."""
    left: set[str] = set()
    order: dict[str, None] = {}
    if any(_REWIND in record.line for record in session.history()):
        for record, name in _steps(session, session.history()):
            if record is not None and name is not None:
                left.discard(name)
                order[name] = None
            elif record is None and name is None:
                order.clear()  # an update: what it repeats was not taken back
            elif record is None:
                left |= _take_back(order, name)
    return lambda record: bool(left) and identity(record) in left


def _take_back(order: dict[str, Any], name: str | None) -> set[str]:
    """Drop a message and all after it, or all if none has this id; return which those were."""
    names = [*order]
    gone = names[names.index(name) if name in order else 0 :]
    for each in gone:
        del order[each]
    return {*gone}


def _steps(session: Reading, lines: Iterable[Record]) -> Iterator[tuple[Record | None, str | None]]:
    """Yield each message and its id; without a message, the id that is gone back to, or None."""
    for record in lines:
        if replaces(record, session.bytes_of):
            for elements in messages_in(record, session.bytes_of, UPDATED):
                yield None, None
                yield from ((each, identity(each)) for each in elements)
            continue
        row = row_of(record) or NONE
        match row.kind:
            case "rewind":
                yield None, row.rewind_to
            case "metadata" if row.messages is not None:
                for elements in messages_in(record, session.bytes_of, NAMED):
                    yield from ((each, identity(each)) for each in elements)
            case _:
                yield record, identity(record)
