"""Reads a session's conversation in the library and by the command, which must say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate import open_session
from sessrotate.parsing import on_one_line
from support.command_line import piped

if TYPE_CHECKING:
    from pathlib import Path


def conversation(path: Path, env: dict[str, str] | None = None) -> list[str]:
    """Return the lines that a resume of a session sends."""
    with open_session(path) as session:
        lines = [on_one_line(record.line).decode() for record in session.conversation()]
    ended = piped("read", path, "--format", "jsonl", env=env or {})
    assert (ended.code, ended.out.split("\n")) == (0, [*lines, ""])
    return lines
