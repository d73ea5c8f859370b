"""What Claude Code keeps beside a session: its agents' transcripts and long tool results.

Rule: a file belongs to a session if its rows or its folder say so. It belongs to a tool call only
if one of these says so: the agent's own description (2.1.330), the call's result, or a prompt that
only this call and this agent share. This module only reads, and passes over files that it cannot
read.

From 2.1.30 on all of it is in a folder of the session's name (`subagents`, `tool-results` and
more). 2.0.x keeps the transcripts of all sessions' agents flat in the project's folder: there the
session ids in their rows decide.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import FileIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from sessrotate import names
from sessrotate.clients.claude.client import AGENT, SUFFIX, projects_folder
from sessrotate.clients.claude.preview import WARM_UP
from sessrotate.clients.claude.rows import Outcome, Shown, Started, origin_of, shown_of, started_of
from sessrotate.clients.claude.view import of_row
from sessrotate.clients.common import begins, distinct, is_folder, listed, names_in, text
from sessrotate.clients.preview import EDGE, Agent, rows
from sessrotate.clients.view import asked
from sessrotate.errors import DamagedError, SessrotateError
from sessrotate.parsing import Record
from sessrotate.system import zstd
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from sessrotate.clients.in_place import Near

AGENTS: Final = "subagents"
"""A folder in the folder of a session's name, from 2.1.30 on."""

_NAMES: Final = f"{AGENT}*"
_ZST: Final = names.CODEC_SUFFIX["zstd"]
_META: Final = ".meta.json"
_META_BYTES: Final = 64 * 1024
_STARTED: Final = (b'"agentId"', b'"Task"', b'"Agent"')


def transcripts(live: Path, session: str) -> list[Path]:
    """Return the transcripts in the folder of a session's name, in order (2.1.30 and later).

    Those of an agent team stand directly in it.
    """
    folder = live.parent / session
    found = chain(folder.glob(_NAMES), (folder / AGENTS).rglob(_NAMES))
    return sorted(path for path in found if _is_transcript(path))


def away(live: Path, session: str) -> list[Path]:
    """Return all transcripts of a session that was put away as this file, in order.

    Long ones are compressed.
    """
    return [*filter(_is_transcript, listed(live.parent)), *transcripts(live, session)]


def _is_transcript(path: Path) -> bool:
    is_named_so = is_agent(names.uncompressed(path.parts))
    return is_named_so and path.is_file() and not path.is_symlink()


def alone(prefix: str = "") -> Iterator[tuple[Path, Path]]:
    """Yield where a session's own file would be, and a transcript of it, for sessions without one.

    Only of sessions whose id begins so. Which of them have an archive is not asked.
    """
    for project in distinct(listed(projects_folder())):
        there = {*names_in(project)}
        for name in sorted(there):
            path = project / name
            if is_agent(name):
                with suppress(SessrotateError, OSError):
                    named = owners(_head(path)[0])
                    lives = [f"{each}{SUFFIX}" for each in sorted(named) if "/" not in each]
                    if not there.intersection(lives):
                        yield from (
                            (project / each, path) for each in lives if begins(each, prefix)
                        )
            elif begins(name, prefix) and f"{name}{SUFFIX}" not in there and is_folder(path):
                yield from ((project / f"{name}{SUFFIX}", each) for each in transcripts(path, name))


def of(live: Path, session: str) -> list[Agent]:
    """Return the agents of the session with this live file, in the order of their files' names."""
    beside = (path for path in listed(live.parent) if path.name.startswith(AGENT))
    found = []
    for path in chain(beside, transcripts(live, session)):
        with suppress(SessrotateError):
            head, size = _head(path)
            if path.parent != live.parent or session in owners(head):
                found.append(_agent(path, head, size))
    return found


def owners(head: bytes) -> set[str]:
    """Return the sessions that the first rows of an agent's transcript name.

    2.0.28 begins some with the id of a file that it then leaves empty.
    """
    named = (row.session_id for row in rows(origin_of, head, is_whole=False))
    return {session for session in named if isinstance(session, str) and session}


def beside(live: Path, session: str, near: Near | None = None) -> list[str]:
    """Return the names of what is surely the session's beside its live file, the folder first.

    A transcript is if its rows name the session and no other one that is there. Whoever asks for
    many keeps in `near` what is there. Raises OSError if the folder cannot be read.
    """
    near, path = {} if near is None else near, live.parent / session
    if live.parent not in near:  # by names: there may be thousands of sessions
        there = os.listdir(live.parent) if live.parent.exists() else []  # noqa: PTH208
        near[live.parent] = sorted(filter(is_agent, there))
    found = [session] if path.is_dir() or path.is_symlink() else []
    agents = ((name, live.parent / name) for name in near[live.parent] if name != session)
    return found + [
        name for name, path in agents if not path.is_symlink() and _is_of(path, session)
    ]


def is_agent(name: str) -> bool:
    """Tell whether a file has the name of an agent's transcript."""
    return name.startswith(AGENT) and name.endswith(SUFFIX)


def with_calls(agents: Iterable[Agent], history: Callable[[], Iterable[Record]]) -> list[Agent]:
    """Return the agents with the tool calls that started them, as far as `history` says.

    It is read once, if at all.
    """
    agents = list(agents)
    if all(agent.call is not None or agent.is_warm_up for agent in agents):
        return agents
    by_agent: dict[str, str] = {}
    by_prompt: dict[str, list[str]] = {}
    wanted = {agent.asked for agent in agents}
    for record in history():
        if any(marker in record.line for marker in _STARTED):
            row = started_of.of(record) or Started()
            result = row.tool_use_result
            agent = result.agent_id if isinstance(result, Outcome) else None
            answered = next((text(each, "tool_use_id") for each in row.blocks("tool_result")), None)
            if agent is not None and answered is not None:
                by_agent[agent] = answered
            for call, said in _calls(row):
                if said in wanted and call not in by_prompt.setdefault(said, []):
                    by_prompt[said].append(call)
    asked_once = {said for said in wanted if sum(each.asked == said for each in agents) == 1}

    def call_of(agent: Agent) -> str | None:
        told = agent.call or by_agent.get(agent.id)
        same = by_prompt.get(agent.asked or "", [])
        return told or (same[0] if len(same) == 1 and agent.asked in asked_once else None)

    return [replace(agent, call=call_of(agent)) for agent in agents]


# ── inside ───────────────────────────────────────────────────────────────────────────────────


def _head(path: Path) -> tuple[bytes, int]:
    with Source.itself(path) as source:
        size = source.size()
        if path.name.endswith(_ZST):
            head = b""  # of a damaged one, whoever reads it is told
            with FileIO(source.fd, "rb", closefd=False) as stream, suppress(DamagedError):
                head = next(zstd.decompressed(stream.read, EDGE), b"")
            return head, size
        return source.read_at(0, min(EDGE, size)), size


def _is_of(path: Path, session: str) -> bool:
    with suppress(SessrotateError, OSError):
        named = owners(_head(path)[0])  # one of a file that was left empty says nothing
        return session in named and not any(_is_there(path, each) for each in named - {session})
    return False


def _is_there(path: Path, session: str) -> bool:
    if "/" in session or session in {"", ".", ".."}:
        return False
    try:
        return path.with_name(session + SUFFIX).stat().st_size > 0
    except (OSError, ValueError):
        return False


def _agent(path: Path, head: bytes, size: int) -> Agent:
    first = head.partition(b"\n")[0]
    row = shown_of(first) or Shown()
    meta = _meta(path)
    said = asked(of_row(row)) or None
    return Agent(
        id=_named(path).removeprefix(AGENT),
        path=path,
        bytes=size,
        call=text(meta, "toolUseId"),
        asked=said,
        is_warm_up=said == WARM_UP,
    )


def _named(path: Path) -> str:
    return names.session_of(names.uncompressed(path.parts))


def _meta(path: Path) -> dict[str, Any]:
    with suppress(SessrotateError, ValueError, RecursionError):
        with Source.itself(path.with_name(_named(path) + _META)) as source:
            found = json.loads(source.read_at(0, min(_META_BYTES, source.size())))
        return found if isinstance(found, dict) else {}
    return {}


def _calls(row: Shown) -> Iterator[tuple[str, str]]:
    """Yield the calls that start agents, each with what it asks."""
    for block in row.blocks("tool_use"):
        asked, call = text(block.get("input"), "prompt"), text(block, "id")
        if asked is not None and call is not None:
            yield call, asked.strip()
