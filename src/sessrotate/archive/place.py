"""Where a session's files are: the live file where its client looks, the archive out of its sight.

Rule: archives are in `sessrotate`, beside the folder of projects once every link to that is
followed: there they are on the same file system, so that a hard link and a rename work. They are
never inside it, where clients list, delete and resume what they find.

Any folder may be a link that the user made: the client's, that of projects, a project's, and
`sessrotate` if it leads to a folder of the same user. What is below `sessrotate` is ours and never
a link, and neither is a live file. A running client registers in the client's folder as the client
names it, which need not be the one that holds the projects.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import names
from sessrotate.archive import continued
from sessrotate.clients.claude import client as claude
from sessrotate.clients.common import listed, names_in
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

TRASH: Final = "trash"
"""Archives of sessions that were restored, until their grace time is over."""

RESTORED: Final = "restored"
"""Which sessions their owner restored, so that nothing rotates them by itself."""

README: Final = "README"
"""Says to whoever looks for space what the folder is; nothing reads it."""

OURS: Final = {LOCKS, ASIDE, HOOK, TRASH, RESTORED, README}
"""What is beside the folders of archives, and no project's."""

_WITHIN: Final = {names.ARCHIVED, names.TRASH, names.WAITING}
"""Folders in an archive, which may be left there with a hidden file in them."""

_NO_NAMES: Final = {"", ".", ".."}
"""What a session may not be called: its archive would be another's folder."""


class Place(Struct, frozen=True):
    """A session's live file and what belongs to it.

    `config` is the folder that holds those of projects and of archives, links followed.
    """

    config: Path
    project: str
    session: str
    live: Path

    @property
    def archive(self) -> Path:
        """The folder of what is not live any more."""
        return self.config.joinpath(FOLDER, self.project, self.session)

    @property
    def registries(self) -> tuple[Path, ...]:
        """The folders in which a client that runs this session may have registered."""
        return claude.registries(self.config)

    @property
    def lock(self) -> Path:
        """The file that whoever changes this session holds."""
        return self.config.joinpath(FOLDER, LOCKS, self.project, f"{self.session}.lock")

    @property
    def note(self) -> Path:
        """The file that says how a rotation by the client's hook failed."""
        return self.config.joinpath(FOLDER, HOOK, self.project, f"{self.session}.json")

    @property
    def trash(self) -> Path:
        """Where archives go when a session of this id is restored, of whatever project."""
        return self.config.joinpath(FOLDER, TRASH, self.session)

    @property
    def restored(self) -> Path:
        """The file that says that the owner restored this session."""
        return self.config.joinpath(FOLDER, RESTORED, self.project, self.session)

    @property
    def ours(self) -> tuple[Path, ...]:
        """The folders, but for the archive itself, in which something of this session is created.

        None of them is ever a link: `own`.
        """
        found = [self.archive.parent, self.trash.parent, self.trash]
        for name in (LOCKS, HOOK, RESTORED, ASIDE):
            folder = self.config.joinpath(FOLDER, name)
            found += [folder, folder / self.project]
        return tuple(found)

    @property
    def owned(self) -> tuple[Path, ...]:
        """What must not be another user's where root changes this session."""
        return (*self.ours, self.lock, self.archive, self.live.parent, self.config)

    @property
    def pack(self) -> Path:
        """The replaced live file, until its parts are sealed."""
        return self.archive / names.PACK

    @property
    def waiting(self) -> Path:
        """The folder of replaced live files that a client may still write to."""
        return self.archive / names.WAITING

    @property
    def late(self) -> Path:
        """Lines that came late to a replaced file, until they are put in their place."""
        return self.archive / names.LATE

    @property
    def draft(self) -> Path:
        """The new live file, before it takes the old one's place."""
        return self.archive / names.DRAFT


def of(path: Path) -> Place | None:
    """Return the place of a live file, or of an archive or file in one; None outside of both.

    Its archive may be that of another project, which was renamed: see `located`.
    """
    where = by_name(path)
    return None if where is None else located(where)


def by_name(path: Path) -> Place | None:
    """Return the place that a path names, wherever its archive is; None outside of both."""
    with storage("look at the folder of projects"):
        projects = claude.projects_folder().resolve()
        folder = path.parent.resolve()
        if path.name.endswith(names.SUFFIX):
            project = project_of(projects, folder)
            if project is not None:
                return named(projects, project, names.session_of(path.name))
        archive, archives = folder, (projects.parent / FOLDER).resolve()
        # Its own name may be a link, and is then refused by `own.check_own`.
        if path.is_dir() or folder.parent == archives:
            archive = folder / path.name if path.name not in _NO_NAMES else path.resolve()
        for each in (path.absolute(), path.absolute().parent):  # and so may its project's
            if each.parent.is_symlink() and each.parent.parent.resolve() == archives:
                archive = archives / each.parent.name / each.name
        if archive.parent.parent != archives:
            return None
    return named(projects, archive.parent.name, archive.name)


def project_of(projects: Path, folder: Path) -> str | None:
    """Return the name of the project whose folder this is, links followed; None if it is none.

    If several links lead to a folder outside, it is the first of them.
    """
    if folder.parent == projects:
        return folder.name
    found = (each for each in listed(projects) if each.is_symlink())
    return next((each.name for each in found if each.resolve() == folder), None)


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
    if folder.is_symlink():
        folder = folder.resolve()
    for session in sessions:
        if session not in _NO_NAMES:
            live = folder / names.segment_file(session, "numbered", 0)
            yield Place(config, project, session, live)


# ── a project that was moved ─────────────────────────────────────────────────────────────────


def located(where: Place, *, surely: bool = False) -> Place:
    """Return the place of a session by both its live file and the archive that this continues.

    Where a project's folder was renamed, or a session moved to another project, its archive is
    still in the old one: the live file has no archive of its own, or the archive no live file, and
    exactly one fits (`continued`). Else it is `where` itself. Nothing in a whole session tells of
    an archive that has yet to go behind a restoration: `surely` looks for that in every project.
    """
    if holds_something(where.archive):
        is_here = os.path.lexists(where.live)
        if is_here or os.path.lexists(where.archive / names.ARCHIVED_NOTE):
            return where
        lives = (live for live in live_files(where) if continued.fits(live, where.archive))
        found = [replace(where, live=live) for live in lives]
    elif surely or continued.may_be(where.live):
        found = [
            replace(where, project=archive.parent.name)
            for archive in archives_of(where.config, where.session)
            if continued.fits(where.live, archive)
        ]
    else:
        return where
    return found[0] if len(found) == 1 else where


def home(where: Place) -> Place:
    """Return the place whose archive belongs to the project that the live file is in."""
    project = project_of(claude.projects_folder().resolve(), where.live.parent)
    return where if project is None else replace(where, project=project)


def live_file(projects: Path, project: str, session: str) -> Path:
    """Return where the live file of a project's session is looked for."""
    return next(all_named(projects, project, (session,))).live


def live_files(where: Place) -> Iterator[Path]:
    """Yield the files of all projects that are called like a session's live file."""
    projects = claude.projects_folder().resolve()
    for project in claude.distinct(listed(projects)):
        live = live_file(projects, project.name, where.session)
        if live.is_file() and not live.is_symlink():
            yield live


def archives_of(config: Path, session: str) -> Iterator[Path]:
    """Yield the archives of all projects that are called like a session."""
    for project in listed(config / FOLDER):
        archive = project / session
        is_link = project.is_symlink() or archive.is_symlink()
        if project.name not in OURS and not is_link and archive.is_dir():
            yield archive


def holds_something(folder: Path) -> bool:
    """Tell whether an archive's folder holds anything; hidden files are a file manager's."""
    return any(
        name not in _WITHIN or not (folder / name).is_dir() or holds_something(folder / name)
        for name in names_in(folder)
        if not names.is_hidden(name)
    )


# ── places that must be there ────────────────────────────────────────────────────────────────


def of_live(path: Path) -> Place:
    """Return the place of a live file; raise RefusedError if no client looks for it there."""
    name = printable(str(path))
    if path.name.startswith(claude.AGENT):
        raise RefusedError(
            f"{name} is an agent's transcript: it belongs to its session, and stays as it is. "
            "`split` without --in-place copies any file into a folder."
        )
    place = of(path)
    if place is None or place.live.name != path.name:
        folder = printable(str(claude.projects_folder()))
        raise RefusedError(
            f"{name} is not in {folder}, where the client keeps its sessions: only there can one "
            "be changed in place. CLAUDE_CONFIG_DIR names another folder; `split` without "
            "--in-place takes any file."
        )
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


def clock_file() -> Path:
    """Return where it is remembered when the clock was seen last."""
    return root() / LOCKS / "clock.json"


def archives(prefix: str = "") -> Iterator[Place]:
    """Yield the place of every archive whose session's id begins with `prefix`, in order.

    Its live file may be another project's: see `located`.
    """
    projects = claude.projects_folder().resolve()
    for project in listed(root()):
        if project.name in OURS or not project.is_dir():
            continue
        begin_so = (each for each in listed(project) if each.name.startswith(prefix))
        # An empty one may be ours, left by a crash; one with hidden files only is somebody's.
        found = (each for each in begin_so if holds_something(each) or not names_in(each))
        wanted = [each.name for each in found if each.is_dir()]
        yield from map(located, all_named(projects, project.name, wanted))


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
