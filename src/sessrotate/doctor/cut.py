"""What to say of a session whose client cut a part of its history out.

Rule: what is gone is named, and what keeps it from going on. Only reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.archive.state import State

_KEEPS: Final = (
    "That is CLAUDE_CODE_TRANSCRIPT_LOCAL_GC=1 in the environment of Claude Code (2.1.287 and "
    "later): unset it, or set it to `keep` (2.1.332 and later), which leaves the old file in a "
    "folder beside the session."
)


def told(found: State) -> Iterator[tuple[str, str]]:
    """Yield the kind of finding and its sentences, if anything was cut out."""
    if details := [problem.detail for problem in found.cuts]:
        yield "cut", " ".join([*details, _KEEPS])
