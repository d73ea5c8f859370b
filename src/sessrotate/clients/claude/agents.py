"""What Claude Code keeps beside a session: its agents' transcripts and long results of tools.

Rule: a file is the session's if its rows or its folder say so, and belongs to a tool call only if
something says that too: the agent's own description (2.1.330), the call's result, or a prompt that
only this call and this agent have in common. Only reads; what cannot be read is passed over.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from sessrotate.clients.claude.client import AGENT, SUFFIX, listed
from sessrotate.clients.claude.live import parsed, row_of, text
from sessrotate.clients.claude.titles import WARM_UP, prompt
from sessrotate.clients.preview import EDGE, Agent
from sessrotate.errors import SessrotateError
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from sessrotate.clients.claude.live import Row
    from sessrotate.clients.preview import Standing
    from sessrotate.parsing.records import Record

AGENTS: Final = "subagents"
RESULTS: Final = "tool-results"
"""Folders in the folder of a session's name, from 2.1.30 on."""

_META: Final = ".meta.json"
_META_BYTES: Final = 64 * 1024
_OWNER: Final = re.compile(rb'"sessionId":"([^"\\]{1,200})"')
_STARTED: Final = (b'"agentId"', b'"Task"', b'"Agent"')


def of(live: Path, session: str) -> list[Agent]:
    """Return the agents of the session with this live file, in the order of their files' names.

    2.0.x keeps them beside the sessions, all projects' agents in one place: there the session ids
    in their rows decide. From 2.1.30 on they are below the folder of the session's name.
    """
    below = (live.parent / session / AGENTS).rglob(f"{AGENT}*{SUFFIX}")
    beside = (path for path in listed(live.parent) if path.name.startswith(AGENT))
    found = []
    for path in chain(beside, sorted(below)):
        with suppress(SessrotateError):
            head, size = _head(path)
            if path.parent != live.parent or session in owners(head):
                found.append(_agent(path, head, size))
    return found


def owners(head: bytes) -> set[str]:
    """Return the sessions that the first rows of an agent's transcript name.

    2.0.28 begins some with the id of a file that it then leaves empty.
    """
    return {owner.decode("utf-8", "replace") for owner in _OWNER.findall(head)}


def side_bytes(folder: Path) -> int:
    """Return how many bytes the folder of a session, or one in it, holds."""
    sizes, folders = 0, [str(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if not entry.is_dir():
                        sizes += entry.stat(follow_symlinks=False).st_size
                    elif not entry.is_symlink():
                        folders.append(entry.path)
    return sizes


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
            row = row_of(record) or {}
            result, calls = row.get("toolUseResult"), _calls(row)
            agent = text(result, "agentId") if isinstance(result, dict) else None
            if agent is not None and (call := _answered(row)) is not None:
                by_agent[agent] = call
            for call, asked in calls:
                if asked in wanted and call not in by_prompt.setdefault(asked, []):
                    by_prompt[asked].append(call)
    asked_once = {asked for asked in wanted if sum(each.asked == asked for each in agents) == 1}

    def call_of(agent: Agent) -> str | None:
        told = agent.call or by_agent.get(agent.id)
        same = by_prompt.get(agent.asked or "", [])
        return told or (same[0] if len(same) == 1 and agent.asked in asked_once else None)

    return [replace(agent, call=call_of(agent)) for agent in agents]


def standing(head: bytes, *, is_whole: bool) -> Standing:
    """Tell by the first `EDGE` bytes of a file whether it is a session that somebody used.

    2.0.x leaves an empty file for each start, and warms up its agents before anybody asks
    anything; a file of agents' rows only is no session of its own either. In doubt it is one.
    """
    sidechains = warm_ups = False
    for line in BytesIO(head):  # mostly the first few say it
        row = parsed(line) or {}
        kind = text(row, "type")
        if kind not in {"user", "assistant"}:
            continue
        if row.get("isSidechain") is True:
            sidechains = True
        elif kind == "assistant":
            if not warm_ups:
                return "session"
        elif row.get("isCompactSummary") is True or (prompt(row) or WARM_UP) != WARM_UP:
            return "session"
        else:
            warm_ups = warm_ups or prompt(row) == WARM_UP
    if not is_whole and not (sidechains or warm_ups):
        return "session"
    return "warm-up" if warm_ups else "agent" if sidechains else "empty"


# ── inside ───────────────────────────────────────────────────────────────────────────────────


def _head(path: Path) -> tuple[bytes, int]:
    with Source(path) as source:
        size = source.size()
        return source.read_at(0, min(EDGE, size)), size


def _agent(path: Path, head: bytes, size: int) -> Agent:
    first = head.partition(b"\n")[0]
    row = parsed(first) or {}
    meta = _meta(path)
    asked = prompt({**row, "isSidechain": False})
    return Agent(
        id=path.name.removeprefix(AGENT).removesuffix(SUFFIX),
        path=path,
        bytes=size,
        call=text(meta, "toolUseId"),
        asked=asked,
        is_warm_up=asked == WARM_UP,
    )


def _meta(path: Path) -> Row:
    with suppress(SessrotateError, ValueError, RecursionError):
        with Source(path.with_name(path.name.removesuffix(SUFFIX) + _META)) as source:
            found = json.loads(source.read_at(0, min(_META_BYTES, source.size())))
        return found if isinstance(found, dict) else {}
    return {}


def _blocks(row: Row, kind: str) -> Iterator[Row]:
    message = row.get("message")
    content: Any = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == kind:
            yield block


def _answered(row: Row) -> str | None:
    return next((text(block, "tool_use_id") for block in _blocks(row, "tool_result")), None)


def _calls(row: Row) -> Iterator[tuple[str, str]]:
    """Yield the calls that start agents, each with what it asks."""
    for block in _blocks(row, "tool_use"):
        asking = block.get("input")
        asked = text(asking, "prompt") if isinstance(asking, dict) else None
        call = text(block, "id")
        if asked is not None and call is not None:
            yield call, asked.strip()
