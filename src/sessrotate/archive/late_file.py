"""The file of late lines that wait to be put in their place, for whoever reads the history.

Rule: what is handed out is held against the mark in the intent; a changed file is never read on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.archive.intent import Mark
from sessrotate.errors import DamagedError, printable
from sessrotate.model import Span
from sessrotate.system.digest import Fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sessrotate.archive.state import State


class Counted:
    """Pieces that are told by their mark once they have passed."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces, self._size, self._digest = pieces, 0, Fingerprint()

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._size += len(piece)
            self._digest.update(piece)
            yield piece

    @property
    def mark(self) -> Mark:
        """Size and digest of what has passed."""
        return Mark(self._size, self._digest.digest)


def kept(found: State) -> Iterator[memoryview]:
    """Yield the late lines that have a file of their own; raise DamagedError if they changed."""
    pending = found.pending
    if pending is None:
        return
    name = printable(str(found.place.late))
    if found.late is None or found.late.size() != pending.mark.size:
        raise DamagedError(f"{name} is not what it was.")
    copied = Counted(found.late.pieces(Span(0, pending.mark.size)))
    for piece in copied:
        yield memoryview(piece)
    if copied.mark != pending.mark:
        raise DamagedError(f"{name} is not what it was.")
