"""Codex CLI: sessions that 0.101 to 0.169 wrote."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Final

import generate_codex
from sessrotate.clients.codex import client as codex
from sessrotate.clients.codex import reader
from support import oracle
from support.conformance.specimen import FIXTURES, Specimen

if TYPE_CHECKING:
    pass

ID: Final = generate_codex.Options().session_id

# What is told by its two ends, whatever is between them.
_ENDS: Final = re.compile(
    rb'\{"timestamp":"[^"\\]{0,128}",("ordinal":\d{1,15},)?"type":"compacted","payload":\{'
    rb'"message":"([^"\\]|\\.)*"(,"replacement_history":.*\}|\})[ \t\r]*\}[ \t\r]*',
    re.DOTALL,
)


def _is_boundary(line: bytes) -> bool:
    if b'"compacted"' not in line:
        return False
    if _ENDS.fullmatch(line):
        return True
    row = oracle.row(line)
    return row.get("type") == "compacted" and isinstance(row.get("payload"), dict)


def _made(cuts: int) -> bytes:
    target = io.BytesIO()
    generate_codex.generate(target, generate_codex.Options(size=60_000, boundaries=cuts))
    return target.getvalue()


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
    boundaries=lambda data: oracle.offsets(data, _is_boundary),
    time=oracle.time,
    key=lambda _line: None,
    environment=lambda folder: {"CODEX_HOME": str(folder), "CODEX_SESSIONS_DIR": ""},
    place=f"sessions/2026/02/10/rollout-2026-02-10T08-00-00-{ID}.jsonl",
    session=ID,
)
