"""What to say of a session whose client cut a part of its history out.

Rule: what is gone is named, and what keeps it from going on. Only reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sessrotate.archive import trimmed
from sessrotate.clients.claude import cleanup, trim

if TYPE_CHECKING:
    from sessrotate.archive.place import Place
    from sessrotate.archive.state import State

PREVENTION: Final = (
    "That is CLAUDE_CODE_TRANSCRIPT_LOCAL_GC=1 in the environment of Claude Code (2.1.287 and "
    "later): install the hook with `sessrotate setup`, which keeps the old file; or unset it, or "
    "set it to `keep` (2.1.332 and later), with which the client keeps it."
)
"""What cuts a session, and what keeps it from going on."""


def told(found: State) -> Iterator[tuple[str, str]]:
    """Yield the kind of finding and its sentences, if anything was cut out."""
    details = [problem.detail for problem in found.cuts]
    if found.kept:
        yield "cut", " ".join([*details, *_swept(found.place)])
    elif details:
        yield "cut", " ".join([*details, PREVENTION])


def kept(where: Place) -> str | None:
    """Return what to say of what a client kept of a session that was never rotated."""
    files = trim.replaced(where.live, where.session)
    if not files:
        return None
    return " ".join([trimmed.told(files, where.session).detail, *_swept(where)])


def _swept(where: Place) -> Iterator[str]:
    """Say when the client deletes what it kept: with the session, by the time of its file."""
    with suppress(OSError):
        status = where.live.stat()
        at = cleanup.in_force().deletes_at(status, is_desktop=False)
        if at is not None:
            day = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
            yield f"Its clean-up deletes that on {day}, unless the session goes on."
