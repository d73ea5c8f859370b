"""Rotated live files whose archive is not there: somebody deleted it, or did not bring it along.

Rule: the live file alone tells, by a header that is its own; nothing of it is ever a path. Of other
files only the first bytes are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.archive import continued, owner, place
from sessrotate.clients.claude import client as claude
from sessrotate.errors import SessrotateError
from sessrotate.segments import live_header
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place


def place_of(path: Path) -> Place | None:
    """Return the place of a rotated live file whose archive is missing; None of any other file.

    A copy of one counts, a fork (which copied the header and is whole) does not.
    """
    if not continued.begins_so(path):
        return None
    where = owner.read_with(path)
    if where is None or place.holds_something(where.archive) or not _is_headed(path, where.session):
        return None
    return where


def every() -> Iterator[Place]:
    """Yield the place of each such live file of this machine, in the order of their paths."""
    for path in claude.sessions():
        where = place_of(path)
        if where is not None:
            yield where


def _is_headed(path: Path, session: str) -> bool:
    try:
        with Source.itself(path) as source:
            return live_header.parse(continued.first_line(source), session) is not None
    except (SessrotateError, OSError):
        return False
