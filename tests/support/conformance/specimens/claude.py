"""Claude Code: sessions that 2.0.28 to 2.1.330 wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessrotate.clients.claude import client as claude
from sessrotate.clients.claude import reader
from support import lines, oracle
from support.conformance.specimen import FIXTURES, Specimen

if TYPE_CHECKING:
    pass

ID: Final = "5e55107a-0000-4000-a000-0000000000c0"


def _key(line: bytes) -> bytes | None:
    uuid = oracle.row(line).get("uuid")
    return uuid.encode() if isinstance(uuid, str) else None


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
    time=oracle.time,
    key=_key,
    environment=lambda folder: {"CLAUDE_CONFIG_DIR": str(folder)},
    place=f"projects/-home-somebody/{ID}.jsonl",
    session=ID,
)
