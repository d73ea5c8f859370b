"""Which messages a resume of a Gemini CLI session loads, and which of them it sends.

Rule: as the client rebuilds them (0.61.0, `loadConversationRecord`). A message with a known id
takes the place of the one before it. An update of `messages` replaces all messages. `$rewindTo`
takes back a message and everything after it, or all messages if none has that id.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sessrotate.clients.common import in_order
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

    The live lines are read twice. Memory grows with the number of messages.
    """
    order: dict[str, int] = {}
    number = 0
    for record, name in _steps(session):
        if record is None:
            names = [*order]
            for gone in names[names.index(name) if name in order else 0 :]:
                del order[gone]
            continue
        if name is not None:
            order[name] = number
        number += 1

    def records() -> Iterator[Record]:
        return (record for record, _ in _steps(session) if record is not None)

    for found in in_order(records, [*order.values()]):
        row = row_of(found)
        if row is None or is_sent(row):
            yield found


def _steps(session: Reading) -> Iterator[tuple[Record | None, str | None]]:
    """Yield each message and its id; without a message, the id that is gone back to, or None."""
    for record in live(session):
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
