"""The `Reader` of Claude Code: what the records of its sessions say.

Rule: no facts of its own. Each answer comes from the module beside it that knows it: `view`,
`kinds`, `live`, `thread`, `agents`, `preview`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessrotate.clients import opaque
from sessrotate.clients.claude import agents as claude_agents
from sessrotate.clients.claude import kinds, preview, thread
from sessrotate.clients.claude import live as claude_live
from sessrotate.clients.claude import view as claude_view
from sessrotate.clients.claude.rows import row_of
from sessrotate.clients.common import bytes_in
from sessrotate.clients.preview import EDGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.clients.preview import Agent, Title
    from sessrotate.clients.protocol import Reading
    from sessrotate.parsing.records import Record

gist: Final = kinds.gist
records: Final = opaque.records
said: Final = opaque.said
sight: Final = preview.look
view: Final = claude_view.view


def key(record: Record) -> bytes | None:
    """Return a row's own uuid, None if it has none."""
    return line_key(record.line) if record.is_whole else None


def line_key(line: bytes | memoryview) -> bytes | None:
    """Return the uuid of the row on a line, None if it has none."""
    row = row_of(line)
    if row is None or row.uuid is None:
        return None
    return row.uuid.encode("utf-8", "surrogatepass")


def live(session: Reading) -> Iterator[Record]:
    """Yield the newest segment, and before it the older rows that it still needs (`live`).

    Older segments are opened only if such rows are not in the live file.
    """
    if session.newest:
        needed = claude_live.needed_by(session.segment(session.newest))
        yield from claude_live.found(needed, session.older())
    yield from session.segment(session.newest)


def conversation(session: Reading) -> Iterator[Record]:
    """Yield the rows that a resume sends (`thread`): the live rows are read several times.

    They are `live` without agents' rows and branches that the user left; what a compaction
    preserved stands behind its summary.
    """
    return thread.conversation(lambda: live(session))


def title(session: Reading) -> Title:
    """Return the title; all of a file that was never split is read for it."""
    return preview.exact(lambda: session.titled(EDGE))


def agents(session: Reading) -> list[Agent]:
    """Return the agents' transcripts.

    The history is read once where that takes to tell which tool call started which agent.
    """
    return claude_agents.with_calls(claude_agents.of(session.path, session.id), session.history)


def side_bytes(session: Reading) -> int:
    """Return how many bytes of tools' results the client keeps in files of their own."""
    return bytes_in(session.path.parent / session.id / claude_agents.RESULTS)
