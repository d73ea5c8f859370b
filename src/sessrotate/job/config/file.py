"""The settings file: reading it, and writing a commented one.

Rule: every error names the file. An existing file is never overwritten.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import fs
from sessrotate.errors import RefusedError, WrongUsageError, printable, storage
from sessrotate.job.config import keys, parse
from sessrotate.job.config.parse import Settings
from sessrotate.system import ownership, user_folders

_LARGEST: Final = 64 * 1024
"""Bytes that a settings file may have; the commented one has less than 4,000."""


class Loaded(Struct, frozen=True):
    """The settings in force, and the file they come from, if it exists."""

    path: Path
    is_there: bool
    settings: Settings


def read(named: Path | None) -> Loaded:
    """Return the settings in a file, by default the one in the platform's folder.

    If that one does not exist, the defaults apply. Raises WrongUsageError if a named file does not
    exist, or a file cannot be understood.
    """
    path = user_folders.config_file() if named is None else named
    with storage("read the settings"):
        data = content(path)
    if data is None:
        if named is not None:
            raise WrongUsageError(f"The settings file {printable(str(path))} does not exist.")
        return Loaded(path, is_there=False, settings=parse.parsed(""))
    try:
        return Loaded(path, is_there=True, settings=parse.parsed(data.decode("utf-8-sig")))
    except UnicodeDecodeError:
        raise WrongUsageError(f"{printable(str(path))} is not UTF-8, which TOML must be.") from None
    except WrongUsageError as error:
        raise WrongUsageError(f"{printable(str(path))}: {error}") from None


def grace() -> float | None:
    """Return for how many seconds what is in a trash stays there; None if it is never freed.

    Whatever frees or judges by that time asks here. Raises as `read` does.
    """
    return read(None).settings.trash.grace


def content(path: Path) -> bytes | None:
    """Return what is in a settings file, None if there is none.

    Raises WrongUsageError if it is no file, or too large; OSError as the system reports.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise WrongUsageError(f"{printable(str(path))} is not a regular file.")
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    if len(data) > _LARGEST:
        raise WrongUsageError(f"{printable(str(path))} is too large for a settings file.")
    return data


def init() -> Path:
    """Write the commented file and return its path; raise RefusedError if one exists."""
    path = user_folders.config_file()
    user_folders.check_home(path)
    with storage("write the settings"):
        ownership.check(path)
        fs.create_folder(path.parent)
        try:
            with fs.OutputFile(path) as file:
                file.append(keys.commented().encode())
                file.publish()
        except FileExistsError:
            raise RefusedError(
                f"{printable(str(path))} already exists: edit it, or move it away first."
            ) from None
    return path
