"""Segments of a client that nobody here knows: lines without a meaning.

Rule: it says nothing about any line. A manifest may name a client of a later version, or one that
never was; its segments are stitched, verified and listed all the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sessrotate.model import Boundary, Span

NAME: Final = "unknown"

MARKER: Final = b""

NOT_IN_PLACE: Final[str | None] = "Nobody knows what its client needs of its file."


def recognise(_head: bytes, *, is_whole: bool) -> bool:  # noqa: ARG001 - the protocol's
    """Recognise nothing."""
    return False


def boundary(_line: Iterable[bytes], _span: Span) -> Boundary | bool:
    """Take every line for opaque."""
    return True


def timestamp(_line: Iterable[bytes], _size: int) -> str | None:
    """Know no time."""
    return None


def session_of(file_name: str) -> str:
    """Return the file's name without the suffixes of segments."""
    return names.session_of(file_name)


def sessions_folder() -> Path:
    """Return the folder that nothing is: it has no sessions of its own."""
    return Path()


def sessions(_prefix: str = "") -> Iterator[Path]:
    """Find nothing."""
    return iter(())
