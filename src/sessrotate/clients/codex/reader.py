"""What the records of a Codex session say: the `Reader` of `clients.protocol`, put together.

Rule: each answer comes from the module that knows it: `view`, `live`, `preview`. Nothing is kept
beside a session, and an agent's rollout is a session of its own, whose source says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.clients.codex.live import conversation, live
from sessrotate.clients.codex.preview import sight, title
from sessrotate.clients.codex.rows import is_bare
from sessrotate.clients.codex.view import view
from sessrotate.clients.opaque import agents, said, side_bytes
from sessrotate.parsing.records import records

if TYPE_CHECKING:
    from sessrotate.parsing.records import Record

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
