"""Copies of a rotated session's live file: under another name, in another project, or elsewhere.

Rule: a copy is read with the archive that it goes on from, and never owns that: only one live file
may be appended to and rotated on top of an archive.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sessrotate.archive import continued, own, place
from sessrotate.archive.place import Place
from sessrotate.clients.claude import client as claude
from sessrotate.errors import InUseError, RefusedError, printable

if TYPE_CHECKING:
    from pathlib import Path


def of_copy(path: Path) -> Place | None:
    """Return the place of the session whose live file was copied to `path`, that as its live file.

    None if the file is no live tail, or the session's own. Its archive may be missing. A link
    outside of the folder of projects stands for what it leads to.
    """
    path, link = own.named(path), path
    if not continued.begins_so(path):
        return None
    where = place.by_name(link)
    header = continued.tail_header(path, but=None if where is None else where.session)
    if header is None:
        return None
    config, live = claude.projects_folder().resolve().parent, path.absolute()
    project = where.project if where is not None else live.parent.name
    for archive in place.archives_of(config, header.root):
        if continued.fits(live, archive):
            project = archive.parent.name
    return Place(config, project, header.root, live)


def told(path: Path, session: str) -> str:
    """Say what a copy is, and what can be done with it."""
    name = printable(str(path))
    return (
        f"{name} is a copy of the live file of {printable(session)}, and only the session itself "
        f"can be changed. `sessrotate stitch {name} -o FILE` writes its whole history. To make "
        f"the copy a session of its own: `sessrotate rotate --unsafe-adopt {name}`."
    )


def check_unmoved(where: Place) -> None:
    """Raise InUseError if the live file is gone because its project was moved just now.

    Whoever would put one in its place asks this first: the session would be there twice.
    """
    if not os.path.lexists(where.live) and place.located(where).live != where.live:
        name = printable(str(where.live.parent))
        raise InUseError(f"{name} was moved just now: try again.")


def check_owner(where: Place) -> None:
    """Raise RefusedError if a live file is a copy: it may be read, and never owns an archive."""
    name = printable(str(where.live))
    header = continued.tail_header(where.live, but=where.session)
    if header is not None:
        raise RefusedError(told(where.live, header.root))
    if place.home(where) == where:
        return
    own = place.live_file(claude.projects_folder().resolve(), where.project, where.session)
    others = [own] if os.path.lexists(own) else []
    others += [each for each in place.live_files(where) if continued.fits(each, where.archive)]
    rivals = [each for each in dict.fromkeys(others) if each != where.live]
    if rivals:
        raise RefusedError(
            f"{name} and {printable(str(rivals[0]))} go on from the same archive: one is a copy. "
            "Move the one that you do not need out of the folder of projects, then try again."
        )
