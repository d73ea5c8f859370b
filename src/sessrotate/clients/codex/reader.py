"""What the records of a Codex session say: the `Reader` of `clients.protocol`, put together.

Rule: each answer comes from the module that knows it: `view`, `live`, `copies`, `preview`. Nothing
is kept beside a session, and an agent's rollout is a session of its own, whose source says so.
"""

from __future__ import annotations

from typing import Final

from sessrotate.clients import opaque
from sessrotate.clients.codex import copies, preview
from sessrotate.clients.codex import live as codex_live
from sessrotate.clients.codex import view as codex_view
from sessrotate.clients.codex.rows import is_bare
from sessrotate.parsing.records import Record

agents: Final = opaque.agents
conversation: Final = codex_live.conversation
copied: Final = copies.copied
records: Final = opaque.records
rewound: Final = codex_live.rewound
said: Final = opaque.said
side_bytes: Final = opaque.side_bytes
sight: Final = preview.sight
title: Final = preview.title
view: Final = codex_view.view
worded: Final = codex_view.worded


def key(record: Record) -> bytes | None:
    """Return what makes two records copies of one: all their bytes.

    No client copies rows within a file. Bare rows have no time, so that the same thing, asked
    twice, has the same bytes: each is known by its place.
    """
    return b"%d:%d" % (record.segment, record.offset) if is_bare(record) else None
