"""Which session of Claude Code continues which: each compared with the others of its project.

Rule: the first and last bytes of all sessions of the project are read, and what cannot be read
is passed over. What counts as a continuation is decided by `continuations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.archive import place
from sessrotate.clients.claude import client as claude
from sessrotate.clients.claude import continuations, preview
from sessrotate.clients.claude.continuations import Neighbour
from sessrotate.reports import discovery, file_edges, project_folder
from sessrotate.reports.discovery import ignored

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sessrotate.clients.preview import Continues


def links() -> Iterator[tuple[Path, Continues]]:
    """Yield the live files of all sessions that continue another one, with the link to that."""
    projects, root = claude.projects_folder().resolve(), place.root()
    for name in project_folder.projects(projects, root, ignored):
        for session, link in continuations.parents(_neighbours(projects, name)).items():
            yield projects / name / f"{session}{claude.SUFFIX}", link


def _neighbours(projects: Path, name: str) -> dict[str, Neighbour]:
    """Return what the sessions of a project show, by id."""
    folder = project_folder.read(projects / name, place.root() / name, ignored)
    found = {}
    for where in folder.places(projects, name):
        session = discovery.of_place(where, folder, ignored)
        if session is not None:
            here = file_edges.seen(str(where.live), ignored)
            uuids = preview.uuids(here.head, here.tail) if here is not None else frozenset()
            found[where.session] = Neighbour(session.sight, uuids | session.boundaries)
    return found
