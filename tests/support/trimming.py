"""What Claude Code leaves of its own transcript when it trims it (2.1.287 to 2.1.332).

Rule: the client's rule once more, over lists in memory; real clients are asked in
`real_clients/test_trimmed.py`. Kept are the last compaction and all behind it; of what was before,
the rows that the compaction says it preserved, those that a row behind it continues, and every line
whose type no client knows. The last setting of each kind moves behind the compaction.
"""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from support import oracle

if TYPE_CHECKING:
    from pathlib import Path

ROWS: Final = {"user", "assistant", "system", "attachment"}
SETTINGS: Final = {
    *("mode", "custom-title", "ai-title", "permission-mode", "attribution-snapshot", "tag")
}
VOID: Final = {
    *("progress", "last-prompt", "api-request", "file-history-snapshot", "file-history-delta")
}
_NUMBERS: Final = count()


def trimmed(data: bytes) -> bytes:
    """Return what a client writes in place of a session file, which ends with a newline."""
    lines = data.splitlines(keepends=True)
    rows = [oracle.row(line) for line in lines]
    compactions = [n for n, line in enumerate(lines) if oracle.is_boundary(line.rstrip(b"\n"))]
    at = compactions[-1]
    plain = max((n for n in compactions if not _preserved(rows[n])), default=-1)
    preserved = {*_preserved(rows[at])}
    wanted = {row.get("parentUuid") for row in rows[at:]} | preserved
    last = {row.get("uuid"): n for n, row in enumerate(rows) if row.get("type") in ROWS}
    settings: dict[tuple[str, object], list[int]] = {}
    snapshots: dict[object, int] = {}
    for n, row in enumerate(rows):
        if row.get("type") in SETTINGS:
            settings.setdefault((row["type"], row.get("sessionId")), []).append(n)
        if row.get("type") == "file-history-snapshot":
            snapshots[row.get("messageId")] = n

    def stays(n: int) -> bool:
        row = rows[n]
        kind = row.get("type")
        if kind == "attribution-snapshot":
            return n >= at and settings[kind, row.get("sessionId")][-1] == n
        if n >= at:
            return True
        if kind in ROWS:
            return row.get("uuid") in wanted and last[row.get("uuid")] == n
        if kind == "file-history-snapshot":
            return row.get("messageId") in preserved and snapshots[row.get("messageId")] == n
        if kind == "file-history-delta":
            return row.get("messageId") in preserved
        return lines[n] != b"\n" and kind not in SETTINGS | VOID

    moved = [
        lines[each[-1]]
        for (kind, _), each in settings.items()
        if each[-1] < at and (kind != "attribution-snapshot" or each[-1] > plain)
    ]
    before = [line for n, line in enumerate(lines[:at]) if stays(n)]
    behind = [line for n, line in enumerate(lines[at + 1 :], at + 1) if stays(n)]
    return b"".join([*before, lines[at], *moved, *behind])


def kept_name(live: Path) -> Path:
    """Return a name that a client gives what it keeps of a live file."""
    folder = live.with_suffix("") / "before-cleanup"
    return folder / f"{time.time_ns() // 1_000_000:013}-{next(_NUMBERS):08x}.jsonl.replaced"


def keep(live: Path) -> Path:
    """Trim a live file as a client does that is told to keep what was there; return that."""
    data = live.read_bytes()
    kept = kept_name(live)
    kept.parent.mkdir(0o700, parents=True, exist_ok=True)
    draft = live.with_name(f"{live.name}.compact.tmp.00000000")
    draft.write_bytes(trimmed(data))
    kept.hardlink_to(live)
    draft.rename(live)
    return kept


def _preserved(boundary: dict[str, Any]) -> list[str]:
    metadata = boundary.get("compactMetadata") or {}
    found: list[str] = (metadata.get("preservedMessages") or {}).get("uuids", [])
    return found
