"""Which session of Claude Code continues which: each compared with the others of its project.

Rule: the first and last bytes of all sessions of the project are read, and what cannot be read
is passed over. What counts as a continuation is decided by `continuations`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from sessrotate.archive import place
from sessrotate.archive.place import Place
from sessrotate.clients.claude import client as claude
from sessrotate.clients.claude import continuations, preview
from sessrotate.clients.claude.continuations import Neighbour
from sessrotate.clients.common import ignored, real
from sessrotate.clients.preview import Continues
from sessrotate.reports import discovery, file_edges, project_folder
from sessrotate.reports.project_folder import ProjectFolder


def links() -> Iterator[tuple[Path, Continues]]:
    """Yield the live files of all sessions that continue another one, with the link to that."""
    projects = real(claude.projects_folder())
    for name, folder in project_folder.every(ignored, place.archives()):
        found = _neighbours(folder.places(projects, name), folder)
        for session, link in continuations.parents(found).items():
            yield projects / name / f"{session}{claude.SUFFIX}", link


def _neighbours(places: Iterable[Place], folder: ProjectFolder) -> dict[str, Neighbour]:
    """Return what the sessions of a project show, by id."""
    found = {}
    for where in places:
        session = discovery.of_place(where, folder, ignored)
        if session is not None:
            here = file_edges.seen(str(where.live), ignored)
            uuids = preview.uuids(here.head, here.tail) if here is not None else frozenset()
            found[where.session] = Neighbour(session.sight, uuids | session.boundaries)
    return found
