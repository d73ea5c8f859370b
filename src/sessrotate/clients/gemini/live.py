"""Which messages a resume of a Gemini CLI session loads, and which of them it sends.

Rule: as the client rebuilds them (0.61.0, `loadConversationRecord`). A message with a known id
takes the place of the one before it. An update of `messages` replaces all messages. `$rewindTo`
takes back a message and everything after it, or all messages if none has that id.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sessrotate.clients.gemini.prompts import is_sent
from sessrotate.clients.gemini.rows import NONE, identity, row_of
from sessrotate.clients.gemini.updates import NAMED, UPDATED, messages_in, replaces
from sessrotate.errors import SessrotateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.clients.protocol import Reading
    from sessrotate.parsing.records import Record


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


def conversation(session: Reading) -> Iterator[Record]:
    """Yield the messages that a resume sends, in its order; those of updates one by one.

    The live lines are read twice. Memory grows with the number of messages; a message itself is
    held only if it stands in another place in the file than in the conversation.
    """
    order: dict[str, int] = {}
    for number, step in enumerate(_steps(session)):
        if step.identity is None:
            if step.record is None:
                order.clear()
        elif step.record is None:
            _take_back(order, step.identity)
        else:
            order[step.identity] = number
    places, kept = iter(order.values()), {*order.values()}
    held: dict[int, Record] = {}
    expected = next(places, None)
    for number, step in enumerate(_steps(session)):
        if number in kept and step.record is not None:
            held[number] = step.record
        while expected is not None and expected in held:
            found = held.pop(expected)
            row = row_of(found)
            if row is None or is_sent(row):
                yield found
            expected = next(places, None)


def _take_back(order: dict[str, int], identity: str) -> None:
    names = [*order]
    for name in names[names.index(identity) if identity in order else 0 :]:
        del order[name]


@dataclass(frozen=True, slots=True)
class _Step:
    """A message and its id; without a message, the id that is gone back to, or that all are."""

    record: Record | None = None
    identity: str | None = None


def _steps(session: Reading) -> Iterator[_Step]:
    for record in live(session):
        if replaces(record, session.bytes_of):
            for elements in messages_in(record, session.bytes_of, UPDATED):
                yield _Step()
                yield from (_Step(each, identity(each)) for each in elements)
            continue
        row = row_of(record) or NONE
        match row.kind:
            case "rewind":
                yield _Step(None, row.rewind_to)
            case "metadata" if row.messages is not None:
                for elements in messages_in(record, session.bytes_of, NAMED):
                    yield from (_Step(each, identity(each)) for each in elements)
            case _:
                yield _Step(record, identity(record))
