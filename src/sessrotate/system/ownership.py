"""Root never leaves files of its own in another user's folder.

Rule: checked before the first file or folder is created. `sudo sessrotate` would lock users out of
their own sessions.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sessrotate.errors import RefusedError, printable

if TYPE_CHECKING:
    from pathlib import Path


def check(path: Path) -> None:
    """Raise RefusedError if we are root, and what `path` is or would be in is another user's."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return
    for folder in (path, *path.absolute().parents):
        try:
            owner = folder.stat().st_uid
        except (FileNotFoundError, NotADirectoryError):
            continue
        if owner != 0:
            raise RefusedError(
                f"{printable(str(folder))} belongs to {_user(owner)}, and root would lock them out "
                "of it: run this as that user, without sudo."
            )
        return


def _user(owner: int) -> str:
    import pwd  # noqa: PLC0415 - there is none on Windows, where nobody is root

    try:
        return f"the user {printable(pwd.getpwuid(owner).pw_name)}"
    except KeyError:
        return f"user {owner}"
