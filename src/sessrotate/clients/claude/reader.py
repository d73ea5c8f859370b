"""The `Reader` of Claude Code: what the records of its sessions say.

Rule: no facts of its own. Each answer comes from the module beside it that knows it: `view`,
`kinds`, `live`, `thread`, `branches`, `agents`, `preview`, `titles`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from sessrotate.clients import opaque
from sessrotate.clients.claude import agents as claude_agents
from sessrotate.clients.claude import branches, kinds, preview, thread, titles
from sessrotate.clients.claude import live as claude_live
from sessrotate.clients.claude import view as claude_view
from sessrotate.clients.common import bytes_in
from sessrotate.clients.preview import EDGE, Agent, Title
from sessrotate.clients.protocol import Reading
from sessrotate.parsing.records import Record

gists: Final = kinds.gists
line_key: Final = kinds.line_key
records: Final = opaque.records
said: Final = opaque.said
sight: Final = preview.look
view: Final = claude_view.view


def worded(literals: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return what lines have whose views say more: commands come as they were typed."""
    every = b"".join(literals)
    spaced = (b"<command-",) if b" " in every else ()
    return (*spaced, b"<bash-input>") if b"!" in every else spaced


def key(record: Record) -> bytes | None:
    """Return a row's own uuid, None if it has none."""
    return line_key(record.line) if record.is_whole else None


def loaded(session: Reading) -> Iterator[Record]:
    """Yield what a resume loads: the newest segment, before it the older rows that it needs.

    Older segments are opened only if such rows are not in the live file.
    """
    if session.newest:
        wanted = claude_live.wanted_by(session.segment(session.newest))
        yield from claude_live.found(wanted, session.older)
    yield from session.segment(session.newest)


def conversation(session: Reading, *, with_agents: bool = False) -> Iterator[Record]:
    """Yield the rows that a resume sends (`thread`): what it loads is read several times.

    That is without branches that the user left and, unless `with_agents`, without agents' rows;
    what a compaction preserved stands behind its summary.
    """
    return thread.conversation(lambda: loaded(session), with_agents=with_agents)


def rewound(session: Reading) -> Callable[[Record], bool]:
    """Return what tells whether a row is of a branch that was rewound (`branches`)."""
    return branches.rewound(session.history(), conversation(session))


def title(session: Reading) -> Title:
    """Return the title; all of a file that was never split is read for it."""
    return titles.exact(lambda: session.titled(EDGE), session.id)


def agents(session: Reading) -> list[Agent]:
    """Return the agents' transcripts.

    The history is read once where that takes to tell which tool call started which agent.
    """
    return claude_agents.with_calls(claude_agents.of(session.beside, session.id), session.history)


def side_bytes(session: Reading) -> int:
    """Return how many bytes of tools' results the client keeps in files of their own."""
    return bytes_in(session.beside.parent / session.id / claude_agents.RESULTS)
