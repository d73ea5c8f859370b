"""What the records of a Codex session say: `formats.client.Reader`, put together.

Rule: no fact of its own. Each answer is that of the module that knows it: `codex_view`,
`codex_live`, `codex_titles`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.formats.codex_live import conversation, live
from sessrotate.formats.codex_rows import is_bare
from sessrotate.formats.codex_titles import sight, title
from sessrotate.formats.codex_view import view
from sessrotate.formats.opaque_reader import said
from sessrotate.records import records

if TYPE_CHECKING:
    from sessrotate.formats.client import Reading
    from sessrotate.formats.sight import Agent
    from sessrotate.records import Record

__all__ = (
    "agents",
    "conversation",
    "key",
    "live",
    "records",
    "said",
    "side_bytes",
    "sight",
    "title",
    "view",
)


def key(record: Record) -> bytes | None:
    """Return what makes two records copies of one: all their bytes.

    No client copies rows within a file. Bare rows have no time, so that the same thing, asked
    twice, has the same bytes: each is known by its place.
    """
    return b"%d:%d" % (record.segment, record.offset) if is_bare(record) else None


def agents(_session: Reading) -> list[Agent]:
    """Return nothing: an agent's rollout is a session of its own, and its source says so."""
    return []


def side_bytes(_session: Reading) -> int:
    """Return 0: nothing is kept beside a session."""
    return 0
