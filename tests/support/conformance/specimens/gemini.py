"""Gemini CLI: sessions of lines, that 0.39.1 to 0.61.0 wrote."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sessrotate.clients.gemini import client as gemini
from sessrotate.clients.gemini import reader
from support import oracle
from support.conformance.specimen import FIXTURES, Specimen
from support.gemini_sessions import UUID, context, file, message, metadata, update

if TYPE_CHECKING:
    from pathlib import Path

ID: Final = f"session-2026-11-21T23-37-{UUID[:8]}"


def _row(line: bytes) -> dict[str, Any]:
    def reject(name: str) -> None:
        raise ValueError(name)

    try:
        row = json.loads(line.decode("utf-8", "replace"), parse_constant=reject)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def _is_boundary(line: bytes) -> bool:
    if b'"messages"' not in line:
        return False
    # What stands between the two ends of such a line is not looked at, and may be torn.
    head, tail = b'{"$set":{"messages":[{"id":"', b'],"lastUpdated":"'
    is_ended = line[-44:-27] == tail and line.endswith(b'Z"}}')
    if line.startswith(head) and is_ended and line[-45:-44] in b"}[":
        return True
    row = _row(line)
    changed = row.get("$set")
    is_other = isinstance(row.get("$rewindTo"), str) or isinstance(row.get("id"), str)
    return not is_other and isinstance(changed, dict) and isinstance(changed.get("messages"), list)


def _time(line: bytes) -> str | None:
    row = _row(line)
    changed = row.get("$set")
    times = [row.get("timestamp"), row.get("startTime")]
    times[1:1] = [changed.get("lastUpdated")] if isinstance(changed, dict) else []
    return next((t for t in times if isinstance(t, str) and t[:2] == "20"), None)


def _key(line: bytes) -> bytes | None:
    row = _row(line)
    name = row.get("id")
    is_message = isinstance(name, str) and not isinstance(row.get("$rewindTo"), str)
    return str(name).encode() if is_message else None


def _made(cuts: int) -> bytes:
    """Return a session with so many updates of all messages."""
    rows: list[Any] = [metadata()]
    said: list[Any] = []
    for number in range(cuts + 1):
        if number:
            rows.append(update(context(), *said))
        said += [message(f"user-{number}"), message(f"gemini-{number}", "gemini", "an answer")]
        rows += [said[-2], {"$set": {"sessionId": UUID}}, said[-1]]
    return file(*rows)


def environment(folder: Path) -> dict[str, str]:
    return {"GEMINI_SESSIONS_DIR": str(folder)}


SPECIMEN: Final = Specimen(
    client=gemini,
    reader=reader,
    files=tuple(
        path
        for path in sorted((FIXTURES / "gemini").rglob("*.jsonl"))
        if b'"type":"gemini"' in path.read_bytes()  # one in which nobody spoke says nothing
    ),
    made=_made,
    # A file that begins with one has no segment before it.
    boundaries=lambda data: [at for at in oracle.offsets(data, _is_boundary) if at],
    time=_time,
    key=_key,
    environment=environment,
    place=f"project/chats/{ID}.jsonl",
    session=ID,
    repeats=True,
)
