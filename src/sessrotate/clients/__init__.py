"""The clients whose sessions sessrotate knows: a folder for each, and its name in `CLIENTS`.

Promise: lines of a session → what they mean: boundaries, times, titles, who says what. In come
bytes of lines; out come the values of `model`, `view`, `kinds` and `preview`, the same for all.
May import `parsing`, `system` and the words that everybody uses.

Rule: nothing outside this package knows a client's record types, and nothing inside it opens a
live session file: it is given lines. A format's modules are loaded only when they are needed, so
other clients add nothing to the start-up time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from sessrotate.clients.common import real
from sessrotate.clients.in_place import InPlace
from sessrotate.clients.protocol import Client, Cold, Format, Reader, Telling, nothing
from sessrotate.errors import NotASessionError, printable

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread
    from sessrotate.system.source import Source


CLIENTS: tuple[str, ...] = ("claude", "codex", "gemini")
"""Each is a folder here. A session is recognised by the first of them that claims it."""

_UNKNOWN: Final = "opaque"

HEAD: Final = 256 * 1024
"""Bytes at the beginning of a file by which it is recognised."""


def formats() -> Iterator[Format]:
    """Yield the formats of all clients in the order of recognition, none of them loaded."""
    for name in CLIENTS:
        yield from _folder(name)


def _folder(name: str) -> tuple[Format, ...]:
    """Return what a folder lists as `FORMATS`: mostly nothing, so one of the usual modules."""
    folder = f"{__name__}.{name}"
    usual = (Format(name, f"{folder}.client", f"{folder}.reader"),)
    found: tuple[Format, ...] = getattr(import_module(folder), "FORMATS", usual)
    return found


def clients() -> Iterator[Client]:
    """Yield all formats in the order of recognition; each is loaded when its turn comes."""
    for each in formats():
        yield each.client()


def of(head: bytes, *, is_whole: bool) -> Client | None:
    """Return the format of a file that begins with these bytes, None if no client claims it.

    `head` is the first `HEAD` bytes of the file; `is_whole` says that it is all of them.
    """
    return next((each for each in clients() if each.recognise(head, is_whole=is_whole)), None)


def tell_unread(unread: Unread) -> None:
    """Tell `unread` of each entry of clients' folders that is there and cannot be read."""
    for client in clients():
        if isinstance(client, Telling):
            client.tell_unread(unread)


def keep(path: Path) -> bool:
    """Tell whether a file is in the folder of a client's sessions, by its path or links followed.

    A session there is never a link.
    """
    names = {path.absolute().parent, real(path.parent)}
    folders = [client.sessions_folder().absolute() for client in clients()]
    return any(name.is_relative_to(each) for name in names for each in folders) or any(
        name.is_relative_to(real(each)) for name in names for each in folders
    )


def first() -> Client:
    """Return the format to assume where a session's bytes show none.

    It is assumed of an empty file, and of one whose beginning is torn but whose compactions remain.
    """
    return next(clients())


def named(name: str, head: Callable[[], bytes]) -> Client | None:
    """Return the format of the client with this name, None if there is no such client.

    Of several formats, return the one that recognises what `head` gives, or else the first.
    """
    found = [each.client() for each in formats() if each.name == name]
    if len(found) > 1:
        data = head()
        for client in found:
            if client.recognise(data, is_whole=len(data) < HEAD):
                return client
    return found[0] if found else None


def of_set(name: str | None, head: Callable[[], bytes]) -> Client:
    """Return the format of segments: of the client that their manifest names, or by content.

    `head` gives the first `HEAD` bytes of the session, and is called only if the name does not
    decide. If no client claims the content either, segments without a name are taken as `split`
    took them, and segments with an unknown name (a later version's, say) are opaque.
    """
    found = named(name, head) if name is not None else None
    if found is None:
        data = head()
        found = of(data, is_whole=len(data) < HEAD)
    if found is None:
        return first() if name is None else _folder(_UNKNOWN)[0].client()
    return found


def in_place() -> InPlace:
    """Return the client whose sessions are rotated in place: the first that says how."""
    return cast("InPlace", _declared(CLIENTS, "IN_PLACE"))


def cold() -> Cold:
    """Return the client whose sessions are compressed whole: the first that reads such ones."""
    module = _declared(CLIENTS, "COLD")
    return cast("Cold", nothing(Cold) if module is None else import_module(str(module)))


@cache
def _declared(names: tuple[str, ...], what: str) -> object:
    """Return what the first of these clients' folders that has it calls so; None if none has."""
    folders = (import_module(f"{__name__}.{name}") for name in names)
    return next((getattr(each, what) for each in folders if hasattr(each, what)), None)


def reader(client: Client) -> Reader:
    """Return the reader that belongs to a format."""
    found = (each for each in formats() if each.client() is client)
    return (next(found, None) or _folder(_UNKNOWN)[0]).reader()


def client_of(source: Source) -> Client:
    """Return the format of an open file, by its first bytes; an empty one is Claude Code's.

    Raises NotASessionError if no client claims it.
    """
    found = recognised(source)
    if found is None:
        name = printable(str(source.path))
        raise NotASessionError(f"{name} is not a session file of any supported client.")
    return found


def recognised(source: Source) -> Client | None:
    """Return the format of an open file, None if no client claims it."""
    size = source.size()
    if not size:
        return first()
    return of(source.read_at(0, min(HEAD, size)), is_whole=size <= HEAD)
