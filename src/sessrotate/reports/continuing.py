"""Which session continues which other one of its project, by their first and last bytes.

Rule: each link says why it is there. A fork or a resumed clone repeats rows of its parent, uuids
included (2.0.28 to 2.1.330; a fork begins with the parent's last compaction), so shared rows are
proof. Without them, only a session on the same branch and with the same title of the user's, begun
within minutes, is taken to continue another. 2.1.330 has rows for that too (`derived-from`,
`continued-in`), but no sample of them is known. What cannot be read is passed over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import clients, names
from sessrotate.archive import place
from sessrotate.archive.place import Place
from sessrotate.clients.common import ignored, real
from sessrotate.clients.preview import Continues, Sight
from sessrotate.reports import discovery, file_edges, project_folder
from sessrotate.reports.project_folder import ProjectFolder

SOON: Final = timedelta(minutes=10)
"""How soon after the end of a session the next one begins, for it to be its continuation."""


class Neighbour(Struct, frozen=True):
    """What is in sight of a session: its edges, and the uuids in them."""

    edges: Sight
    uuids: frozenset[str]


def links() -> Iterator[tuple[Path, Continues]]:
    """Yield the live files of all sessions that continue another one, with the link to that."""
    projects = real(clients.in_place().files.projects_folder())
    for name, folder in project_folder.every(ignored, place.archives()):
        found = _neighbours(folder.places(projects, name), folder)
        for session, link in parents(found).items():
            yield projects / name / f"{session}{names.SUFFIX}", link


def _neighbours(places: Iterable[Place], folder: ProjectFolder) -> dict[str, Neighbour]:
    """Return what the sessions of a project show, by id."""
    found, edges = {}, clients.in_place().edges
    for where in places:
        session = discovery.of_place(where, folder, ignored)
        if session is not None:
            here = file_edges.seen(str(where.live), ignored)
            uuids = edges.uuids(here.head, here.tail) if here is not None else frozenset()
            found[where.session] = Neighbour(session.sight, uuids | session.boundaries)
    return found


def parents(project: Mapping[str, Neighbour]) -> dict[str, Continues]:
    """Return for each session that continues another one which that is, and why."""
    holders: dict[str, list[str]] = defaultdict(list)
    titled: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for session, sight in sorted(project.items()):
        for uuid in sight.uuids:
            holders[uuid].append(session)
        if sight.edges.title.source == "custom":
            titled[sight.edges.title.text, sight.edges.branch].append(session)
    parents: dict[str, Continues] = {}
    for session, sight in project.items():
        holding = holders.get(sight.edges.first or "", [])
        older = [each for each in holding if _is_before(project, each, session)]
        if older:
            parents[session] = Continues(_latest(project, older), "same rows")
            continue
        alike = titled.get((sight.edges.title.text, sight.edges.branch), [])
        before = [each for each in alike if each != session and _is_next(project, each, session)]
        if sight.edges.title.source == "custom" and before:
            parents[session] = Continues(_latest(project, before), "same title")
    return parents


def _latest(project: Mapping[str, Neighbour], sessions: Iterable[str]) -> str:
    return max(sessions, key=lambda each: _rank(project, each))


def _rank(project: Mapping[str, Neighbour], session: str) -> tuple[datetime, str]:
    return _when(project[session].edges.ended), session


def _is_before(project: Mapping[str, Neighbour], one: str, other: str) -> bool:
    """Tell whether a session that has the other's first row is the elder of the two.

    It is if the row is not its first; where both begin alike, it is the one that ended first.
    """
    if one == other:
        return False
    if project[one].edges.first != project[other].edges.first:
        return True
    return _rank(project, one) < _rank(project, other)


def _is_next(project: Mapping[str, Neighbour], one: str, other: str) -> bool:
    ended, started = project[one].edges.ended, project[other].edges.started
    if ended is None or started is None:
        return False
    return timedelta(0) <= _when(started) - _when(ended) <= SOON


def _when(time: str | None) -> datetime:
    """Return a time; one that is none is before all others."""
    try:
        return datetime.fromisoformat(time or "")
    except ValueError:
        return datetime.fromisoformat("0001-01-01T00:00:00+00:00")
