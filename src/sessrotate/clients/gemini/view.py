"""What the rows of Gemini CLI's sessions say, as `view` has it for all clients.

Rule: nothing that a row holds is an error. What has another shape than clients write (0.24.0 to
0.61.0) is shown as `Unknown` or left out, and a line that is no row has no view. What the user
said, apart from commands and what the client says in the user's name, is told as
`convertSessionToClientHistory` and the list of sessions of 0.61.0 take it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from sessrotate.clients.common import text
from sessrotate.clients.gemini.rows import Row, Thought, is_update, row_of
from sessrotate.clients.gemini.rows import Tokens as Cost
from sessrotate.clients.view import (
    Block,
    Image,
    Speaker,
    Text,
    Thinking,
    Tokens,
    ToolCall,
    ToolResult,
    Unknown,
    View,
)
from sessrotate.parsing import Record

if TYPE_CHECKING:
    from sessrotate.clients.gemini.rows import Row

_KINDS: Final[dict[str, Speaker]] = {
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

    An update that replaces all messages is a boundary, and known as one by its beginning. The
    messages in it are records of their own (`messages.said`).
    """
    if not record.is_whole and is_update(record.line):
        return View(kind="system", type="checkpoint", is_boundary=True)
    row = row_of(record)
    if row is None:
        return None
    match row.kind:
        case "message":
            return _message(row)
        case "update" if row.update.messages is not None:
            time = row.update.last_updated
            return View(kind="system", type="checkpoint", time=time, is_boundary=True)
        case "update":
            return View(kind="other", type="update", time=row.update.last_updated)
    time = row.start_time or row.last_updated
    return View(kind="other", type=row.kind or row.type or "", time=time)


def _message(row: Row) -> View:
    kind = _KINDS.get(row.type or "", "other")
    blocks = tuple(_blocks(row))
    first = next((block.text for block in blocks if isinstance(block, Text)), "").lstrip()
    return View(
        kind=kind,
        type=row.type or "",
        uuid=row.id,
        time=row.timestamp,
        blocks=blocks,
        model=row.model,
        tokens=_tokens(row.tokens) if row.tokens is not None else None,
        message=row.id,
        is_meta=kind == "user" and first.startswith(OF_CLIENT),
        is_summary=kind == "user" and first.startswith(SNAPSHOT),
    )


def _blocks(row: Row) -> Iterator[Block]:
    """Yield what was thought, what was said, and the tools: each call with its result behind it.

    From 0.44 on a checkpoint writes thoughts and calls as parts of the content, beside the fields
    that 0.11 and later have for them; the parts are what a resume sends.
    """
    parts = [_part(each) for each in _listed(row.content)]
    if not any(isinstance(part, Thinking) for part in parts):
        yield from (_thought(each) for each in row.thoughts)
    calls = {call.id: call for call in row.tool_calls}
    yield from (p for p in parts if not (isinstance(p, ToolCall) and p.id in calls))
    for call in calls.values():
        yield ToolCall(call.id, call.name, call.args)
        failed = call.status in _FAILED
        if call.result or failed:
            yield ToolResult(call.id, _result(call.result), is_error=failed)


def _listed(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [content] if content else []


def _thought(thought: Thought) -> Thinking:
    subject = thought.subject and f"**{thought.subject}**"
    return Thinking("\n".join(each for each in (subject, thought.description) if each))


# ── parts of a content, as the API has them ──────────────────────────────────────────────────


def _part(part: Any) -> Block:
    match part:
        case str(said):
            return Text(said)
        case {"text": str(said)}:
            return Thinking(said) if part.get("thought") else Text(said)
        case {"functionCall": dict(call)}:
            return ToolCall(text(call, "id") or "", text(call, "name") or "", call.get("args"))
        case {"functionResponse": dict(response)}:
            given = response.get("response")
            error = isinstance(given, dict) and "error" in given
            call_id = text(response, "id") or ""
            return ToolResult(call_id, tuple(_given(response)), is_error=error)
        case {"inlineData": dict(data)} | {"fileData": dict(data)}:
            return Image(*(text(data, name) or "" for name in ("mimeType", "data", "fileUri")))
    return Unknown(next(iter(part), "") if isinstance(part, dict) else "", part)


def _result(result: Any) -> tuple[Block, ...]:
    """Return what a call's `result` shows: a text, or parts, of which responses are opened."""
    blocks: list[Block] = []
    for part in _listed(result):
        match part:
            case {"functionResponse": dict(response)}:
                blocks += _given(response)
            case _:
                blocks.append(_part(part))
    return tuple(blocks)


def _given(response: dict[str, Any]) -> Iterator[Block]:
    """Yield what a function's response says: `output` or `error`, and the parts beside it."""
    given, parts = response.get("response"), response.get("parts")
    if isinstance(given, dict) and len(given) == 1 and given.keys() <= {"output", "error"}:
        given = next(iter(given.values()))
    if isinstance(given, str):
        yield Text(given)
    elif given:
        yield Unknown("response", given)
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict) and "functionResponse" not in part:
            yield _part(part)


def _tokens(cost: Cost) -> Tokens:
    """Return what an answer cost; what was thought counts with what was received."""
    sent, cached, output, thoughts = (
        max(0, each) for each in (cost.input, cost.cached, cost.output, cost.thoughts)
    )
    return Tokens(max(0, sent - cached), cached, 0, output + thoughts)


# ── what the user said ────────────────────────────────────────────────────────────────────────────

OF_CLIENT: Final = ("<session_context>", "<hook_context>")

SNAPSHOT: Final = "<state_snapshot>"
"""How the summary begins that a compression leaves of the conversation."""

_NOT_SAID: Final = ("/", "?", *OF_CLIENT)

_PLACEHOLDERS: Final = (
    "videoMetadata",
    "thought",
    "codeExecutionResult",
    "executableCode",
    "fileData",
    "functionCall",
    "functionResponse",
    "inlineData",
)
"""Parts that a client has words for, so that they are never nothing."""


def prompt(row: Row) -> str | None:
    """Return what a user said with a message, in the words that a list shows; None if nothing."""
    if row.type != "user" or _is_ignored(row.content):
        return None
    match row.content:
        case str(said):
            return said
        case list(parts):
            return "".join(text(part, "text") or "" for part in parts)
    return None


def is_something(row: Row) -> bool:
    """Tell whether a message makes a session worth listing: somebody asked or answered."""
    if row.type == "user":
        return not _is_ignored(row.content)
    is_answer = row.tool_calls or row.thoughts or _in_words(row.content).strip()
    return row.type == "gemini" and bool(is_answer)


def is_sent(row: Row) -> bool:
    """Tell whether a resume sends this message to the model."""
    if row.type == "user":
        return not _is_ignored(row.content)
    return row.type == "gemini" and bool(row.content or row.thoughts or row.tool_calls)


def _is_ignored(content: Any) -> bool:
    words = _in_words(content).strip()
    return not words or words.startswith(_NOT_SAID)


def _in_words(content: Any) -> str:
    """Return a content as the client has it in words: a text, a part, or a list of such."""
    left, words = [content], []
    while left:
        part = left.pop()
        if isinstance(part, str):
            words.append(part)
        elif isinstance(part, list):
            left += reversed(part)
        elif isinstance(part, dict):
            held = next((name for name in _PLACEHOLDERS if name in part), None)
            words.append(f"[{held}]" if held else text(part, "text") or "")
    return "".join(words)
