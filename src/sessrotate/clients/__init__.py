"""The clients whose sessions are known: a folder for each, and its name in `CLIENTS`.

Promise: lines of a session → what they mean: boundaries, times, titles, who says what. In come
bytes of lines; out come the values of `model`, `view`, `kinds` and `preview`, the same for all.
May import `parsing`, `system` and the words that everybody uses.

Rule: nothing outside this package knows a client's record types, and nothing inside it opens a
live session file: it is handed lines. A format's modules are loaded when they are asked for, so
that those of other clients cost a start nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from sessrotate.errors import NotASessionError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.clients.protocol import Client, Format, Reader
    from sessrotate.system.source import Source


CLIENTS: tuple[str, ...] = ("claude", "codex", "gemini")
"""The clients, each a folder here, in the order in which a session is recognised."""

_UNKNOWN: Final = "opaque"

HEAD: Final = 256 * 1024
"""Bytes by which a file is recognised."""


def formats() -> Iterator[Format]:
    """Yield the formats of all clients in the order of recognition, none of them loaded."""
    for name in CLIENTS:
        yield from _folder(name)


def _folder(name: str) -> tuple[Format, ...]:
    found: tuple[Format, ...] = import_module(f"{__name__}.{name}").FORMATS
    return found


def clients() -> Iterator[Client]:
    """Yield all formats in the order of recognition; each is loaded when it is come to."""
    for each in formats():
        yield each.client()


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
    return next(clients())


def named(name: str, head: Callable[[], bytes]) -> Client | None:
    """Return the format of the client of this name, None if there is none.

    Where it has several, the one that recognises what `head` gives; else the first of them.
    """
    found = [each.client() for each in formats() if each.name == name]
    if len(found) > 1:
        data = head()
        for client in found:
            if client.recognise(data, is_whole=len(data) < HEAD):
                return client
    return found[0] if found else None


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
        return first() if name is None else _folder(_UNKNOWN)[0].client()
    return found


def reader(client: Client) -> Reader:
    """Return what reads the records of a client's format."""
    found = (each for each in formats() if each.client() is client)
    return (next(found, None) or _folder(_UNKNOWN)[0]).reader()


def client_of(source: Source) -> Client:
    """Return whose session an open file is, by its first bytes; an empty one is Claude Code's.

    Raises NotASessionError if it is nobody's that is known.
    """
    found = recognised(source)
    if found is None:
        name = printable(str(source.path))
        raise NotASessionError(f"{name} is no session of a client that sessrotate knows.")
    return found


def recognised(source: Source) -> Client | None:
    """Return whose session an open file is, None if it is nobody's that is known."""
    size = source.size()
    if not size:
        return first()
    return of(source.read_at(0, min(HEAD, size)), is_whole=size <= HEAD)
