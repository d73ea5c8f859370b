"""Gemini CLI: sessions of one object, that 0.24.0 and 0.38.2 wrote."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from sessrotate.clients.gemini import json_client as gemini_json
from sessrotate.clients.gemini import json_reader
from support.conformance.specimen import FIXTURES, Specimen
from support.conformance.specimens.gemini import ID, environment
from support.gemini_sessions import message, metadata

if TYPE_CHECKING:
    pass


def _time(line: bytes) -> str | None:
    """Return the time on a line of an indented object."""
    try:
        row = json.loads(b"{" + line.strip().rstrip(b",") + b"}")
    except ValueError:
        return None
    times = (row.get(name) for name in ("timestamp", "lastUpdated", "startTime"))
    return next((time for time in times if isinstance(time, str) and time[:2] == "20"), None)


def _key(line: bytes) -> bytes | None:
    name = json.loads(line).get("id")
    return name.encode() if isinstance(name, str) else None


def _made(cuts: int) -> bytes:
    said = []
    for number in range(cuts + 1):
        said += [message(f"user-{number}"), message(f"gemini-{number}", "gemini", "an answer")]
    return json.dumps(metadata(messages=said), indent=2).encode()


SPECIMEN: Final = Specimen(
    client=gemini_json,
    reader=json_reader,
    files=tuple(sorted((FIXTURES / "gemini").rglob("session-*.json"))),
    made=_made,
    boundaries=lambda _data: [],
    time=_time,
    key=_key,
    environment=environment,
    place=f"project/chats/{ID}.json",
    session=ID,
    has_lines=False,
)
