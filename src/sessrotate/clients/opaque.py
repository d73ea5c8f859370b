"""A client that nobody here knows: lines without a meaning, which are kept all the same.

Rule: it says nothing about any line. A manifest may name a client of a later version, or one that
never was; its segments are stitched, verified and listed all the same. What a client and a reader
are asked is answered with what is true of any bytes. Clients take over the answers that are true
of their sessions too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate import names, parsing
from sessrotate.clients.preview import Agent, Sight, Title
from sessrotate.clients.protocol import Format, Reading
from sessrotate.parsing import Record

if TYPE_CHECKING:
    from sessrotate.clients.view import View
    from sessrotate.model import Boundary, Span

FORMATS: Final = (Format("", __name__, __name__),)

NAME: Final = "unknown"

MARKER: Final = b""

NOT_IN_PLACE: Final[str | None] = "sessrotate does not know what its client needs from the file."


def recognise(_head: bytes, *, is_whole: bool) -> bool:  # noqa: ARG001 - the protocol's
    """Recognise nothing."""
    return False


def boundary(_line: Iterable[bytes], _span: Span) -> Boundary | bool:
    """Take every line for opaque."""
    return True


def timestamp(_line: Iterable[bytes], _size: int) -> str | None:
    """Know no time."""
    return None


session_of: Final = names.session_of


def sessions_folder() -> Path:
    """Return the folder that nothing is: it has no sessions of its own."""
    return Path()


def copies(_prefix: str = "") -> Iterator[Path]:
    """Yield nothing."""
    yield from ()


def sessions(_prefix: str = "") -> Iterator[Path]:
    """Find nothing."""
    return iter(())


records: Final = parsing.records


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


def conversation(
    session: Reading,
    *,
    with_agents: bool = False,  # noqa: ARG001 - the protocol's
) -> Iterator[Record]:
    """Yield the newest segment: no more is known of a resume."""
    return session.segment(session.newest)


def rewound(_session: Reading) -> Callable[[Record], bool]:
    """Return what knows of no branch."""
    return lambda _record: False


def agents(_session: Reading) -> list[Agent]:
    """Return nothing."""
    return []


def sight(_head: bytes, _tail: bytes, *, is_whole: bool) -> Sight:  # noqa: ARG001 - the protocol's
    """Return that nothing is in sight."""
    return Sight(Title(), "session", None, None, None, None, None)
