"""What a report must say, found the slow and obvious way: the whole session in memory, parsed.

It shares nothing with the code under test: rows are dicts, and what they are is looked up in them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from support import oracle


@dataclass
class Counted:
    """Bytes with newlines, and lines, by name."""

    lines: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    tool_lines: Counter[str] = field(default_factory=Counter)
    tool_bytes: Counter[str] = field(default_factory=Counter)
    days: Counter[str] = field(default_factory=Counter)
    copies: int = 0
    copied: int = 0
    sizes: list[tuple[int, int]] = field(default_factory=list)
    """Of all lines: bytes, and where in the history they begin."""


def counted(data: bytes) -> Counted:
    found = Counted()
    called: dict[str, str] = {}
    seen: set[tuple[str, object]] = set()
    day, early, at = None, 0, 0
    for line in data.splitlines(keepends=True):
        row = oracle.row(line)
        kind, result = _kind(row), None
        for block in _blocks(row):
            if block.get("type") == "tool_use":
                called[block["id"]] = block["name"]
            if block.get("type") == "tool_result" and result is None:
                result = block["tool_use_id"]
        found.lines[kind] += 1
        found.bytes[kind] += len(line)
        if kind == "tool results":
            tool = called.get(result or "", "unknown tool")
            found.tool_lines[tool] += 1
            found.tool_bytes[tool] += len(line)
        key = ("row", row["uuid"]) if isinstance(row.get("uuid"), str) else ("line", line.rstrip())
        if key in seen:
            found.copies += 1
            found.copied += len(line)
        seen.add(key)
        day = row["timestamp"][:10] if "timestamp" in row else day
        if day is None:
            early += len(line)
        else:
            found.days[day] += len(line) + early
            early = 0
        found.sizes.append((len(line), at))
        at += len(line)
    return found


def _blocks(row: dict[str, Any]) -> list[dict[str, Any]]:
    return _content(row["message"]) if isinstance(row.get("message"), dict) else []


def _content(holder: dict[str, Any]) -> list[dict[str, Any]]:
    content = holder.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


_OTHERS = {
    "compact_boundary": "compactions",
    "system": "metadata",
    "attachment": "attachments",
    "progress": "progress",
    "file-history-snapshot": "file-history",
    "file-history-delta": "file-history",
}


def _kind(row: dict[str, Any]) -> str:
    if row.get("type") not in {"user", "assistant"}:
        told = (_OTHERS[each] for each in (row.get("subtype"), row.get("type")) if each in _OTHERS)
        return next(told, "metadata" if "type" in row else "unknown")
    weights: Counter[str] = Counter()
    order: list[str] = []

    def weigh(kind: str, value: object) -> None:
        order.append(kind)
        weights[kind] += _letters(value)

    for block in _blocks(row):
        match block["type"]:
            case "text":
                weigh(f"{row['type']} text", block["text"])
            case "thinking" | "redacted_thinking":
                weigh("thinking", block.get("thinking", ""))
            case "tool_use":
                weigh("tool calls", block["input"])
            case "image":
                weigh("images", block["source"].get("data", ""))
            case "tool_result":
                weigh("tool results", "")
                for inner in _content(block):
                    is_seen = inner["type"] == "image"
                    text = inner["source"]["data"] if is_seen else inner.get("text", "")
                    weigh("images" if is_seen else "tool results", text)
            case _:
                weigh("unknown", block)
    most = max(weights.values(), default=0)
    return next((kind for kind in order if weights[kind] == most), f"{row['type']} text")


def _letters(value: object) -> int:
    if isinstance(value, dict):
        return sum(_letters(each) for each in value.values())
    if isinstance(value, list):
        return sum(_letters(each) for each in value)
    return len(value) if isinstance(value, str) else 0
