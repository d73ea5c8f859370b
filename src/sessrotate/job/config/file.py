"""The file of settings: read, and made once.

Rule: every complaint names the file. One that is there is never written over.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sessrotate import fs
from sessrotate.errors import RefusedError, WrongUsageError, printable, storage
from sessrotate.job.config import keys, parse
from sessrotate.system import user_folders

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.job.config.parse import Settings

_LARGEST: Final = 64 * 1024
"""Bytes; the commented file has less than 4,000."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is in force, and the file that it was looked for in."""

    path: Path
    is_there: bool
    settings: Settings


def read(named: Path | None) -> Loaded:
    """Return what a file says, by default the one in the platform's folder.

    That one need not be there: then the defaults are in force. Raises WrongUsageError for a named
    file that is not there, and for what cannot be understood.
    """
    path = user_folders.config_file() if named is None else named
    with storage("read the settings"):
        data = _content(path)
    if data is None:
        if named is not None:
            raise WrongUsageError(f"There is no file {printable(str(path))}.")
        return Loaded(path, is_there=False, settings=parse.parsed(""))
    try:
        return Loaded(path, is_there=True, settings=parse.parsed(data.decode("utf-8-sig")))
    except UnicodeDecodeError:
        raise WrongUsageError(f"{printable(str(path))} is no UTF-8, which TOML must be.") from None
    except WrongUsageError as error:
        raise WrongUsageError(f"{printable(str(path))}: {error}") from None


def _content(path: Path) -> bytes | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise WrongUsageError(f"{printable(str(path))} is no file.")
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    if len(data) > _LARGEST:
        raise WrongUsageError(f"{printable(str(path))} is too large for a file of settings.")
    return data


def init() -> Path:
    """Write the commented file and return where; raise RefusedError if there is one."""
    path = user_folders.config_file()
    with storage("write the settings"):
        fs.create_folder(path.parent)
        try:
            with fs.OutputFile(path) as file:
                file.append(keys.commented().encode())
                file.publish()
        except FileExistsError:
            raise RefusedError(
                f"{printable(str(path))} is there, and is left as it is: edit it, or move it away."
            ) from None
    return path
