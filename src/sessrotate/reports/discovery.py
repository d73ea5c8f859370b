"""All sessions of the machine, for a list: live ones, and those of which only the archive is left.

Rule: only the edges of files are read. What cannot be read is shown with what is known, and told
to who asks; what goes away meanwhile is passed over. Empty and warm-up sessions are hidden unless
asked for, and agents' transcripts are counted with their session.
"""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from sessrotate import clients, names
from sessrotate.archive import place
from sessrotate.clients.claude import agents as claude_agents
from sessrotate.clients.claude import client as claude
from sessrotate.clients.claude import continuations, preview
from sessrotate.clients.protocol import Placing
from sessrotate.errors import DamagedError
from sessrotate.reports import archive_summary, file_edges
from sessrotate.segments import compressed, live_header, load, manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.clients.claude.continuations import Link
    from sessrotate.clients.preview import Sight, Title
    from sessrotate.clients.protocol import Client
    from sessrotate.reports.archive_summary import Archived
    from sessrotate.reports.file_edges import Edges

    Unread = Callable[[str, str], None]

_INDEX: Final = "sessions-index.json"


@dataclass(frozen=True, slots=True)
class Listed:
    """A session in the list. Sizes are bytes.

    `client` is its client's name, `session` its id, `path` its live file; `place` is None for
    clients whose sessions are not rotated in place.

    `bytes` is the live file's size, None if that is gone; `file` its device and inode, None if it
    cannot be read. `archived_bytes` is what its archive holds, not compressed, None if its
    manifest cannot be read; `archived_disk_bytes` what that takes; `segments` how many are
    archived. `side_bytes` are agents' transcripts and tools' results beside it. `compactions` and
    `live_tail` (bytes from the last one on) are None where only a scan could tell. `modified` is
    when the live file changed (nanoseconds since 1970), or else the archive.
    """

    client: str
    session: str
    path: Path
    place: Place | None
    edges: Sight
    bytes: int | None
    archived_bytes: int | None
    archived_disk_bytes: int
    segments: int
    side_bytes: int
    compactions: int | None
    live_tail: int | None
    modified: int
    file: tuple[int, int] | None
    boundaries: frozenset[str]
    """The uuids of the compactions that open archived segments."""


@dataclass(slots=True)
class _Project:
    """What the folder of a project holds; sizes of agents' transcripts by session."""

    live: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    agents: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    archives: set[str] = field(default_factory=set)
    titles: dict[str, Title] = field(default_factory=dict)


def _untold(_path: str, _reason: str) -> None:
    """Take what cannot be read, and tell nobody."""


def sessions(*, hidden: bool = False, unread: Unread = _untold) -> Iterator[Listed]:
    """Yield the sessions of all clients, one client's after the other's.

    Claude Code's come in the order of projects and ids, others' in the order of their files. With
    `hidden` also those that nobody used: empty ones, warm-ups, agents' rows only. `unread` is told
    the path of what cannot be read, and why.
    """
    folders: dict[str, None] = {}
    for client in clients.clients():
        found = _in_projects(unread) if client is claude else _elsewhere(client, folders, unread)
        for listed in found:
            if listed.edges.folder is not None:
                folders[listed.edges.folder] = None
            if hidden or listed.edges.standing == "session":
                yield listed


def _in_projects(unread: Unread) -> Iterator[Listed]:
    """Yield the sessions of Claude Code."""
    projects, root = claude.projects_folder().resolve(), place.root()
    known = {name for folder in (projects, root) for name in _folders(folder, unread)}
    for name in sorted(known - place.OURS):
        found = _project(projects / name, root / name, unread)
        for where in place.all_named(projects, name, sorted(found.live | found.archives)):
            listed = _listed(where, found, unread)
            if listed is not None:
                yield listed


def _elsewhere(client: Client, known: Iterable[str], unread: Unread) -> Iterator[Listed]:
    """Yield the sessions of a client that nothing is rotated of in place.

    `known` are the folders in which other clients were run.
    """
    reader = clients.reader(client)
    for path in client.sessions():
        here = file_edges.seen(str(path), unread)
        if here is None:
            continue
        is_packed = compressed.is_session(path.name)
        sight = reader.sight(here.head, here.tail, is_whole=here.is_whole)
        if sight.folder is None and isinstance(reader, Placing):
            sight = replace(sight, folder=reader.folder(path, here.head, known))
        count, tail = (None, None) if is_packed else file_edges.compactions(here, client, 0)
        yield Listed(
            client=client.NAME,
            session=client.session_of(path.name),
            path=path,
            place=None,
            edges=sight,
            bytes=here.size,
            archived_bytes=0,
            archived_disk_bytes=0,
            segments=0,
            side_bytes=0,
            compactions=count,
            live_tail=tail,
            modified=here.modified,
            file=here.file,
            boundaries=frozenset(),
        )


def continuing() -> Iterator[tuple[Path, Link]]:
    """Yield the live files of sessions that continue another one, with the link to that.

    The edges of all sessions of Claude Code are read.
    """
    projects, root = claude.projects_folder().resolve(), place.root()
    for name in sorted({*_folders(projects, _untold), *_folders(root, _untold)} - place.OURS):
        found = _project(projects / name, root / name, _untold)
        neighbours = _neighbours(projects, name, found)
        for session, link in continuations.parents(neighbours).items():
            yield projects / name / f"{session}{claude.SUFFIX}", link


def continued(where: Place) -> tuple[Link, ...]:
    """Return the chain of sessions that one is in, each with the reason; at least itself.

    The edges of all its project's sessions are read.
    """
    found = _project(where.live.parent, where.archive.parent, _untold)
    found.live.add(where.session)
    project = _neighbours(where.live.parent.parent, where.project, found)
    return continuations.continued(where.session, project)


def _neighbours(projects: Path, name: str, found: _Project) -> dict[str, continuations.Neighbour]:
    project = {}
    for where in place.all_named(projects, name, found.live | found.archives):
        listed = _listed(where, found, _untold)
        if listed is not None:
            here = file_edges.seen(str(listed.path), _untold)
            uuids = preview.uuids(here.head, here.tail) if here is not None else frozenset()
            project[where.session] = continuations.Neighbour(
                listed.edges, uuids | listed.boundaries
            )
    return project


def _project(folder: Path, archives: Path, unread: Unread) -> _Project:
    found = _Project()
    for entry in _entries(folder, unread):
        name = entry.name
        with suppress(OSError):
            if entry.is_dir():
                found.folders.add(name)
            elif name == _INDEX:
                with suppress(DamagedError):
                    data = load.read_small(folder, name, manifest.MAX_BYTES)
                    found.titles = preview.index_titles(data)
            elif not name.endswith(claude.SUFFIX) or not entry.is_file():
                continue
            elif name.startswith(claude.AGENT):
                here = file_edges.seen(entry.path, unread)
                for owner in claude_agents.owners(here.head) if here is not None else ():
                    found.agents[owner] += here.size if here is not None else 0
            else:
                found.live.add(names.session_of(name))
    found.archives |= {entry.name for entry in _entries(archives, unread) if entry.is_dir()}
    return found


def _folders(folder: Path, unread: Unread) -> Iterator[str]:
    return (entry.name for entry in _entries(folder, unread) if entry.is_dir())


def _entries(folder: Path, unread: Unread) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        unread(str(folder), error.strerror or type(error).__name__)
        return []


def _listed(where: Place, project: _Project, unread: Unread) -> Listed | None:
    """Return what is known of a session, None if nothing of it is there any more."""
    is_archived = where.session in project.archives
    held = archive_summary.look(where, unread) if is_archived else None
    here = file_edges.seen(str(where.live), unread) if where.session in project.live else None
    if here is None and held is None:
        return None
    held = held or archive_summary.NOTHING
    newest = here or held.away
    sight = _sight(newest, held)
    if sight.title.source == "none" and where.session in project.titles:
        sight = replace(sight, title=project.titles[where.session])
    side = project.agents.get(where.session, 0)
    if where.session in project.folders:
        side += claude_agents.side_bytes(where.live.parent / where.session)
    compactions, tail = _compactions(where, newest, held)
    return Listed(
        client=claude.NAME,
        session=where.session,
        path=where.live,
        place=where,
        edges=sight,
        bytes=here.size if here is not None else None,
        archived_bytes=held.content_bytes,
        archived_disk_bytes=held.disk_bytes,
        segments=len(held.segments),
        side_bytes=side,
        compactions=compactions,
        live_tail=tail if here is not None else 0,
        modified=held.modified if newest is None else newest.modified,
        file=here.file if here is not None else None,
        boundaries=held.boundaries,
    )


def _sight(newest: Edges | None, held: Archived) -> Sight:
    """Return what is in sight; where a session was rotated, it begins with its archive."""
    if not held.head:
        newest = newest or file_edges.NOTHING
        return preview.look(newest.head, newest.tail, is_whole=newest.is_whole)
    # What a rotation carried stands at the beginning of the live file, titles among it.
    tail = held.tail if newest is None else newest.head + b"\n" + newest.tail
    return preview.look(held.head, tail, is_whole=False)


def _compactions(
    where: Place, newest: Edges | None, held: Archived
) -> tuple[int | None, int | None]:
    """Return how many compactions a session has, and its bytes from the last one on."""
    if newest is None:
        return held.compactions, 0
    header = live_header.parse(newest.head[: newest.head.find(b"\n") + 1], where.session)
    if (header is None) != (not held.segments):
        return None, None  # the live file does not go on from its archive: `doctor` says why
    start = live_header.prefix(header) if header is not None else 0
    count, tail = file_edges.compactions(newest, claude, start)
    return None if count is None else held.compactions + count, tail
