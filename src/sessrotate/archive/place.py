"""Where a session's files are: the live file where its client looks, the archive out of its sight.

Rule: archives are in `sessrotate/archives`, beside the folder of projects once every link to that
is followed: there they are on the same file system, so that a hard link and a rename work. They
are never inside it, where clients list, delete and resume what they find. An archive is called as
its session is, whatever project that is in: a project that is renamed or moved needs nothing.

A session's live file is that in the project which its archive names; or, once it is not there any
more, the only file of its id. Another one is a stranger (`owner`). Whether a live file goes on from
the archive, only its `state` tells.

Any folder may be a link that the user made: the client's, that of projects, a project's, and
`sessrotate` if it leads to a folder of the same user. What is below `sessrotate` is ours and never
a link, and neither is a live file. A running client registers in the client's folder as the client
names it, which need not be the one that holds the projects.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import clients, names
from sessrotate.archive import record
from sessrotate.clients import common
from sessrotate.clients.common import ignored, is_file, is_folder, is_link, listed, names_in, real
from sessrotate.clients.in_place import InPlace
from sessrotate.errors import (
    DamagedError,
    RefusedError,
    RequestError,
    SessrotateError,
    WrongUsageError,
    printable,
    storage,
)
from sessrotate.segments import manifest
from sessrotate.system import inside
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread

FOLDER: Final = "sessrotate"
"""Beside `projects`; no client of 2.0.28 to 2.1.330 lists, loads, deletes or purges it."""

ARCHIVES: Final = "archives"
"""In it, a folder for each session of which something is not live any more."""
LOCKS: Final = "locks"

ASIDE: Final = "aside"
"""Archives that no live file goes on from any more, because their session was adopted anew."""

HOOK: Final = "hook"
"""Rotations by the client's hook that failed, of which nobody saw what they said."""

README: Final = "README"
"""Says to whoever looks for space what the folder is; nothing reads it."""

FOLDERS: Final = (ARCHIVES, LOCKS, HOOK, ASIDE)
"""The folders in it."""

_WITHIN: Final = {names.ARCHIVED, names.TRASH, names.WAITING}
"""Folders in an archive, which may be left there with a hidden file in them."""

_NO_NAMES: Final = {"", ".", ".."}
"""What a session may not be called: its archive would be another's folder."""


class Place(Struct, frozen=True, dict=True):
    """A session's live file and what belongs to it.

    `config` is the folder that holds those of projects and of archives, links followed; `project`
    is what the folder of the live file is called among projects, empty where nobody knows.
    """

    config: Path
    project: str
    session: str
    live: Path

    @cached_property  # asked for 20 times of each session
    def archive(self) -> Path:
        """The folder of what is not live any more."""
        return self._ours(ARCHIVES)

    def _ours(self, folder: str, end: str = "") -> Path:
        return self.config.joinpath(FOLDER, folder, names.key(self.session) + end)

    @property
    def client(self) -> InPlace:
        """The client whose session it is."""
        return clients.in_place()

    @property
    def registries(self) -> tuple[Path, ...]:
        """The folders in which a client that runs this session may have registered."""
        return self.client.files.registries(self.config)

    @property
    def lock(self) -> Path:
        """The file that whoever changes this session holds."""
        return self._ours(LOCKS, ".lock")

    @property
    def note(self) -> Path:
        """The file that says how a rotation by the client's hook failed."""
        return self._ours(HOOK, ".json")

    @property
    def ours(self) -> tuple[Path, ...]:
        """The folders in which files of this session are, but for the archive; never links."""
        return tuple(self.config.joinpath(FOLDER, name) for name in FOLDERS)

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
    def draft(self) -> Path:
        """The new live file, before it takes the old one's place."""
        return self.archive / names.DRAFT


def of(path: Path) -> Place | None:
    """Return the place of a live file, or of an archive or file in one; None outside of both.

    Whether a live file is its session's own, `owner` tells.
    """
    with storage("look at the folder of projects"):
        projects = real(clients.in_place().files.projects_folder())
        folder = real(path.parent)
        if path.name.endswith(names.SUFFIX):
            project = project_of(projects, folder)
            if project is not None:
                return named(projects, project, names.session_of(path.name))
        archive, root = folder, real(projects.parent / FOLDER)
        # Its own name may be a link, and is then refused by `owner.check_own`.
        if is_folder(path) or folder.parent == root:
            archive = folder / path.name if path.name not in _NO_NAMES else real(path)
        for each in (path.absolute(), path.absolute().parent):  # and so may the folder of all
            if is_link(each.parent) and real(each.parent.parent) == root:
                archive = root / each.parent.name / each.name
        if archive.parent != root / ARCHIVES:
            return None
        session = names.session_of_key(archive.name)
    return None if session is None else of_session(session)


def project_of(projects: Path, folder: Path) -> str | None:
    """Return the name of the project whose folder this is, links followed; None if it is none.

    If several links lead to a folder outside, it is the first of them.
    """
    if folder.parent == projects:
        return folder.name
    found = (each for each in listed(projects) if is_link(each))
    return next((each.name for each in found if real(each) == folder), None)


def named(projects: Path, project: str, session: str) -> Place | None:
    """Return the place of a session by its names; None if a session cannot be called so.

    `projects` is the folder of all projects, links in it followed.
    """
    return next(all_named(projects, project, (session,)), None)


def all_named(projects: Path, project: str, sessions: Iterable[str]) -> Iterator[Place]:
    """Yield the places of a project's sessions by their names, but for what none can be called."""
    config, folder = projects.parent, projects / project
    if is_link(folder):
        folder = real(folder)
    for session in sessions:
        if session not in _NO_NAMES:
            live = folder / names.segment_file(session, "numbered", 0)
            yield Place(config, project, session, live)


def that_wait(where: Place) -> list[Path]:
    """Return the replaced files of a session that wait, the oldest first.

    Raises DamagedError if their folder is a link, OSError as the system reports.
    """
    folder = where.waiting
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise DamagedError(f"{printable(str(folder))} is not a folder: move it away.")
        files = [path for path in folder.iterdir() if stat.S_ISREG(path.lstat().st_mode)]
    except FileNotFoundError:
        return []
    numbered = (path for path in files if path.name.isdecimal() and path.name.isascii())
    return sorted(numbered, key=lambda path: int(path.name))


# ── whose an archive is ──────────────────────────────────────────────────────────────────────


def of_session(session: str, projects: Path | None = None) -> Place:
    """Return the place of a session by its id, wherever its live file is.

    Its archive names a project: if the session's live file is there, or was put away, it is that.
    Else it is the only file of that id in any project: its folder was renamed or moved. Where there
    are several, or none, it is what the archive names; its `project` is empty if that is nothing.
    `projects` is the folder of all projects, links in it followed, if somebody knows it.
    """
    projects = projects or real(clients.in_place().files.projects_folder())
    nowhere = Place(projects.parent, "", session, projects / f"{session}{names.SUFFIX}")
    archive = nowhere.archive
    project = project_named(archive)
    where = (named(projects, project, session) if project else None) or nowhere
    if record.away(archive, session) or (project and os.path.lexists(where.live)):
        return where
    found = [*live_files(session)]
    return found[0] if len(found) == 1 else where


def project_named(archive: Path) -> str:
    """Return the project that an archive names as that of its live file; empty if none.

    What was written last counts: the record, which few have, then the manifest. One that is
    reached by a link names none, and nothing behind that is opened.
    """
    if record.is_behind_link(archive):
        return ""
    if project := record.told(archive).project:
        return project
    with suppress(SessrotateError, OSError), Source.inside(archive, names.MANIFEST) as source:
        return manifest.project_of(source.read_at(0, min(source.size(), manifest.MAX_LINE)))
    return ""


def live_files(session: str) -> Iterator[Place]:
    """Yield the files of all projects that are called like a session's live file."""
    root = real(clients.in_place().files.projects_folder())
    for project in common.distinct(listed(root)):
        for where in all_named(root, project.name, (session,)):
            if is_file(where.live) and not is_link(where.live):
                yield where


def holds_something(folder: Path) -> bool:
    """Tell whether an archive's folder holds anything; hidden files are a file manager's.

    That its owner restored the session is nothing. A link is, whatever is behind it.
    """
    return record.is_behind_link(folder) or any(
        name not in _WITHIN or not is_folder(folder / name) or holds_something(folder / name)
        for name in names_in(folder)
        if not names.is_hidden(name) and not (name == names.RECORD and _is_whole_again(folder))
    )


def _is_whole_again(archive: Path) -> bool:
    """Tell whether a session was restored, and nothing else is under way."""
    told = record.told(archive)
    return told.restored is not None and told.intent is None and told.away is None


# ── places that must be there ────────────────────────────────────────────────────────────────


def of_live(path: Path) -> Place:
    """Return the place of a live file; raise RefusedError if no client looks for it there.

    WrongUsageError says that there is no such file.
    """
    name = printable(str(path))
    if clients.in_place().beside.is_agent(path.name):
        raise RefusedError(
            f"{name} is an agent's transcript: it belongs to its session, and stays as it is. "
            "`split` without --in-place copies any file into a folder."
        )
    if clients.in_place().files.named(path.name) == "copy" and not path.name.endswith(names.SUFFIX):
        raise RefusedError(
            f"{name} is named like a copy, so no client lists it: give it a name of its own."
        )
    place = of(path)
    if place is not None and place.live.name != path.name:
        session = printable(place.session)
        raise RefusedError(
            f"{name} is the archive of {session}, or a part of it, not a live file. If the live "
            f"file is gone, `sessrotate restore {session}` brings it back."
        )
    if place is None:
        folder = printable(str(clients.in_place().files.projects_folder()))
        raise _outside(
            path,
            f"{name} is not in {folder}, where the client keeps its sessions: a session can be "
            "changed in place only there. CLAUDE_CONFIG_DIR names another folder; `split` without "
            "--in-place takes any file.",
        )
    return place


def of_archived(path: Path) -> Place:
    """Return the place of a session that may have an archive; raise RefusedError if not.

    WrongUsageError says that there is no such file.
    """
    place = of(path)
    if place is None:
        name = printable(str(path))
        raise _outside(path, f"{name} is not in a client's folder, so it cannot have an archive.")
    return place


def _outside(path: Path, why: str) -> RequestError:
    """Return the error of a path that no client looks at: what it is, if it is there at all."""
    if os.path.lexists(path):
        return RefusedError(why)
    return WrongUsageError(f"There is no file {printable(str(path))}.")


def root() -> Path:
    """Return the folder of all that is ours."""
    return real(clients.in_place().files.projects_folder()).parent / FOLDER


def run_lock() -> Path:
    """Return the file that `sessrotate run` holds: that of no session ends so."""
    return root() / LOCKS / "run"


def archives(prefix: str = "", unread: Unread = ignored) -> Iterator[Place]:
    """Yield the archives of ids that begin so, in order; `unread` is told what cannot be read."""
    projects = real(clients.in_place().files.projects_folder())
    every = projects.parent / FOLDER / ARCHIVES
    if is_link(every):
        unread(str(every), inside.LINK)
        return
    for folder in listed(every, unread):
        session = names.session_of_key(folder.name)
        if session is None or not common.begins(session, prefix) or not is_folder(folder, unread):
            continue
        # An empty one may be ours, left by a crash; one with hidden files only is somebody's.
        if not is_link(folder) and (holds_something(folder) or not names_in(folder)):
            yield of_session(session, projects)


def aside() -> list[Path]:
    """Return the archives that were put aside, in order."""
    return listed(root() / ASIDE)
