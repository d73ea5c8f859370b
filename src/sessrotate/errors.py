"""Everything that can go wrong, in two families. Nothing else leaves the library.

After a `RequestError`, another request would work. After an `InputError`, the data or the disk is
at fault.

Rule: a message is one sentence for a person. It says what happened, then what to do if anything can
be done, and never quotes a session's content. Each class knows the exit code that it ends a command
with.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Final, TypeGuard

INTERRUPTED: Final = 130
"""The exit code of a command that was interrupted, also in the log of runs."""

_FULL: Final = {errno.ENOSPC, errno.EDQUOT}

_FEW: Final = 32
"""Files, or blocks, that are too few to tell what was lacking: a rotation makes about ten files."""

NO_INODES: Final = "the disk has room for bytes, but not for more files (too few inodes are free)"
MORE_INODES: Final = "Remove or move many small files, then try again."


class SessrotateError(Exception):
    """Base of all errors of sessrotate. `exit_code` is the exit code of a command."""

    exit_code: ClassVar[int]


class RequestError(SessrotateError):
    """The request cannot, or should not, be carried out as it was made."""


class InputError(SessrotateError):
    """The data or the disk is at fault."""


class WrongUsageError(RequestError):
    """The request makes no sense: no session matches, several do, or a value is invalid."""

    exit_code = 2


class InUseError(RequestError):
    """Another process is using or changing the file right now. Try again later."""

    exit_code = 75


class RefusedError(RequestError):
    """It could be done, but not safely. The message says what would make it safe."""

    exit_code = 77


class NotASessionError(InputError):
    """The file is not a session of a client that sessrotate knows."""

    exit_code = 65


class DamagedError(InputError):
    """A segment, header or manifest is missing, or has changed since it was written."""

    exit_code = 74


class StorageError(InputError):
    """The operating system reported an error while reading or writing."""

    exit_code = 74


_WORST_FIRST: Final = (74, 77, 75, 65, 2)
"""Exit codes, the most serious first."""


def worst(errors: Iterable[SessrotateError]) -> SessrotateError | None:
    """Return the most serious error, the first of several such; None if there are no errors."""
    return min(errors, key=lambda error: _WORST_FIRST.index(error.exit_code), default=None)


def exit_code(errors: Iterable[SessrotateError]) -> int:
    """Return the exit code of a command that met these errors; 0 if there are none."""
    error = worst(errors)
    return 0 if error is None else error.exit_code


@contextmanager
def storage(doing: str) -> Iterator[None]:
    """Turn an `OSError` in the block into a `StorageError` that says what was being done.

    `doing` completes the sentence "Cannot …", for instance ``read the session``.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        where = f" ({printable(name)})" if (name := _file_of(error)) else ""
        advice = " Make room, then try again." if is_full(error) else ""
        if lacks_inodes(error):
            reason, advice = NO_INODES, f" {MORE_INODES}"
        raise StorageError(f"Cannot {doing}: {reason}{where}.{advice}") from error


def _file_of(error: OSError) -> str:
    """Return the name of the file that an error is about; empty where only a descriptor is told."""
    named = isinstance(error.filename, (str, bytes, os.PathLike))
    return os.fsdecode(error.filename) if named else ""


def is_full(error: BaseException | None) -> TypeGuard[OSError]:
    """Tell whether an error is that of a disk, or of a quota, that has no room."""
    return isinstance(error, OSError) and error.errno in _FULL


def lacks_inodes(error: OSError) -> bool:
    """Tell whether a file was not created because its disk has no room for one more, but for bytes.

    A few are free again if what was begun was undone since.
    """
    name = _file_of(error)
    if error.errno != errno.ENOSPC or not name:  # of a write, nobody tells the name
        return False
    path = os.path.abspath(name)  # noqa: PTH100 - only text
    while not os.path.lexists(path):
        path = os.path.dirname(path)  # noqa: PTH120 - only text
    try:
        usage = os.statvfs(path)
    except (AttributeError, OSError):
        return False
    # Where files are not counted (btrfs), both figures are 0.
    return usage.f_favail < _FEW <= usage.f_bavail and usage.f_files > 0


def printable(text: str, limit: int = 200) -> str:
    """Return `text` on one line without control characters, cut to `limit` characters.

    Use it for names and values that come from outside: a file name may hold an escape sequence,
    and one that is not UTF-8 holds surrogates, which no terminal accepts.
    """
    clean = text
    if not text.isprintable():
        clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def quoted(path: object) -> str:
    """Return a path as a shell takes it, in a command that a person copies: whole, on one line."""
    import shlex  # noqa: PLC0415 - few commands name one

    return printable(shlex.quote(str(path)), 4096)
