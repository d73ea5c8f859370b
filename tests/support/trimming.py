"""What Claude Code leaves of its own transcript when it trims it (2.1.287 to 2.1.332).

Rule: for the rows that the tests write; real clients are asked in `real_clients/test_trimmed.py`.
Kept are the last compaction and all behind it; of what stands before, the rows that the compaction
says it preserved, those that a row behind it continues, and every line whose type no client knows.
The last setting of each kind moves behind the compaction.
"""

from __future__ import annotations

import json
from typing import Any, Final

from support import oracle

ROWS: Final = {"user", "assistant", "system", "attachment"}
SETTINGS: Final = {"mode", "custom-title", "ai-title", "last-prompt", "permission-mode"}


def trimmed(data: bytes) -> bytes:
    """Return what a client writes in place of a session file, which ends with a newline."""
    lines = data.splitlines(keepends=True)
    at = max(number for number, line in enumerate(lines) if oracle.is_boundary(line.rstrip(b"\n")))
    rows = [json.loads(line) for line in lines]
    wanted = {row.get("parentUuid") for row in rows[at:]} | {*_preserved(rows[at])}
    settings = {row["type"]: line for row, line in zip(rows[:at], lines, strict=False)
                if row.get("type") in SETTINGS}  # fmt: skip
    kept = [
        line
        for row, line in zip(rows[:at], lines, strict=False)
        if (row.get("uuid") in wanted if row.get("type") in ROWS else row["type"] not in SETTINGS)
    ]
    return b"".join([*kept, lines[at], *settings.values(), *lines[at + 1 :]])


def _preserved(boundary: dict[str, Any]) -> list[str]:
    metadata = boundary.get("compactMetadata") or {}
    found: list[str] = (metadata.get("preservedMessages") or {}).get("uuids", [])
    return found
