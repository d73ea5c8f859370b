"""What the records of Gemini CLI's append-only sessions (`.jsonl`, 0.39 and later) say.

Rule: a record is a line. `live` says what a resume makes of the lines, and `messages` what people
read of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

from sessrotate.clients import opaque
from sessrotate.clients.gemini import folders, messages, preview
from sessrotate.clients.gemini import view as gemini_view
from sessrotate.clients.gemini.rows import NONE, UPDATED, identity, messages_in, replaces, row_of
from sessrotate.clients.gemini.view import prompt
from sessrotate.clients.preview import EDGE, Agent, Title
from sessrotate.clients.protocol import Reading
from sessrotate.parsing import Record

conversation: Final = messages.conversation
records: Final = opaque.records
rewound: Final = messages.rewound
said: Final = messages.said
sight: Final = preview.sight
view: Final = gemini_view.view

_METADATA: Final = 64
"""Lines among which a session names itself."""


def key(record: Record) -> bytes | None:
    """Return a message's id, None for any other line, which only an equal one is a copy of."""
    found = identity(record) if record.is_whole else None
    return None if found is None else found.encode("utf-8", "surrogatepass")


def worded(literals: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return what lines have whose views say more: a thought's subject is put in asterisks."""
    return (b'"subject"',) if any(b"*" in literal for literal in literals) else ()


# ── of the session ───────────────────────────────────────────────────────────────────────────


def title(session: Reading) -> Title:
    """Return what the client lists the session as: its summary, or else its first prompt."""
    summary = first = None
    for record in session.titled(EDGE):
        if first is None and replaces(record, session.bytes_of):
            for elements in messages_in(record, session.bytes_of, UPDATED):
                for each in elements:
                    first = first or prompt(row_of(each) or NONE)
        elif b'"summary"' in record.line or (first is None and b'"user"' in record.line):
            row = row_of(record) or NONE
            if row.kind == "message":
                first = first or prompt(row)
            else:
                summary = row.update.summary or row.summary or summary
    return preview.titled(summary, first)


def agents(session: Reading) -> list[Agent]:
    """Return the transcripts of the session's agents, in the order of their ids.

    A tool call says which agent it started, by `agentId` (0.45 and later).
    """
    found = folders.agents_of(session.path, _own_id(session) or "")
    calls = _calls(session) if found else {}
    return [_agent(path, calls) for path in found]


def folder(path: Path, head: bytes, known: Iterable[str]) -> str:
    """Return the folder in which a session was run, or what its project is called (`folders`).

    That is the word that the client has for it, or the first characters of its hash.
    """
    project, digest = path.parent.parent, preview.project_hash(head)
    return (
        _told(project, digest)
        or folders.folder_of(project, digest, known)
        or folders.short_name(project)
    )


# The client's own notes of where projects are are read once for each, not for each session.
@lru_cache(maxsize=4096)
def _told(project: Path, digest: str | None) -> str | None:
    return folders.folder_of(project, digest)


beside: Final = folders.beside


def _agent(path: Path, calls: dict[str, str]) -> Agent:
    name = folders.session_of(path.name)
    seen = sight(folders.beginning(path, EDGE), b"", is_whole=False)
    asked = seen.title.text if seen.title.source == "first prompt" else None
    return Agent(name, path, path.stat().st_size, calls.get(name), asked)


def _calls(session: Reading) -> dict[str, str]:
    """Return the calls that started agents, by the agent's id."""
    found: dict[str, str] = {}
    for record in session.history():
        if b'"agentId"' in record.line:
            for call in (row_of(record) or NONE).tool_calls:
                if call.agent_id is not None and call.id:
                    found[call.agent_id] = call.id
    return found


def _own_id(session: Reading) -> str | None:
    """Return the uuid that a session names itself with, None where its beginning has none."""
    for record in islice(session.history(), _METADATA):
        row = row_of(record) or NONE
        if row.kind == "metadata":
            return row.session_id
    return None
