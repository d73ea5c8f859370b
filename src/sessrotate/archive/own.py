"""What is ours below the folder of archives is never reached by a link.

Promise: whoever creates, moves or reads something there asks here first. In comes a `Place`; out
comes nothing, or a RefusedError that says what to do.

Rule: the folder of all archives may be a link, to a folder of the same user. What is below it is
ours, and nobody needs a link there; it would lead what we write to wherever it points.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sessrotate import platforms
from sessrotate.archive import place
from sessrotate.clients.common import listed
from sessrotate.errors import RefusedError, printable
from sessrotate.system import ownership

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place


def check_own(where: Place) -> None:
    """Raise RefusedError if an archive is reached by a link that the user need not have made."""
    _check_root(where)
    for part in (where.archive.parent, where.archive):
        if os.path.islink(part):  # noqa: PTH114 - thousands, most of which are not there
            raise RefusedError(
                f"{printable(str(part))} is a symbolic link, and archives are never one: remove "
                "the link, or put the folder itself in its place."
            )


def check_folders(where: Place) -> None:
    """Raise RefusedError if a folder in which something of a session is created is a link.

    The archive itself is not looked at: a link in its place may be put aside.
    """
    _check_root(where)
    ownership.check_links(where.ours)


def is_link(path: Path) -> bool:
    """Tell whether a path is a link where a client's live files are: nobody opens what it names.

    Elsewhere, a person who names a link means what it leads to.
    """
    return path.is_symlink() and place.of(path) is not None


def named(path: Path) -> Path:
    """Return the file that a person means by a path: of a link outside, where it leads."""
    return path.resolve() if path.is_symlink() and place.of(path) is None else path


def links() -> Iterator[Path]:
    """Yield the links among the folders that are ours, and in those."""
    for name in sorted(place.FOLDERS):
        folder = place.root() / name
        yield from (each for each in (folder, *_folders(folder)) if each.is_symlink())


def _folders(folder: Path) -> list[Path]:
    return [] if folder.is_symlink() else listed(folder)


def _check_root(where: Place) -> None:
    folder = where.config / place.FOLDER
    if folder.is_symlink() and _is_of_another(folder):
        name, target = printable(str(folder)), printable(str(folder.resolve()))
        raise RefusedError(
            f"{name} leads to {target}, which is missing or another user's: make it a folder of "
            "your own."
        )


def _is_of_another(folder: Path) -> bool:
    try:
        owner = folder.stat().st_uid
    except OSError:
        return True
    return not platforms.is_ours(owner)
