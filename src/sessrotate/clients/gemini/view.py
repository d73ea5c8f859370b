"""What the rows of Gemini CLI's sessions say, as `view` has it for all clients.

Rule: nothing a row holds is an error. What has another shape than clients write (0.24.0 to
0.61.0) is shown as `Unknown` or left out, and a line that is no row has no view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sessrotate.clients.gemini.rows import (
    OF_CLIENT,
    SNAPSHOT,
    is_update,
    kind_of,
    row_of,
    rows,
    text,
)
from sessrotate.clients.view import (
    Block,
    Image,
    Kind,
    Text,
    Thinking,
    Tokens,
    ToolCall,
    ToolResult,
    Unknown,
    View,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.clients.gemini.rows import Row
    from sessrotate.parsing.records import Record

_KINDS: Final[dict[str, Kind]] = {
    "user": "user",
    "gemini": "assistant",
    "info": "system",
    "error": "system",
    "warning": "system",
}

_FAILED: Final = frozenset({"error", "cancelled"})
"""States of a tool call that gave nothing of use."""


def view(record: Record) -> View | None:
    """Return what a record says, None if it is no JSON object or too long to be held.

    An update that replaces all messages is a boundary, and known as one by its beginning: what it
    holds are messages of their own, which `gemini_reader` gives as records of their own.
    """
    if not record.is_whole and is_update(record.line):
        return View(kind="system", type="checkpoint", is_boundary=True)
    row = row_of(record)
    if row is None:
        return None
    what = kind_of(row)
    if what == "message":
        return _message(row)
    if what == "update":
        changed = row["$set"]
        changed = changed if isinstance(changed, dict) else {}
        is_boundary = isinstance(changed.get("messages"), list)
        return View(
            kind="system" if is_boundary else "other",
            type="checkpoint" if is_boundary else "update",
            time=text(changed, "lastUpdated"),
            is_boundary=is_boundary,
        )
    times = text(row, "startTime") or text(row, "lastUpdated")
    return View(kind="other", type=what or text(row, "type") or "", time=times)


def _message(row: Row) -> View:
    kind = _KINDS.get(text(row, "type") or "", "other")
    blocks = tuple(_blocks(row))
    first = next((block.text for block in blocks if isinstance(block, Text)), "").lstrip()
    return View(
        kind=kind,
        type=text(row, "type") or "",
        uuid=text(row, "id"),
        time=text(row, "timestamp"),
        blocks=blocks,
        model=text(row, "model"),
        tokens=_tokens(row.get("tokens")),
        message=text(row, "id"),
        is_meta=kind == "user" and first.startswith(OF_CLIENT),
        is_summary=kind == "user" and first.startswith(SNAPSHOT),
    )


def _blocks(row: Row) -> Iterator[Block]:
    """Yield what was thought, what was said, and the tools: each call with its result behind it.

    From 0.44 on a checkpoint writes thoughts and calls as parts of the content, beside the fields
    that 0.11 and later have for them; the parts are what a resume sends.
    """
    parts = [_part(each) for each in _listed(row.get("content"))]
    if not any(isinstance(part, Thinking) for part in parts):
        yield from (_thought(each) for each in rows(row.get("thoughts")))
    calls = {text(call, "id") or "": call for call in rows(row.get("toolCalls"))}
    yield from (p for p in parts if not (isinstance(p, ToolCall) and p.id in calls))
    for identity, call in calls.items():
        yield ToolCall(identity, text(call, "name") or "", call.get("args"))
        result = call.get("result")
        failed = text(call, "status") in _FAILED
        if result or failed:
            yield ToolResult(identity, _result(result), is_error=failed)


def _listed(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [content] if content else []


def _thought(thought: Row) -> Thinking:
    subject, more = text(thought, "subject"), text(thought, "description")
    return Thinking("\n".join(each for each in (subject and f"**{subject}**", more) if each))


# ── parts of a content, as the API has them ──────────────────────────────────────────────────


def _part(part: Any) -> Block:
    if isinstance(part, str):
        return Text(part)
    if not isinstance(part, dict):
        return Unknown("", part)
    if isinstance(part.get("text"), str):
        return Thinking(part["text"]) if part.get("thought") else Text(part["text"])
    name = next((name for name in part if name in _PARTS and isinstance(part[name], dict)), None)
    return Unknown(next(iter(part), ""), part) if name is None else _PARTS[name](part[name])


def _call(call: Row) -> Block:
    return ToolCall(text(call, "id") or "", text(call, "name") or "", call.get("args"))


def _response(response: Row) -> Block:
    given = response.get("response")
    error = isinstance(given, dict) and "error" in given
    return ToolResult(text(response, "id") or "", tuple(_given(response)), is_error=error)


def _image(data: Row) -> Block:
    address = text(data, "fileUri") or ""
    return Image(text(data, "mimeType") or "", text(data, "data") or "", address)


_PARTS: Final[dict[str, Callable[[Row], Block]]] = {
    "functionCall": _call,
    "functionResponse": _response,
    "inlineData": _image,
    "fileData": _image,
}


def _result(result: Any) -> tuple[Block, ...]:
    """Return what a call's `result` shows: a text, or parts, of which responses are opened."""
    blocks: list[Block] = []
    for part in _listed(result):
        response = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(response, dict):
            blocks += _given(response)
        else:
            blocks.append(_part(part))
    return tuple(blocks)


def _given(response: Row) -> Iterator[Block]:
    """Yield what a function's response says: `output` or `error`, and the parts beside it."""
    given = response.get("response")
    if isinstance(given, dict) and len(given) == 1 and given.keys() <= {"output", "error"}:
        given = next(iter(given.values()))
    if isinstance(given, str):
        yield Text(given)
    elif given:
        yield Unknown("response", given)
    yield from (
        _part(each) for each in rows(response.get("parts")) if "functionResponse" not in each
    )


def _tokens(tokens: Any) -> Tokens | None:
    """Return what an answer cost; what was thought counts with what was received.

    `input` has what was read from the cache in it, unlike other clients' counts.
    """
    if not isinstance(tokens, dict):
        return None
    sent, cached = _count(tokens.get("input")), _count(tokens.get("cached"))
    received = _count(tokens.get("output")) + _count(tokens.get("thoughts"))
    return Tokens(max(0, sent - cached), cached, 0, received)


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0
