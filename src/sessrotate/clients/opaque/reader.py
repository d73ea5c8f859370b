"""Reading segments of a client that nobody here knows: records without a view.

Rule: every line is a record, and none says anything. All that `formats.client.Reader` asks is
answered with what is true of any bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.clients.preview import Sight, Title
from sessrotate.parsing.records import records as lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sessrotate.clients.preview import Agent
    from sessrotate.clients.protocol import Reading
    from sessrotate.clients.view import View
    from sessrotate.parsing.records import Record


def records(pieces: Iterable[bytes | memoryview], segment: int) -> Iterator[Record]:
    """Yield the lines of a segment's body."""
    return lines(pieces, segment)


def said(
    records: Iterable[Record],
    _bytes_of: Callable[[Record], Iterator[bytes]],
) -> Iterator[Record]:
    """Yield the records as they are: each says something of its own, and says it once."""
    return iter(records)


def view(_record: Record) -> View | None:
    """Return None: nobody can tell."""
    return None


def key(_record: Record) -> bytes | None:
    """Return None: only equal bytes are copies."""
    return None


def live(session: Reading) -> Iterator[Record]:
    """Yield the newest segment: no more is known of a resume."""
    return session.segment(session.newest)


def conversation(session: Reading) -> Iterator[Record]:
    """Yield what `live` does."""
    return live(session)


def title(_session: Reading) -> Title:
    """Return no title."""
    return Title("", "none")


def agents(_session: Reading) -> list[Agent]:
    """Return nothing."""
    return []


def side_bytes(_session: Reading) -> int:
    """Return nothing."""
    return 0


def sight(_head: bytes, _tail: bytes, *, is_whole: bool) -> Sight:  # noqa: ARG001 - the protocol's
    """Return that nothing is in sight."""
    return Sight(Title("", "none"), "session", None, None, None, None, None)
