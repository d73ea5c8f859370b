"""Archives follow what a person moved: a project, or a whole configuration of the client.

Promise: what is moved is found in its new place as it was. In come two places for each session; out
comes what became of each.

Rule: only our own files move, each archive by one rename, while both places are locked. What cannot
be proved to belong to the new place stays where it is: an archive goes on with its live file, or
with none at all.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

from sessrotate import names
from sessrotate.archive import continued, own, place, restored
from sessrotate.clients.claude import client as claude
from sessrotate.clients.common import listed
from sessrotate.errors import RefusedError, WrongUsageError, printable, storage
from sessrotate.in_place import homecoming
from sessrotate.in_place.outcome import Outcome, each
from sessrotate.system import locks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place


class Move(Struct, frozen=True):
    """An archive that is to move: where it is, and where it belongs now."""

    old: Place
    new: Place


def plan(old: Path, new: Path) -> list[Move]:
    """Return the archives that follow from `old` to `new`: two projects, or two configurations.

    A project is named by the folder of its sessions, or by the one that the client ran in.
    A configuration is a folder that holds `projects` or `sessrotate`. Raises WrongUsageError if
    they are not of one kind, or the same.
    """
    with storage("look for archives"):
        if _is_configuration(old) != _is_configuration(new):
            raise WrongUsageError(
                "Name two folders of projects, or two configurations of the client."
            )
        if not _is_configuration(old):
            projects = claude.projects_folder().resolve()
            pairs = [((projects, _project(old)), (projects, _project(new)))]
        else:
            before, after = (_projects(folder) for folder in (old, new))
            pairs = [
                ((before, project.name), (after, project.name))
                for project in listed(before.parent / place.FOLDER)
                if project.name not in place.OURS and project.is_dir()
            ]
        if any(one == two for one, two in pairs):
            raise WrongUsageError("OLD and NEW are the same.")
        return [move for one, two in pairs for move in _moves(*one, *two)]


def _is_configuration(folder: Path) -> bool:
    return any((folder / name).is_dir() for name in ("projects", place.FOLDER))


def _projects(config: Path) -> Path:
    """Return the folder of projects of a configuration, links followed."""
    return (config / "projects").resolve()


def _project(folder: Path) -> str:
    """Return the name of a project."""
    here = folder.absolute()
    named = place.project_of(claude.projects_folder().resolve(), here.parent.resolve() / here.name)
    return named or claude.project_name(here)


def _moves(before: Path, old: str, after: Path, new: str) -> Iterator[Move]:
    found = {each.name for each in listed(before.parent / place.FOLDER / old) if each.is_dir()}
    if before != after:  # within one configuration, what a restoration left is found all the same
        found |= restored.sessions(before.parent, old)
    for session in sorted(found):
        here, there = place.named(before, old, session), place.named(after, new, session)
        if here is not None and there is not None:
            yield Move(here, there)


def execute(moves: list[Move], wait: float, *, dry_run: bool) -> Iterator[Outcome]:
    """Move archives, or only say what would become of each; yields the outcomes in their order.

    `wait` is how many seconds to wait for each lock. What is refused stays where it is.
    """
    moving = {move.new: move for move in moves}

    def act(where: Place) -> Outcome:
        move = moving[where]
        if dry_run:
            check(move)
            return Outcome(where, "planned")
        check(move)  # before a lock is created where nothing is to be
        with locks.alone(move.new, wait), locks.alone(move.old, wait):
            check(move)
            homecoming.move(move.old, move.new)
        return Outcome(where, "done")

    yield from each(moving, act, "move the archive")


def check(move: Move) -> None:
    """Raise RefusedError unless an archive belongs to its new place, and can be moved there."""
    old, new = move.old, move.new
    own.check_own(old)
    own.check_own(new)
    for reason in _reasons(old, new):
        raise RefusedError(reason)


def _reasons(old: Place, new: Place) -> Iterator[str]:
    """Yield what speaks against moving an archive, and what to do about it."""
    archive, name = printable(str(old.archive)), printable(str(new.archive))
    is_away = os.path.lexists(old.archive / names.ARCHIVED_NOTE)
    has_archive = os.path.lexists(old.archive)
    if has_archive and listed(new.archive):
        yield f"{name} exists: one session has one archive. Move that one away first."
    if os.path.lexists(old.live):
        yield (
            f"{printable(str(old.live))} is still there, and {archive} is its history: move the "
            "live file first."
        )
    has_another = is_away or (has_archive and not continued.fits(new.live, old.archive))
    if os.path.lexists(new.live) and has_another:
        yield f"{printable(str(new.live))} does not go on from {archive}: it is another session."
    if not os.path.lexists(new.live):
        elsewhere = [each for each in place.live_files(new) if each != old.live]
        if elsewhere and not is_away:
            yield (
                f"The live file of {archive} is {printable(str(elsewhere[0]))}: name its "
                "project as NEW."
            )
    if _device(old.archive) != _device(new.archive):
        yield (
            f"{name} would be on another file system, where nothing can be moved at once: copy "
            f"{archive} there with `cp -a`, check the copy with `sessrotate verify`, and remove "
            "the old one then."
        )


def _device(folder: Path) -> int:
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return there.stat().st_dev
