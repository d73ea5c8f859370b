"""What the folder of one project of Claude Code holds: names and sizes, not contents.

Rule: one look at the folder, and of the files only agents' transcripts are opened. A folder that is
not there is empty.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from sessrotate import clients, names
from sessrotate.archive import place
from sessrotate.archive.place import Place
from sessrotate.clients.common import is_link, passing_over, real, room_in
from sessrotate.reports import file_edges
from sessrotate.reports.file_edges import Edges

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread

_COARSE: Final = 2.0
"""Seconds that a file's time may be before that of its last record: FAT has each second one."""


class ProjectFolder(Struct):
    """Ids of sessions with a live file, with a folder beside it, and with an archive.

    `agents` are the bytes of agents' transcripts by session, and those of the disk that they take,
    and `beside` the paths of these. `alone` are sessions that have such transcripts and no file of
    their own.
    """

    live: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    archives: set[str] = field(default_factory=set)
    agents: dict[str, tuple[int, int]] = field(default_factory=dict)
    beside: dict[str, tuple[str, ...]] = field(default_factory=dict)
    alone: set[str] = field(default_factory=set)

    def add_agent(self, path: str, owners: set[str], here: Edges) -> None:
        """Count a transcript that names these sessions to one of them: one that is there."""
        ranked = sorted(owners, key=lambda each: (each not in self.live, each))
        for owner in ranked[:1]:
            size, disk = self.agents.get(owner, (0, 0))
            self.agents[owner] = size + here.size, disk + here.disk
            self.beside[owner] = (*self.beside.get(owner, ()), path)

    def side(self, where: Place, here: Edges | None) -> tuple[int, int]:
        """Return the bytes of what lies beside a session, and those of the disk.

        `here` are the edges of its live file: a client that may trim it, or our hook, gives it a
        second name there.
        """
        side, side_disk = self.agents.get(where.session, (0, 0))
        if where.session in self.folders:
            size, taken = room_in(where.live.parent / where.session, here.file if here else None)
            side, side_disk = side + size, side_disk + taken
        return side, side_disk

    def places(self, projects: Path, name: str) -> Iterator[Place]:
        """Yield the places of the project's sessions, in the order of their ids."""
        return place.all_named(projects, name, sorted(self.live | self.archives | self.alone))


InProject = tuple["Place", ProjectFolder]
"""A session's place, and what the folder of its project holds."""


def every(unread: Unread, archives: Iterable[Place]) -> Iterator[tuple[str, ProjectFolder]]:
    """Yield the name of each project that has sessions or archives, in order, and what it holds.

    `archives` are all of this machine; the name is empty for those whose project nobody knows.
    """
    projects, archived = clients.in_place().files.projects_folder(), dict[str, set[str]]()
    for where in archives:
        archived.setdefault(where.project, set()).add(where.session)
    folder = real(projects)
    found = {entry.name for entry in _entries(projects, unread) if _is_folder(entry, unread)}
    for name in sorted(found | archived.keys()):
        there = archived.get(name, set())
        yield name, read(folder / name, there, unread) if name else ProjectFolder(archives=there)


def places(unread: Unread, archives: Iterable[Place]) -> list[InProject]:
    """Return the places of Claude Code's sessions, by project and id; none of them is opened.

    `archives` are all of this machine.
    """
    projects = real(clients.in_place().files.projects_folder())
    found = every(unread, archives)
    return [(where, folder) for name, folder in found for where in folder.places(projects, name)]


def latest(where: Place) -> float:
    """Return the time that no record of a session is later than, in seconds since 1970.

    It is the file's own, which rotations keep, or else that of the archive's folder.
    """
    with suppress(OSError):
        return where.live.lstat().st_mtime + _COARSE
    with suppress(OSError):
        return where.archive.lstat().st_mtime + _COARSE
    return math.inf


def read(folder: Path, archives: set[str], unread: Unread) -> ProjectFolder:
    """Return what a project's folder holds; `archives` are the ids of sessions that have one."""
    found, client = ProjectFolder(archives=archives), clients.in_place()
    transcripts: list[tuple[str, set[str], Edges]] = []
    for entry in () if _is_alias(folder) else _entries(folder, unread):
        name = entry.name
        with passing_over(entry.path, unread):
            if entry.is_dir():
                found.folders.add(name)
            elif (kind := client.files.named(name)) in {None, "copy"} or not entry.is_file():
                continue
            elif kind == "session":
                found.live.add(names.session_of(name))
            else:
                here = file_edges.seen(entry.path, unread)
                if here is not None:
                    transcripts.append(
                        (
                            entry.path,
                            client.beside.owners(here.head),
                            replace(here, head=b"", tail=b""),
                        )
                    )
    for path, owners, here in sorted(transcripts, key=lambda each: each[0]):
        found.add_agent(path, owners, here)
    there = found.live | found.archives
    found.alone = found.beside.keys() - there
    found.alone |= {
        name
        for name in found.folders - there
        if client.beside.transcripts(folder / f"{name}{names.SUFFIX}", name)
    }
    return found


def _is_alias(folder: Path) -> bool:
    """Tell whether a project's folder is a link to one that has another name here."""
    if not is_link(folder):
        return False
    return place.project_of(folder.parent, real(folder)) != folder.name


def _entries(folder: Path, unread: Unread) -> list[os.DirEntry[str]]:
    with passing_over(folder, unread), os.scandir(folder) as entries:
        return list(entries)
    return []


def _is_folder(entry: os.DirEntry[str], unread: Unread) -> bool:
    with passing_over(entry.path, unread):
        return entry.is_dir()
    return False
