"""SESSION, as people name it (a path, an id, the beginning of an id) → its file.

Rule: exactly one match, or an error that lists the candidates; nothing is guessed. A file in which
nobody has said anything counts only where there is no other, and so does a copy that no client
lists, and a file that is not its session's own (`owner`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import clients, names
from sessrotate.archive import owner, place
from sessrotate.archive.place import Place
from sessrotate.clients import common
from sessrotate.clients.common import UUID, listed, names_in
from sessrotate.clients.preview import EDGE, Sight, edges_of
from sessrotate.clients.protocol import Client
from sessrotate.errors import (
    RefusedError,
    SessrotateError,
    StorageError,
    WrongUsageError,
    printable,
)
from sessrotate.segments import compressed
from sessrotate.system import user_folders
from sessrotate.system.source import Source

SHORTEST_PREFIX: Final = 4
"""How many characters of an id are enough to look for it."""

_LISTED: Final = 10


def path_of(session: str) -> Path:
    """Return the path that `session` names: an existing file or folder, or a session by its id.

    A folder that is called as a session is, without a path, is the session.
    Raises WrongUsageError if there is none, or more than one; StorageError if there is none, and
    something that cannot be read may hide it.
    """
    path = Path(session)
    # Clients keep a folder beside a session that is called like it.
    is_folder = common.is_folder(path) and len(session) >= SHORTEST_PREFIX
    if os.sep in session or (os.path.lexists(session) and not is_folder):
        if not path.is_absolute():
            user_folders.check_here()
        return path
    if len(session) < SHORTEST_PREFIX:
        raise WrongUsageError(
            f"There is no file {printable(session)}. To find a session by its id, give at least "
            f"{SHORTEST_PREFIX} characters of it."
        )
    # While a client gives a file another name, a look at its folder may see neither.
    matches = _matches(session) or _matches(session)
    exact = _exact(matches.values(), session)
    beside = _beside(path) if is_folder else None
    if is_folder and not exact and not (matches and UUID.fullmatch(session)):
        # Of a uuid, Gemini CLI's file name has the beginning only: not `exact`.
        return beside or path
    found = _used(exact or [*matches.values()])
    if beside is not None and _identity(beside) in map(_identity, (each.path for each in found)):
        return beside
    if len(found) == 1:
        return found[0].path
    client = clients.in_place()
    if not found and (alone := dict.fromkeys(path for _, path in client.beside.alone(session))):
        return _of_agents(session, [*alone])
    if not found:
        folder = printable(str(client.files.projects_folder()))
        others = ", ".join(each for each in clients.CLIENTS if each != client.files.NAME)
        elsewhere = f" and the sessions of {others}" if others else ""
        none = f"There is no file or session {printable(session)} (searched {folder}{elsewhere})"
        for unread, reason in hidden().items():
            name = printable(unread, 1000)
            raise StorageError(f"{none}, but it may be in {name}, which cannot be read: {reason}.")
        raise WrongUsageError(f"{none}.")
    raise WrongUsageError(_ambiguous(session, found))


def _matches(session: str) -> dict[object, _Match]:
    """Return the files of sessions whose id begins so, each once, by what tells them apart.

    A path is found by its live file and by its archive, and another file may take it in between.
    """
    paths: dict[Path, _Match] = {}
    for match in _beginning_with(session):
        paths.setdefault(match.path, match)
    matches: dict[object, _Match] = {}
    for path, match in paths.items():
        matches.setdefault(_identity(path), match)
    return matches


def _of_agents(session: str, paths: list[Path]) -> Path:
    """Return the only transcript of a session that has no file of its own.

    Raises WrongUsageError if there are several.
    """
    if len(paths) == 1:
        return paths[0]
    named = "\n".join(f"  {printable(str(path))}" for path in paths[:_LISTED])
    more = f"\n  and {len(paths) - _LISTED} more" if len(paths) > _LISTED else ""
    raise WrongUsageError(
        f"There are only transcripts of agents of {printable(session)}. Give the path of one:\n"
        f"{named}{more}"
    )


def _exact(matches: Iterable[_Match], session: str) -> list[_Match]:
    """Return the files that are called so, or else those that are if capitals make no difference.

    A file's own name counts too: of two files of a session in one folder, it tells which.
    """
    called = [(match, {match.id, match.path.name}) for match in matches]
    found = [match for match, told in called if session in told]
    folded = session.casefold()
    return found or [match for match, told in called if folded in map(str.casefold, told)]


def _beside(folder: Path) -> Path | None:
    """Return the session that a client keeps this folder of; None of a folder of segments."""
    live = folder.with_name(f"{folder.name}{names.SUFFIX}")
    if not common.is_file(live) or any(name.endswith(names.SUFFIXES) for name in names_in(folder)):
        return None
    return live


class _Match(Struct, frozen=True):
    """A file whose session's id begins as was asked for; a `copy` is one that no client lists."""

    path: Path
    client: Client
    is_copy: bool = False

    @property
    def id(self) -> str:
        return self.client.session_of(self.path.name)


class _Seen(Struct, frozen=True):
    """What the edges of a file say, and its size in bytes.

    Of Claude Code's rows, `uuids` are in sight, and `follows` is the first of which one says that
    it follows it.
    """

    sight: Sight
    bytes: int
    uuids: frozenset[str] = frozenset()
    follows: str | None = None

    @property
    def is_used(self) -> bool:
        """Whether it may be meant: a list hides more, but it changes nothing."""
        return self.sight.standing != "empty" or bool(self.uuids)


def _seen(match: _Match) -> _Seen | None:
    """Return what a file's edges say, None of one that is gone or cannot be read."""
    try:
        with Source.itself(match.path) as source:
            size = source.size()
            head, tail = edges_of(source, size)
    except (SessrotateError, OSError):
        return None
    sight = clients.reader(match.client).sight(head, tail, is_whole=size <= EDGE)
    if match.client is not clients.in_place().files:
        return _Seen(sight, size)
    edges = clients.in_place().edges
    return _Seen(sight, size, edges.uuids(head, tail), edges.follows(head))


def _used(matches: list[_Match]) -> list[_Match]:
    """Leave out copies, files that nobody used, and a place that is empty, where others remain."""
    if not matches[1:]:
        return matches
    found = [match for match in matches if not match.is_copy and _may_be_meant(match)] or matches
    there = {match.id for match in found if os.path.lexists(match.path)}
    found = [match for match in found if match.id not in there or os.path.lexists(match.path)]
    seen = ((match, _seen(match)) for match in found)
    return [each for each, said in seen if said is None or said.is_used] or found


def _may_be_meant(match: _Match) -> bool:
    where = place.of(match.path) if match.client is clients.in_place().files else None
    return where is None or owner.may_be_meant(where)


def _ambiguous(session: str, found: list[_Match]) -> str:
    """Return which files `session` may be, what differs, and which of them continues which."""
    is_one = len({each.id for each in found}) == 1
    what = "files" if is_one and len({each.client.NAME for each in found}) == 1 else "sessions"
    way = "Give the path of one" if is_one else "Give more of the id, or a path"
    intro = f"{printable(session)} matches {len(found)} {what}. {way}:"
    more = [f"  and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
    return "\n".join([intro, *(f"  {line}" for line in _told_apart(found[:_LISTED])), *more])


def _told_apart(found: list[_Match]) -> Iterator[str]:
    """Yield the path of each file, and what tells it from the others."""
    known = {match.path: _seen(match) for match in found}
    for match in found:
        told, seen = [match.client.NAME], known[match.path]
        if match.is_copy:
            told.append("a copy")
        if seen is not None:
            told.append(f"{seen.bytes:,} bytes")
            told += [f"last used {seen.sight.ended}"] if seen.sight.ended is not None else []
            others = ((path, other) for path, other in known.items() if path != match.path)
            before = next((path for path, other in others if _goes_on(seen, other)), None)
            told += [f"continues {printable(str(before))}"] if before is not None else []
        yield f"{printable(str(match.path))} ({', '.join(told)})"


def _goes_on(seen: _Seen, other: _Seen | None) -> bool:
    """Tell whether the first row of a file follows one that only another file has."""
    return other is not None and seen.follows in other.uuids - seen.uuids


def _beginning_with(session: str) -> Iterator[_Match]:
    """Yield the files of all sessions whose id begins so, of which some may be gone."""
    for client in clients.clients():
        yield from (_Match(path, client) for path in client.sessions(session))
    # A session whose live file is gone, or put away, is found by its archive.
    for where in place.archives(session):
        yield _Match(where.live if where.project else where.archive, clients.in_place().files)
    for client in clients.clients():
        yield from (_Match(path, client, is_copy=True) for path in client.copies(session))


def _identity(path: Path) -> object:
    """Return what tells a file however it is reached: its device and inode; its path if none is."""
    try:
        status = path.stat()
    except OSError:
        return path
    return status.st_dev, status.st_ino


def archived_of(path: Path) -> Place:
    """Return the place of a session that may have an archive, which is to be changed.

    Raises RefusedError as `archive_of` does, or if the file is a copy.
    """
    where = archive_of(path)
    owner.check(where)
    return owner.named(where)


def archive_of(path: Path) -> Place:
    """Return the place of a session that may have an archive.

    Raises RefusedError as `place.of_archived` does, if its client's sessions have no archives, or
    the file is not its session's own.
    """
    client = None if place.of(path) is not None else _client_of(path)
    if client is not None and client.NOT_IN_PLACE is not None:
        raise RefusedError(
            f"{printable(str(path))} is a session of {client.NAME}, and has no archive: all of it "
            "is in this file."
        )
    where = place.of_archived(path)
    owner.check(where, adopt=True)
    return where


def live_of(path: Path) -> Place:
    """Return the place of a live file that may be changed in place.

    Raises RefusedError if its client's files may not be, or as `place.of_live` does.
    """
    client = _client_of(path)
    if client is not None and client.NOT_IN_PLACE is not None:
        name = printable(str(path))
        raise RefusedError(f"{name} cannot be changed in place. {client.NOT_IN_PLACE}")
    return owner.named(place.of_live(path))


def _client_of(path: Path) -> Client | None:
    """Return whose session a file is; None of what is gone or no session: others say that."""
    try:
        with compressed.opened_session(path) as source:
            return clients.recognised(source)
    except SessrotateError:
        return None


def hidden() -> dict[str, str]:
    """Return what is there and nobody can look into, and the reason: it may hide sessions.

    That is in the folders of clients, and in that of archives.
    """
    found: dict[str, str] = {}
    clients.tell_unread(found.__setitem__)
    for folder in listed(place.root() / place.ARCHIVES, found.__setitem__):
        common.is_folder(folder, found.__setitem__)
    return found
