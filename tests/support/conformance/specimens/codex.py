"""Codex CLI: sessions that 0.101 to 0.169 wrote."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Any, Final

import generate_codex
from sessrotate.clients.codex import client as codex
from sessrotate.clients.codex import reader
from support.conformance.specimen import FIXTURES, Specimen

if TYPE_CHECKING:
    from pathlib import Path

ID: Final = generate_codex.session_id(7)

# What is told by its two ends, whatever is between them.
_ENDS: Final = re.compile(
    rb'\{"timestamp":"[^"\\]{0,128}",("ordinal":\d{1,15},)?"type":"compacted","payload":\{'
    rb'"message":"([^"\\]|\\.)*"(,"replacement_history":.*\}|\})[ \t\r]*\}[ \t\r]*',
    re.DOTALL,
)


def _row(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _is_boundary(line: bytes) -> bool:
    if b'"compacted"' not in line:
        return False
    if _ENDS.fullmatch(line):
        return True
    row = _row(line)
    return row.get("type") == "compacted" and isinstance(row.get("payload"), dict)


def _boundaries(data: bytes) -> list[int]:
    found, at = [], 0
    for line in data.split(b"\n"):
        if _is_boundary(line):
            found.append(at)
        at += len(line) + 1
    return found


def _time(line: bytes) -> str | None:
    time = _row(line).get("timestamp")
    return time if isinstance(time, str) and time[:2] == "20" else None


def _made(cuts: int) -> bytes:
    target = io.BytesIO()
    generate_codex.generate(target, generate_codex.Options(size=60_000, boundaries=cuts))
    return target.getvalue()


def _environment(folder: Path) -> dict[str, str]:
    return {"CODEX_HOME": str(folder), "CODEX_SESSIONS_DIR": ""}


def _installed(folder: Path, data: bytes) -> Path:
    name = f"rollout-2026-02-10T08-00-00-{ID}.jsonl"
    path = folder / "sessions" / "2026" / "02" / "10" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


SPECIMEN: Final = Specimen(
    client=codex,
    reader=reader,
    # Not those of bare rows: their key is their place, which a line does not tell.
    files=tuple(
        path
        for path in sorted((FIXTURES / "codex").rglob("*.jsonl"))
        if path.parent.name != "0.29.0"
    ),
    made=_made,
    boundaries=_boundaries,
    time=_time,
    key=lambda _line: None,
    environment=_environment,
    installed=_installed,
    session=ID,
)
