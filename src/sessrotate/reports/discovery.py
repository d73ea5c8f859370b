"""All sessions of the machine: live ones, and those of which only the archive is left.

Rule: only the first and last bytes of a file are read, and once. What cannot be read is reported
to the caller and shown with what is known; what disappears meanwhile, or has only zeros, is passed
over. An agent's transcript is no session: its size is added to its session's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients, names
from sessrotate.archive import place
from sessrotate.archive.place import Place
from sessrotate.clients.common import ignored
from sessrotate.clients.preview import Sight
from sessrotate.clients.protocol import Client, Placing, Reader, Telling
from sessrotate.reports import SessionInfo, file_edges, project_folder
from sessrotate.reports.file_edges import NO_ARCHIVE, ArchiveSummary, Edges
from sessrotate.reports.in_parallel import mapped
from sessrotate.reports.project_folder import InProject, ProjectFolder
from sessrotate.system import disk_use, in_use
from sessrotate.units import amount

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread

WORTH_TWO: Final = 5_000
"""Sessions, of 0.2 ms each, that are worth a second process."""

_BRIEF: Final = 3
"""How many times as quick a session is in brief."""


class FoundSession(Struct, frozen=True):
    """A session with what its first and last bytes say, and where its files are.

    `place` is None for the clients whose sessions are not rotated in place. `file` is the device
    and inode of the live file, None if it cannot be read. `boundaries` are the uuids of the
    compactions that open archived segments. `beside` are the paths of its agents' transcripts in
    the folder of its project (Claude Code 2.0.x). It `is_plain` if its live file begins with
    no header, and has no folder beside it.
    """

    info: SessionInfo
    sight: Sight
    place: Place | None
    file: tuple[int, int] | None
    boundaries: frozenset[str]
    beside: tuple[str, ...] = ()
    is_plain: bool = False


Look = Callable[[list[InProject], "Unread"], Iterable[FoundSession]]
"""Looks at the sessions at these places, which are taken off the list."""


def in_projects(
    places: list[InProject], unread: Unread, *, brief: bool = False
) -> Iterator[FoundSession]:
    """Yield the sessions of Claude Code at these places, which are taken off the list.

    In `brief`, what they say is left out, but for whether and when somebody used them: all is there
    that takes room.
    """
    look = partial(_in_project, brief=brief)
    yield from _reported(mapped(look, places, WORTH_TWO * (_BRIEF if brief else 1)), unread)


in_brief: Final = partial(in_projects, brief=True)


def sessions(
    *,
    unread: Unread = ignored,
    places: list[InProject] | None = None,
    look: Look = in_projects,
) -> Iterator[FoundSession]:
    """Yield the sessions of all clients, one client after the other, and copies last.

    Claude Code's come in the order of projects and ids, others' in the order of their files. Those
    that nobody used are among them: empty ones, warm-ups, files with agents' rows only; and the
    copies of session files that no client goes on with. Of Claude Code's, only those at `places`
    are looked at, by `look`, if these are given, and are taken off the list.
    """
    if places is None:
        places = project_folder.places(unread, place.archives(unread=unread))
    folders: dict[str, None] = {}
    files: set[tuple[int, int]] = set()
    ids: set[str] = set()
    copies: list[FoundSession] = []
    for client in clients.clients():
        is_rotated = client is clients.in_place().files
        found = look(places, unread) if is_rotated else _elsewhere(client, folders, unread)
        for session in found:
            ids.add(session.info.id)
            if session.sight.folder is not None:
                folders[session.sight.folder] = None
            yield _counted(session, files)
        copies += _copies(client, folders, unread)
    for copy in copies:
        # One that has its session's id, in the other format, is called as its file, suffix and all.
        name = copy.info.path.name if copy.info.id in ids else copy.info.id
        yield replace(copy, info=replace(copy.info, id=name, name=name))


def _counted(found: FoundSession, files: set[tuple[int, int]]) -> FoundSession:
    """Return a session; a live file that is one of the `files` before it takes nothing more.

    That is one with a second name in a client's folder.
    """
    if found.file is None or found.file not in files:
        files.update([] if found.file is None else [found.file])
        return found
    with suppress(OSError):
        taken = disk_use.allocated(found.info.path.stat())
        info = replace(found.info, disk_bytes=max(0, found.info.disk_bytes - taken))
        return replace(found, info=info)
    return found


def running(found: Iterable[FoundSession]) -> set[str]:
    """Return the ids of the sessions that clients say they are in, and may be."""
    places = {each.place.config: each.place for each in found if each.place is not None}
    return {session for each in places.values() for session in in_use.running(each.registries)}


def _elsewhere(client: Client, known: Iterable[str], unread: Unread) -> Iterator[FoundSession]:
    """Yield the sessions of a client whose sessions are not rotated in place.

    `known` are the folders that other clients ran in.
    """
    paths = [*client.sessions()]
    if isinstance(client, Telling):
        client.tell_unread(unread)
    if paths:  # otherwise its reader is not even loaded
        reader = clients.reader(client)
        look = partial(of_file, client, reader, (*known,))
        beside = reader.beside(paths) if isinstance(reader, Placing) else {}
        for found in _reported(mapped(look, paths, WORTH_TWO), unread):
            if (side := beside.get(found.info.path)) is None:
                yield found
                continue
            size, taken = side
            disk = found.info.disk_bytes + taken
            yield replace(found, info=replace(found.info, side_bytes=size, disk_bytes=disk))


def _copies(client: Client, known: Iterable[str], unread: Unread) -> Iterator[FoundSession]:
    """Yield the copies of a client's session files: never many."""
    paths = [*client.copies()]
    if paths:
        look = partial(of_file, client, clients.reader(client), (*known,))
        for found in _reported(map(look, paths), unread):
            info = replace(found.info, standing="copy")
            yield replace(found, info=info, sight=replace(found.sight, standing="copy"))


def _reported(
    results: Iterable[tuple[FoundSession | None, dict[str, str]]], unread: Unread
) -> Iterator[FoundSession]:
    for found, troubles in results:
        for path, reason in troubles.items():
            unread(path, reason)
        if found is not None:
            yield found


def of_file(
    client: Client, reader: Reader, known: tuple[str, ...], path: Path
) -> tuple[FoundSession | None, dict[str, str]]:
    """Return what is known of a session that is one file, None of one that is gone; and troubles.

    `known` are the folders that other clients ran in.
    """
    troubles: dict[str, str] = {}
    here = file_edges.seen(str(path), troubles.__setitem__)
    if here is None or file_edges.has_only_zeros(here, path):
        return None, troubles
    seen = reader.sight(here.head, here.tail, is_whole=here.is_whole)
    if seen.folder is None and isinstance(reader, Placing):
        seen = replace(seen, folder=reader.folder(path, here.head, known))
    return _found(client, path, seen, here), troubles


def _in_project(item: InProject, *, brief: bool) -> tuple[FoundSession | None, dict[str, str]]:
    troubles: dict[str, str] = {}
    return of_place(*item, troubles.__setitem__, brief=brief), troubles


def of_place(
    where: Place, folder: ProjectFolder, unread: Unread, *, brief: bool = False
) -> FoundSession | None:
    """Return what is known of a session of Claude Code, None if nothing of it is there any more.

    `brief` is as in `in_projects`.
    """
    here = file_edges.seen(str(where.live), unread) if where.session in folder.live else None
    held = None
    if where.session in folder.archives:
        held = file_edges.archive_of(where, unread, here)
    if held is None and here is None:
        return _only_agents(where, folder, unread)
    if held is None and here is not None and file_edges.has_only_zeros(here, where.live):
        return None
    held = held or NO_ARCHIVE
    newest = here or held.away
    header = None if newest is None else file_edges.header(where.session, newest)
    is_copy = (
        header is not None
        and where.session not in folder.archives
        and place.holds_something(where.archive)
    )
    if header is not None and header.index > len(held.segments) and not is_copy:
        if held.is_busy:
            # A rotation was interrupted: all of it is there, and the next run puts it in segments.
            held = replace(held, content_bytes=header.start)
        elif held.content_bytes is not None:  # or it cannot be read, which is said
            end = held.segments[-1].span.end if held.segments else 0
            gone = f"{amount(max(0, header.start - end))} of history is missing here"
            unread(str(where.archive), f"{gone}: `sessrotate doctor` says more")
    edges = newest or file_edges.NOTHING
    seen = file_edges.sight(where.session, edges, held.head, brief=brief)
    if here is None and held.used:
        seen = replace(seen, ended=held.used)
    if is_copy:  # of the session's own live file, in another project
        seen = replace(seen, standing="copy")
    found = _found(
        where.client.files,
        where.live,
        seen,
        here,
        where=where,
        held=held,
        side=folder.side(where, here),
        lost=held is NO_ARCHIVE and here is not None and header is not None and not is_copy,
    )
    is_rotated = here is not None and here.head.startswith(names.ROTATED)
    return replace(
        found,
        beside=folder.beside.get(where.session, ()),
        is_plain=not is_rotated and where.session not in folder.folders,
    )


def _only_agents(where: Place, folder: ProjectFolder, unread: Unread) -> FoundSession | None:
    """Return a session of which its client wrote no file, but its agents' transcripts."""
    beside = folder.beside.get(where.session, ())
    paths = (*beside, *map(str, where.client.beside.transcripts(where.live, where.session)))
    seen = next(filter(None, (file_edges.seen(each, unread) for each in paths)), None)
    if seen is None:
        return None
    sight = replace(file_edges.sight(where.session, seen, b""), standing="agent")
    client, held = where.client.files, replace(NO_ARCHIVE, modified=seen.modified)
    side = folder.side(where, None)
    found = _found(client, where.live, sight, None, where=where, held=held, side=side)
    return replace(found, beside=beside)


def _found(
    client: Client,
    path: Path,
    sight: Sight,
    here: Edges | None,
    *,
    where: Place | None = None,
    held: ArchiveSummary = NO_ARCHIVE,
    side: tuple[int, int] = (0, 0),
    lost: bool = False,
) -> FoundSession:
    """Return a session.

    `side` are the bytes of what lies beside the session, and those of the disk. It is
    `lost` what of a rotated session should be in an archive.
    """
    newest = here or held.away
    modified = (held.modified if newest is None else newest.modified) / 1e9
    session = client.session_of(path.name) if where is None else where.session
    info = SessionInfo(
        id=session,
        name=sight.id or session,
        client=client.NAME,
        project=sight.folder or ("" if where is None else where.project),
        path=path,
        is_live=here is not None,
        is_away=here is None and held.away is not None,
        bytes=0 if here is None else here.size,
        archived_bytes=held.content_bytes,
        archived_disk_bytes=held.disk_bytes,
        archive_missing=lost,
        disk_bytes=(0 if here is None else here.disk) + held.disk_bytes + side[1],
        gain_bytes=0 if where is None or here is None else None,
        waiting_disk_bytes=held.waiting_bytes,
        side_bytes=side[0],
        segments=len(held.segments),
        compactions=held.compactions if newest is None else None,
        live_tail_bytes=0 if here is None else None,
        modified=modified,
        last_used=sight.last_used(modified),
        is_running=False,
        is_restored=False,
        standing=sight.standing,
        title=sight.title,
        branch=sight.branch,
        started=sight.started,
        ended=sight.ended,
        continues=sight.origin,
    )
    file = None if here is None else here.file
    return FoundSession(info, sight, where, file, held.boundaries)
