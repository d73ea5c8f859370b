"""Bringing the archive of a moved project to where its live files are now.

Promise: a session goes on after its project's folder was renamed, as if it had always been there.
In comes a `Place`; out comes that of the live file, its lock held.

Rule: only if exactly one archive fits and no other live file may own it; both projects' locks are
held, and one rename moves the archive whole. A crash leaves it in the one project or the other.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sessrotate import fs
from sessrotate.archive import copies, place, restored
from sessrotate.errors import storage
from sessrotate.in_place import readme
from sessrotate.system import locks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.archive.place import Place


@contextmanager
def alone(where: Place, wait: float, *, adopt: bool = False) -> Iterator[Place]:
    """Hold a session's lock in the block, with its archive in the project of its live file.

    Yields that place. `wait` is how many seconds to wait for each lock. With `adopt`, the live file
    is taken for the whole history, and no archive is looked for. Raises InUseError if a lock stays
    taken, RefusedError if the live file is a copy, StorageError as the system reports.
    """
    # The project may have been moved since somebody found the session there.
    home = place.home(where if adopt else place.located(where))
    with locks.alone(home, wait):
        if not adopt:
            with storage("look for the archive"):
                found = place.located(home, surely=True)
                copies.check_owner(found)
            if found.project != home.project:
                with locks.alone(found, wait):
                    move(found, home)
        yield home
        readme.leave(home)


def move(old: Place, new: Place) -> None:
    """Move an archive, and what hook and restorations left, to another place; both are locked.

    Raises StorageError as the system reports.
    """
    with storage("move the archive"):
        # First what keeps a session whole: a crash may leave it told twice, but not untold.
        for one, other in ((old.restored, new.restored), (old.note, new.note)):
            if os.path.lexists(one) and not os.path.lexists(other):
                fs.create_folder(other.parent)
                fs.rename_files({one: other})
        if old.trash != new.trash:
            for trashed in restored.of(old):
                fs.move_folder(trashed.folder, new.trash / trashed.folder.name)
            fs.remove_folder(old.trash)
        if os.path.lexists(old.archive):
            fs.remove_folder(new.archive)  # nothing is in it
            fs.move_folder(old.archive, new.archive)
        fs.remove_folder(old.archive.parent)
