"""Nothing is created in another user's folder by root, nor in any folder behind a link of ours.

Rule: checked before the first file or folder is created. `sudo sessrotate` would lock users out of
their own sessions, and a link below the folder of archives would lead what we write anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sessrotate import platforms
from sessrotate.errors import RefusedError, printable


def check(*paths: Path) -> None:
    """Raise RefusedError if we are root, and what a path is or would be in is another user's."""
    if platforms.is_root():
        for path in dict.fromkeys(paths):
            _check(path)


def check_links(folders: Iterable[Path]) -> None:
    """Raise RefusedError if one of these folders of ours is a link."""
    for folder in folders:
        if folder.is_symlink():
            raise RefusedError(
                f"{printable(str(folder))} is a symbolic link: remove the link, or put the folder "
                "itself in its place."
            )


def _check(path: Path) -> None:
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
