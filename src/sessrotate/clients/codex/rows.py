"""A line of a Codex session → what it is: its type, its payload, its time.

Rule: the three shapes of lines become one here, and nowhere else is known that there are three:
envelopes (0.36 and later), bare rows (0.20 to 0.29), and bare items of a compaction's history.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sessrotate.parsing.records import Record

    Payload = dict[str, Any]

_LONG: Final = re.compile(
    rb'\{(?:"timestamp":"([^"\\]{0,64})",)?(?:"ordinal":[0-9]{1,15},)?'
    rb'"type":"compacted","payload":\{"message":("[^"\\]*+(?:\\.[^"\\]*+)*+")'
    rb'(,"replacement_history":)?'
)
"""The beginning of a compacted record that is too long to be held."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line. `type` is the client's word for what `payload` is; bare rows get one too."""

    type: str
    payload: Payload
    time: str | None = None


def row_of(record: Record) -> Row | None:
    """Return what a line is, None if it is no JSON object, or too long to be held.

    Of a compacted record that is too long, there is its message, and a history without items.
    """
    if record.line[:1] not in {b"{", b" ", b"\t"}:
        return None
    if not record.is_whole:
        return _long(record)
    try:
        found = json.loads(record.line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return _row(found) if isinstance(found, dict) else None


def _row(found: Payload) -> Row:
    kind, payload, time = text(found, "type"), found.get("payload"), text(found, "timestamp")
    if kind is not None and isinstance(payload, dict):
        return Row(kind, payload, time)
    if "record_type" in found:
        return Row(text(found, "record_type") or "", found, time)
    if kind is not None and "payload" not in found:
        return Row("response_item", found, time)
    if text(found, "id") is not None and "instructions" in found:
        return Row("session_meta", found, time)
    return Row("", found, time)


def _long(record: Record) -> Row | None:
    found = _LONG.match(record.line)
    if found is None or not record.is_ended:
        return None
    try:
        payload: Payload = {"message": json.loads(found[2].decode("utf-8", "replace"))}
    except ValueError:
        return None
    if found[3] is not None:
        payload["replacement_history"] = []
    return Row("compacted", payload, (found[1] or b"").decode("utf-8", "replace") or None)


def text(payload: Payload, name: str) -> str | None:
    """Return a value that is a text."""
    value = payload.get(name)
    return value if isinstance(value, str) else None


def inner(payload: Payload, *names: str) -> Payload:
    """Return an object inside an object, an empty one where there is none."""
    for name in names:
        found = payload.get(name)
        payload = found if isinstance(found, dict) else {}
    return payload


def listed(payload: Payload, name: str) -> list[Any]:
    """Return a value that is a list, an empty one where there is none."""
    value = payload.get(name)
    return value if isinstance(value, list) else []


def is_bare(record: Record) -> bool:
    """Tell whether a line is a row of 0.20 to 0.29, which has no envelope."""
    return record.line.startswith((b'{"type":', b'{"record_type":'))
