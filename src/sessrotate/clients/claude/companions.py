"""What Claude Code keeps beside a session's live file, in the same folder of a project.

Rule: only what is surely the session's: its folder, and agents' transcripts whose rows name it
and no other session that is there. Only reads.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sessrotate.clients.claude.agents import owners
from sessrotate.clients.claude.client import AGENT, SUFFIX
from sessrotate.clients.preview import EDGE
from sessrotate.errors import SessrotateError
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from pathlib import Path


def beside(live: Path, session: str) -> list[str]:
    """Return the names of what belongs to a session beside its live file, the folder first.

    From 2.1.30 on that is a folder of the session's name (`subagents`, `tool-results` and more);
    2.0.x keeps the transcripts of all sessions' agents flat in the project's folder. Raises
    OSError if that cannot be read.
    """
    found, agents = [], []
    for path in sorted(live.parent.iterdir()) if live.parent.exists() else []:
        if path.name == session and (path.is_dir() or path.is_symlink()):
            found.append(path.name)
        elif is_agent(path.name) and not path.is_symlink() and _is_of(path, session):
            agents.append(path.name)
    return found + agents


def is_agent(name: str) -> bool:
    """Tell whether a file has the name of an agent's transcript."""
    return name.startswith(AGENT) and name.endswith(SUFFIX)


def _is_of(path: Path, session: str) -> bool:
    with suppress(SessrotateError, OSError), Source(path) as source:
        head = source.read_at(0, min(EDGE, source.size()))
        named = owners(head)  # where one is of a file that was left empty, it says nothing
        return session in named and not any(_is_there(path, each) for each in named - {session})
    return False


def _is_there(path: Path, session: str) -> bool:
    if "/" in session or session in {"", ".", ".."}:
        return False
    try:
        return path.with_name(session + SUFFIX).stat().st_size > 0
    except (OSError, ValueError):
        return False
