"""Everything that may go wrong, in two families; nothing else leaves the library.

Rule: a `RequestError` is about what was asked (another request would work), an `InputError`
about what was found (the data or the disk is at fault). Each class carries its exit code, so
that the command line needs no table of its own. Messages are one sentence for a person, name
the way out where there is one, and never quote a session's content.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class SessrotateError(Exception):
    """Base of all errors of sessrotate; `exit_code` is what the command ends with."""

    exit_code: ClassVar[int]


class RequestError(SessrotateError):
    """The request cannot or should not be carried out as it was made."""


class InputError(SessrotateError):
    """What was found on the disk is not sound."""


class WrongUsageError(RequestError):
    """The request makes no sense as it stands: no such session, several matches, bad value."""

    exit_code = 2


class InUseError(RequestError):
    """Another process uses or changes the file right now."""

    exit_code = 75


class RefusedError(RequestError):
    """It could be done, but not safely; the message says what would allow it."""

    exit_code = 77


class NotASessionError(InputError):
    """The input is not a session that we understand."""

    exit_code = 65


class DamagedError(InputError):
    """A segment, header or manifest is not what it was when it was written."""

    exit_code = 74


class StorageError(InputError):
    """The operating system reported an error while reading or writing."""

    exit_code = 74


_WORST_FIRST: Final = (74, 77, 75, 65, 2)
"""Exit codes by how much they should worry anybody."""


def worst(errors: Iterable[SessrotateError]) -> SessrotateError | None:
    """Return the first of the errors that should worry most, None if there is none."""
    return min(errors, key=lambda error: _WORST_FIRST.index(error.exit_code), default=None)


def exit_code(errors: Iterable[SessrotateError]) -> int:
    """Return what a command ends with that met these errors: 0 if there is none."""
    error = worst(errors)
    return 0 if error is None else error.exit_code


@contextmanager
def storage(doing: str) -> Iterator[None]:
    """Turn an `OSError` in the block into a `StorageError` that says what was being done.

    `doing` completes "Cannot …", for instance ``read the session``.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        where = f" ({printable(str(error.filename))})" if error.filename is not None else ""
        raise StorageError(f"Cannot {doing}: {reason}{where}.") from error


def printable(text: str, limit: int = 200) -> str:
    """Return `text` on one line, at most `limit` characters, without control characters.

    For names and values that come from outside: a file name may hold an escape sequence, and
    one that is not UTF-8 holds surrogates that no terminal accepts.
    """
    clean = text
    if not text.isprintable():
        clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"
