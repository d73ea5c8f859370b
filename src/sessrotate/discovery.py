"""All sessions of the machine, for a list: live ones, and those of which only the archive is left.

Rule: only the edges of files are read, and what cannot be read is passed over or shown with what
is known; a list is not the place to complain. Empty and warm-up sessions are hidden unless asked
for, and agents' transcripts are counted with their session.
"""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from sessrotate import archive, formats, manifest, names, place
from sessrotate.errors import DamagedError, SessrotateError
from sessrotate.formats import claude, claude_agents, claude_chain, claude_edges
from sessrotate.formats.sight import EDGE
from sessrotate.segments import content, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sessrotate.formats.claude_chain import Link
    from sessrotate.formats.client import Client
    from sessrotate.formats.sight import Sight, Title
    from sessrotate.manifest import Manifest
    from sessrotate.model import Codec
    from sessrotate.place import Place

_INDEX: Final = "sessions-index.json"


@dataclass(frozen=True, slots=True)
class Listed:
    """A session in the list. Sizes are bytes.

    `client` is its client's name, `session` its id, `path` its live file; `place` is None for
    clients whose sessions are not rotated in place.

    `bytes` is the live file's size, None if that is gone; `archived_bytes` what its archive holds,
    not compressed, None if its manifest cannot be read; `segments` how many are archived.
    `side_bytes` are agents' transcripts and tools' results beside it. `modified` is when the live
    file changed (nanoseconds since 1970), or else the archive.
    """

    client: str
    session: str
    path: Path
    place: Place | None
    edges: Sight
    bytes: int | None
    archived_bytes: int | None
    segments: int
    side_bytes: int
    modified: int
    boundaries: frozenset[str]
    """The uuids of the compactions that open archived segments."""


@dataclass(slots=True)
class _Project:
    """What the folder of a project holds; sizes of agents' transcripts by session."""

    live: dict[str, os.stat_result] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    agents: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    archives: set[str] = field(default_factory=set)
    titles: dict[str, Title] = field(default_factory=dict)


def sessions(*, hidden: bool = False) -> Iterator[Listed]:
    """Yield the sessions of all clients, one client's after the other's.

    Claude Code's come in the order of projects and ids, others' in the order of their files. With
    `hidden` also those that nobody used: empty ones, warm-ups, agents' rows only.
    """
    for client in formats.clients():
        found = _in_projects() if client is claude else _elsewhere(client)
        for listed in found:
            if hidden or listed.edges.standing == "session":
                yield listed


def _in_projects() -> Iterator[Listed]:
    """Yield the sessions of Claude Code."""
    projects = claude.projects_folder().resolve()
    known = {path.name for path in (*claude.listed(projects), *claude.listed(place.root()))}
    for name in sorted(known - place.OURS):
        found = _project(projects / name, place.root() / name)
        for session in sorted(found.live.keys() | found.archives):
            where = place.named(projects, name, session)
            if where is not None:
                yield _listed(where, found)


def _elsewhere(client: Client) -> Iterator[Listed]:
    """Yield the sessions of a client that nothing is rotated of in place."""
    reader = formats.reader(client)
    for path in client.sessions():
        with suppress(OSError):
            status = path.stat()
            head, tail = _edges(path.parent, path.name)
            yield Listed(
                client=client.NAME,
                session=client.session_of(path.name),
                path=path,
                place=None,
                edges=reader.sight(head, tail, is_whole=status.st_size <= EDGE),
                bytes=status.st_size,
                archived_bytes=0,
                segments=0,
                side_bytes=0,
                modified=status.st_mtime_ns,
                boundaries=frozenset(),
            )


def continued(where: Place) -> tuple[Link, ...]:
    """Return the chain of sessions that one is in, each with the reason; at least itself.

    The edges of all its project's sessions are read.
    """
    found = _project(where.live.parent, where.archive.parent)
    project = {}
    for session in found.live.keys() | found.archives | {where.session}:
        place_of = place.named(where.live.parent.parent, where.project, session)
        if place_of is not None:
            listed = _listed(place_of, found)
            head, tail = _edges(place_of.live.parent, place_of.live.name)
            project[session] = claude_chain.Neighbour(
                listed.edges, claude_edges.uuids(head, tail) | listed.boundaries
            )
    return claude_chain.continued(where.session, project)


def _project(folder: Path, archives: Path) -> _Project:
    found = _Project()
    for entry in _entries(folder):
        name = entry.name
        with suppress(OSError):
            if entry.is_dir():
                found.folders.add(name)
            elif name == _INDEX:
                with suppress(DamagedError):
                    data = archive.read_small(folder, name, manifest.MAX_BYTES)
                    found.titles = claude_edges.index_titles(data)
            elif not name.endswith(claude.SUFFIX) or not entry.is_file():
                continue
            elif name.startswith(claude.AGENT):
                head, _ = _edges(folder, name)
                size = entry.stat().st_size
                for owner in claude_agents.owners(head):
                    found.agents[owner] += size
            else:
                found.live[names.session_of(name)] = entry.stat()
    found.archives |= {entry.name for entry in _entries(archives) if entry.is_dir()}
    return found


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _listed(where: Place, project: _Project) -> Listed:
    status = project.live.get(where.session)
    listed, modified, archived = None, 0, 0 if where.session not in project.archives else None
    if archived is None:
        listed = _manifest(where)
        archived = listed.source_bytes if listed is not None else None
        with suppress(OSError):
            modified = where.archive.stat().st_mtime_ns
    side = project.agents.get(where.session, 0)
    if where.session in project.folders:
        side += claude_agents.side_bytes(where.live.parent / where.session)
    edges = _look(where, status, listed)
    if edges.title.source == "none" and where.session in project.titles:
        edges = replace(edges, title=project.titles[where.session])
    return Listed(
        client=claude.NAME,
        session=where.session,
        path=where.live,
        place=where,
        edges=edges,
        bytes=status.st_size if status is not None else None,
        archived_bytes=archived,
        segments=len(listed.segments) if listed is not None else 0,
        side_bytes=side,
        modified=status.st_mtime_ns if status is not None else modified,
        boundaries=frozenset(
            entry.segment.boundary.uuid
            for entry in (listed.segments if listed is not None else ())
            if entry.segment.boundary is not None and entry.segment.boundary.uuid is not None
        ),
    )


def _look(where: Place, status: os.stat_result | None, listed: Manifest | None) -> Sight:
    """Look at a session's edges; where it was rotated, its beginning is that of its archive."""
    head = tail = b""
    if status is not None:
        head, tail = _edges(where.live.parent, where.live.name)
    if listed is None or not listed.segments:
        is_whole = status is None or status.st_size <= EDGE
        return claude_edges.look(head, tail, is_whole=is_whole)
    first, last = listed.segments[0], listed.segments[-1]
    early = _beginning(where.archive, names.segment_file(where.session, "numbered", 0, first.codec))
    if status is not None:
        # What a rotation carried stands at the beginning of the live file, titles among it.
        tail = head + b"\n" + tail
    elif last.codec == "plain":
        name = names.segment_file(where.session, "numbered", last.segment.index)
        tail = _edges(where.archive, name)[1]
    return claude_edges.look(early, tail, is_whole=False)


def _manifest(where: Place) -> Manifest | None:
    with suppress(SessrotateError):
        data = archive.read_small(where.archive, names.MANIFEST, manifest.MAX_BYTES)
        return manifest.parse(data)
    return None


def _edges(folder: Path, file: str) -> tuple[bytes, bytes]:
    """Return the first and the last bytes of a file; nothing of one that cannot be read."""
    with suppress(DamagedError, OSError), opened(folder, file) as stream:
        head = stream.read(EDGE) or b""
        if len(head) < EDGE:
            return head, head
        stream.seek(max(-EDGE, -os.fstat(stream.fileno()).st_size), os.SEEK_END)
        return head, stream.read(EDGE) or b""
    return b"", b""


def _beginning(folder: Path, file: str) -> bytes:
    """Return the first bytes of a segment, compressed or not."""
    data = b""
    with suppress(DamagedError, OSError), opened(folder, file) as stream:
        codec: Codec = "zstd" if file.endswith(names.CODEC_SUFFIX["zstd"]) else "plain"
        for buffer, size in content(stream, codec):
            data += buffer[: min(size, EDGE - len(data))]
            if len(data) == EDGE:
                break
    return data
