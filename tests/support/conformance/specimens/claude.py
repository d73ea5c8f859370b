"""Claude Code: sessions that 2.0.28 to 2.1.330 wrote."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sessrotate.clients.claude import client as claude
from sessrotate.clients.claude import reader
from support import lines, oracle
from support.conformance.specimen import FIXTURES, Specimen

if TYPE_CHECKING:
    from pathlib import Path

ID: Final = "5e55107a-0000-4000-a000-0000000000c0"


def _row(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _time(line: bytes) -> str | None:
    time = _row(line).get("timestamp")
    return time if isinstance(time, str) and time[:2] == "20" else None


def _key(line: bytes) -> bytes | None:
    uuid = _row(line).get("uuid")
    return uuid.encode() if isinstance(uuid, str) else None


def _environment(folder: Path) -> dict[str, str]:
    return {"CLAUDE_CONFIG_DIR": str(folder)}


def _installed(folder: Path, data: bytes) -> Path:
    path = folder / "projects" / "-home-somebody" / f"{ID}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


SPECIMEN: Final = Specimen(
    client=claude,
    reader=reader,
    files=tuple(
        path
        for path in sorted((FIXTURES / "claude").glob("*/projects/*/*.jsonl"))
        if not path.name.startswith("agent-")
    ),
    made=lambda cuts: lines.session(cuts + 1),
    boundaries=oracle.boundaries,
    time=_time,
    key=_key,
    environment=_environment,
    installed=_installed,
    session=ID,
)
