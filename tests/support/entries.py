"""Rows of the list, as tests want them: what a test does not name is of no importance to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sessrotate.clients.preview import Title
from sessrotate.reports import SessionInfo

if TYPE_CHECKING:
    from sessrotate.clients.preview import TitleSource

NOW: Final = 1_772_366_400.0
"""2026-03-01, noon, UTC."""


def titled(text: str, source: TitleSource = "first prompt") -> Title:
    return Title(text, source if text else "none")


def entry(session: str = "5e55107a-0000-4000-a000-000000000001", **fields: Any) -> SessionInfo:
    told: dict[str, Any] = {
        "id": session,
        "name": session,
        "client": "claude",
        "project": "/home/somebody/project",
        "path": Path(f"/p/{session}.jsonl"),
        "is_live": True,
        "is_away": False,
        "bytes": 1000,
        "archived_bytes": 0,
        "archived_disk_bytes": 0,
        "archive_missing": False,
        "disk_bytes": 4096,
        "gain_bytes": 0,
        "waiting_disk_bytes": 0,
        "side_bytes": 0,
        "segments": 0,
        "compactions": None,
        "live_tail_bytes": None,
        "modified": NOW,
        "last_used": NOW,
        "is_running": False,
        "is_restored": False,
        "standing": "session",
        "title": titled("A title"),
        "branch": "main",
        "started": "2026-03-01T10:00:00.000Z",
        "ended": "2026-03-01T12:00:00.000Z",
        **fields,
    }
    return SessionInfo(**told)
