"""Where a session's files are: the live file where its client looks, the archive out of its sight.

Rule: the archive is beside the folder of projects, so that it is on the same file system and a
hard link and a rename work, and never inside, where clients list, delete and resume what they
find. Links on the way to the folder of projects are followed; the live file itself must be none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sessrotate import names
from sessrotate.clients.claude import client as claude
from sessrotate.clients.common import listed
from sessrotate.errors import RefusedError, printable, storage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FOLDER: Final = "sessrotate"
"""Beside `projects`; no client of 2.0.28 to 2.1.330 lists, loads, deletes or purges it."""

LOCKS: Final = "locks"

ASIDE: Final = "aside"
"""Archives that no live file goes on from any more, because their session was adopted anew."""

HOOK: Final = "hook"
"""What rotations by the client's hook came to, of which nobody saw what they said."""

OURS: Final = {LOCKS, ASIDE, HOOK}
"""What is beside the folders of archives, and no project's."""

_NO_NAMES: Final = {"", ".", ".."}
"""What a session may not be called: its archive would be another's folder."""


@dataclass(frozen=True, slots=True)
class Place:
    """A session's live file and what belongs to it. `config` is the client's own folder."""

    config: Path
    project: str
    session: str
    live: Path

    @property
    def archive(self) -> Path:
        """The folder of what is not live any more."""
        return self.config.joinpath(FOLDER, self.project, self.session)

    @property
    def lock(self) -> Path:
        """The file that whoever changes this session holds."""
        return self.config.joinpath(FOLDER, LOCKS, self.project, f"{self.session}.lock")

    @property
    def note(self) -> Path:
        """The file that says how a rotation by the client's hook failed."""
        return self.config.joinpath(FOLDER, HOOK, self.project, f"{self.session}.json")

    @property
    def pack(self) -> Path:
        """The replaced live file, until its parts are sealed."""
        return self.archive / names.PACK

    @property
    def late(self) -> Path:
        """Lines that came late to a replaced file, until they are put in their place."""
        return self.archive / names.LATE

    @property
    def draft(self) -> Path:
        """The new live file, before it takes the old one's place."""
        return self.archive / names.DRAFT


def of(path: Path) -> Place | None:
    """Return the place of a live file, or of an archive or file in one; None outside of both."""
    with storage("look at the folder of projects"):
        projects = claude.projects_folder().resolve()
        folder = path.parent.resolve()
        if folder.parent == projects and path.name.endswith(names.SUFFIX):
            return named(projects, folder.name, names.session_of(path.name))
        archive = path.resolve() if path.is_dir() else folder
    if archive.parent.parent != projects.parent / FOLDER:
        return None
    return named(projects, archive.parent.name, archive.name)


def named(projects: Path, project: str, session: str) -> Place | None:
    """Return the place of a session by its names; None if a session cannot be called so.

    `projects` is the folder of all projects, links in it followed.
    """
    return next(all_named(projects, project, (session,)), None)


def all_named(projects: Path, project: str, sessions: Iterable[str]) -> Iterator[Place]:
    """Yield the places of a project's sessions by their names, but for what none can be called."""
    if project in OURS:
        return
    config, folder = projects.parent, projects / project
    for session in sessions:
        if session not in _NO_NAMES:
            live = folder / names.segment_file(session, "numbered", 0)
            yield Place(config, project, session, live)


def of_live(path: Path) -> Place:
    """Return the place of a live file; raise RefusedError if no client looks for it there."""
    place = of(path)
    name = printable(str(path))
    if place is None or place.live.name != path.name:
        folder = printable(str(claude.projects_folder()))
        raise RefusedError(
            f"{name} is not in {folder}, where the client keeps its sessions: only there can one "
            "be changed in place. CLAUDE_CONFIG_DIR names another folder; `split` without "
            "--in-place takes any file."
        )
    if path.name.startswith(claude.AGENT):
        raise RefusedError(f"{name} is an agent's transcript: it belongs to its session.")
    return place


def of_archived(path: Path) -> Place:
    """Return the place of a session that may have an archive.

    Raises RefusedError if the path is none of a client's folder.
    """
    place = of(path)
    if place is None:
        raise RefusedError(
            f"{printable(str(path))} is in no client's folder: what is there has no archive."
        )
    return place


def root() -> Path:
    """Return the folder of all archives."""
    return claude.projects_folder().resolve().parent / FOLDER


def run_lock() -> Path:
    """Return the file that `sessrotate run` holds: no project's name has a dot in it."""
    return root() / LOCKS / "run.lock"


def archives(prefix: str = "") -> Iterator[Place]:
    """Yield the place of every archive whose session's id begins with `prefix`, in order."""
    for project in listed(root()):
        if project.name in OURS or not project.is_dir():
            continue
        for archive in listed(project):
            if archive.name.startswith(prefix) and archive.is_dir() and (place := of(archive)):
                yield place


def noted() -> Iterator[Place]:
    """Yield the place of every session with a note of the client's hook, in order."""
    projects = claude.projects_folder().resolve()
    for project in listed(root() / HOOK):
        for note in listed(project):
            place = named(projects, project.name, note.name.removesuffix(".json"))
            if place is not None and place.note == note:
                yield place


def aside() -> list[Path]:
    """Return the archives that were put aside, in order."""
    return [folder for project in listed(root() / ASIDE) for folder in listed(project)]
