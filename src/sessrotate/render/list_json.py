"""Sessions → the JSON that `list` prints for programs; `docs/schema/list.json` is its schema. Pure.

Rule: the keys are a contract: new ones are added, none is changed. Sizes are in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import asdict

from sessrotate.render.common import json_rows
from sessrotate.render.list import moment
from sessrotate.reports.session_info import SessionInfo


def as_json(entries: Iterable[SessionInfo]) -> Iterator[str]:
    """Yield the document that `list --json` prints: a session a line (docs/schema/list.json)."""
    yield from json_rows(map(_document, entries), "\n", "\n")
    yield "\n"


def _document(entry: SessionInfo) -> dict[str, Any]:
    return {
        "session": entry.id,
        "client": entry.client,
        "project": entry.project,
        "path": str(entry.path),
        "bytes": entry.bytes,
        "archived_bytes": entry.archived_bytes,
        "boundaries": entry.compactions,
        "live_tail_bytes": entry.live_tail_bytes,
        "modified": _iso(entry.modified),
        "running": entry.is_running,
        "restored": entry.is_restored,
        "live": entry.is_live,
        "put_away": entry.is_away,
        "title": entry.title.text,
        "title_source": entry.title.source,
        "branch": entry.branch,
        "started": entry.started,
        "ended": entry.ended,
        "segments": entry.segments,
        "archived_disk_bytes": entry.archived_disk_bytes,
        "archive_missing": entry.archive_missing,
        "disk_bytes": entry.disk_bytes,
        "gain_bytes": entry.gain_bytes,
        "waiting_disk_bytes": entry.waiting_disk_bytes,
        "side_bytes": entry.side_bytes,
        "standing": entry.standing,
        "continues": entry.continues and asdict(entry.continues),
    }


def _iso(seconds: float) -> str:
    return moment(seconds).isoformat(timespec="milliseconds").replace("+00:00", "Z")
