"""The clients whose sessions are known: a row for each format, in the order of recognition.

Rule: nothing outside this package knows a client's record types, and nothing inside it opens a
session file: it is handed lines. A format's modules are loaded when they are asked for, so that
those of other clients cost a start nothing; mypy proves each against its protocol right here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.formats.client import Client, Reader


@dataclass(frozen=True, slots=True)
class Row:
    """A format: its client's name, and what loads its two modules."""

    name: str
    client: Callable[[], Client]
    reader: Callable[[], Reader]


def _claude() -> Client:
    from sessrotate.formats import claude  # noqa: PLC0415 - the rule of this module

    return claude


def _claude_reader() -> Reader:
    from sessrotate.formats import claude_reader  # noqa: PLC0415 - the rule of this module

    return claude_reader


def _codex() -> Client:
    from sessrotate.formats import codex  # noqa: PLC0415 - the rule of this module

    return codex


def _codex_reader() -> Reader:
    from sessrotate.formats import codex_reader  # noqa: PLC0415 - the rule of this module

    return codex_reader


def _gemini() -> Client:
    from sessrotate.formats import gemini  # noqa: PLC0415 - the rule of this module

    return gemini


def _gemini_reader() -> Reader:
    from sessrotate.formats import gemini_reader  # noqa: PLC0415 - the rule of this module

    return gemini_reader


def _gemini_json() -> Client:
    from sessrotate.formats import gemini_json  # noqa: PLC0415 - the rule of this module

    return gemini_json


def _gemini_json_reader() -> Reader:
    from sessrotate.formats import gemini_json_reader  # noqa: PLC0415 - the rule of this module

    return gemini_json_reader


def _opaque() -> Client:
    from sessrotate.formats import opaque  # noqa: PLC0415 - the rule of this module

    return opaque


def _opaque_reader() -> Reader:
    from sessrotate.formats import opaque_reader  # noqa: PLC0415 - the rule of this module

    return opaque_reader


CLIENTS: tuple[Row, ...] = (
    Row("claude", _claude, _claude_reader),
    Row("codex", _codex, _codex_reader),
    # An object on one line is metadata to the format of lines, if it is not a session of its own.
    Row("gemini", _gemini_json, _gemini_json_reader),
    Row("gemini", _gemini, _gemini_reader),
)
"""One row a format. A client with two formats has two rows of one name."""

_OPAQUE: Final = Row("", _opaque, _opaque_reader)

HEAD: Final = 256 * 1024
"""Bytes by which a file is recognised."""


def clients() -> Iterator[Client]:
    """Yield all formats in the order of recognition; each is loaded when it is come to."""
    for row in CLIENTS:
        yield row.client()


def of(head: bytes, *, is_whole: bool) -> Client | None:
    """Return whose session begins with these bytes, None if nobody's that is known.

    `head` are the first `HEAD` bytes of a file; `is_whole`: they are all of it.
    """
    return next((each for each in clients() if each.recognise(head, is_whole=is_whole)), None)


def first() -> Client:
    """Return the format that stands in where a session's bytes tell none.

    An empty file is a session of it, and so is one whose beginning is torn and that still has its
    compactions.
    """
    return CLIENTS[0].client()


def named(name: str, head: Callable[[], bytes]) -> Client | None:
    """Return the format of the client of this name, None if there is none.

    Where it has several, the one that recognises what `head` gives; else the first of them.
    """
    rows = [row for row in CLIENTS if row.name == name]
    if len(rows) > 1:
        data = head()
        for row in rows:
            if row.client().recognise(data, is_whole=len(data) < HEAD):
                return row.client()
    return rows[0].client() if rows else None


def of_set(name: str | None, head: Callable[[], bytes]) -> Client:
    """Return the format of segments: of the client that their manifest names, else by content.

    `head` gives the first `HEAD` bytes of the session, and is asked only where the name does not
    tell. Without a name, segments of nobody's are taken as `split` took them; with a name that
    nobody has (a later version's, or an invented one), they are opaque.
    """
    found = named(name, head) if name is not None else None
    if found is None:
        data = head()
        found = of(data, is_whole=len(data) < HEAD)
    if found is None:
        return first() if name is None else _OPAQUE.client()
    return found


def reader(client: Client) -> Reader:
    """Return what reads the records of a client's format."""
    rows = (row for row in CLIENTS if row.client() is client)
    return next(rows, _OPAQUE).reader()
