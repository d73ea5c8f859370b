"""What the rows of a Codex session say, as `view` has it for all clients.

Rule: each thing once. Clients write most of it twice, as what is sent to the model and as an
event for the screen; only the first is shown (0.20 to 0.169). Nothing a row holds is an error.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sessrotate.clients.codex import speakers
from sessrotate.clients.codex.items import content, given
from sessrotate.clients.codex.lineage import origin, words
from sessrotate.clients.codex.rows import inner, listed, row_of, text
from sessrotate.clients.view import (
    Image,
    Text,
    Thinking,
    Tokens,
    ToolCall,
    ToolResult,
    Unknown,
    View,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessrotate.clients.codex.rows import Payload, Row
    from sessrotate.clients.view import Block, Kind
    from sessrotate.parsing.records import Record


def view(record: Record) -> View | None:
    """Return what a record says, None if it is no JSON object or too long to be held."""
    row = row_of(record)
    if row is None:
        return None
    return _ROWS.get(row.type, _other)(row)


def _other(row: Row) -> View:
    return View("other", row.type, time=row.time)


# ── what is sent to the model ────────────────────────────────────────────────────────────────


def _item(row: Row) -> View:
    kind = text(row.payload, "type") or ""
    return _ITEMS.get(kind, _unknown)(row, kind)


def _message(row: Row, kind: str) -> View:
    item = row.payload
    role: Kind = _ROLES.get(text(item, "role") or "", "system")
    is_summary = speakers.is_summary(item)
    of_client = role == "system" or (role == "user" and speakers.is_of_client(item))
    return View(
        role,
        kind,
        uuid=text(item, "id"),
        time=row.time,
        blocks=content(item.get("content")),
        is_meta=of_client and not is_summary,
        is_summary=is_summary,
    )


_ROLES: Final[dict[str, Kind]] = {"user": "user", "assistant": "assistant"}


def _reasoning(row: Row, kind: str) -> View:
    parts = [*listed(row.payload, "summary"), *listed(row.payload, "content")]
    said = [text(part, "text") for part in parts if isinstance(part, dict)]
    blocks = tuple(Thinking(each) for each in said if each)
    return _by_model(row, kind, *(blocks or (Thinking(""),)))


def _call(row: Row, kind: str) -> View:
    item = row.payload
    name = text(item, "name") or kind.removesuffix("_call")
    arguments = item.get("arguments", item.get("input", item.get("action")))
    return _by_model(row, kind, ToolCall(_id(item), name, _parsed(arguments)))


def _result(row: Row, kind: str) -> View:
    item = row.payload
    output = item.get("output", item.get("tools"))
    blocks, is_error = given(output)
    result = ToolResult(_id(item), blocks, is_error)
    return View("user", kind, uuid=text(item, "id"), time=row.time, blocks=(result,))


def _picture(row: Row, kind: str) -> View:
    return _by_model(row, kind, Image("image/png", text(row.payload, "result") or "", ""))


def _left(row: Row, kind: str) -> View:
    """Show what a remote compaction left: it is encrypted."""
    blocks = (Thinking(""),)
    return View("system", kind, _uuid(row), time=row.time, blocks=blocks, is_summary=True)


def _unknown(row: Row, kind: str) -> View:
    return View("system", kind, _uuid(row), time=row.time, blocks=(Unknown(kind, row.payload),))


def _nothing(row: Row, kind: str) -> View:
    return View("other", kind, _uuid(row), time=row.time)


def _by_model(row: Row, kind: str, *blocks: Block) -> View:
    return View("assistant", kind, _uuid(row), time=row.time, blocks=blocks)


def _uuid(row: Row) -> str | None:
    return text(row.payload, "id")


def _id(item: Payload) -> str:
    return text(item, "call_id") or text(item, "id") or ""


def _parsed(arguments: Any) -> Any:
    """Return arguments, which the API gives as a text, as the JSON that they are."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


_ITEMS: Final[dict[str, Callable[[Row, str], View]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _call,
    "custom_tool_call": _call,
    "local_shell_call": _call,
    "web_search_call": _call,
    "tool_search_call": _call,
    "function_call_output": _result,
    "custom_tool_call_output": _result,
    "local_shell_call_output": _result,
    "tool_search_output": _result,
    "image_generation_call": _picture,
    "compaction": _left,
    "compaction_summary": _left,
    "context_compaction": _left,
    "ghost_snapshot": _nothing,
    "other": _nothing,
}
"""Types of response items, of the Responses API and the client's own."""


# ── the client's own rows ────────────────────────────────────────────────────────────────────


def _meta(row: Row) -> View:
    """Show where a fork comes from, and the base instructions."""
    where = origin(row)
    told = (
        words(where) if where is not None else None,
        text(row.payload, "instructions"),
        text(inner(row.payload, "base_instructions"), "text"),
    )
    blocks = tuple(Text(each) for each in told if each)
    return View("system", row.type, _uuid(row), time=row.time, blocks=blocks, is_meta=True)


def _compacted(row: Row) -> View:
    """Show a compaction; its summary, if it is not among the items of the history that it carries.

    With these, the model's own message and an item say it (0.142 and later).
    """
    said = text(row.payload, "message")
    carries = "replacement_history" in row.payload
    return View(
        "system",
        row.type,
        time=row.time,
        blocks=(Text(said),) if said and not carries else (),
        is_boundary=True,
        is_summary=not carries,
    )


def _turn(row: Row) -> View:
    return View("other", row.type, time=row.time, model=text(row.payload, "model"))


def _event(row: Row) -> View:
    kind = text(row.payload, "type") or ""
    if kind == "token_count":
        total = inner(row.payload, "info", "total_token_usage")
        return _usage(row, kind, inner(row.payload, "info", "last_token_usage"), total)
    name = _TOLD.get(kind)
    if name is None:
        return View("other", kind, time=row.time)
    said = row.payload.get(name)
    words_ = f"{kind.replace('_', ' ')}: {said}" if isinstance(said, str | int) else kind
    return View("system", kind, time=row.time, blocks=(Text(words_),))


_TOLD: Final = {
    "error": "message",
    "warning": "message",
    "stream_error": "message",
    "turn_aborted": "reason",
    "thread_rolled_back": "num_turns",
}
"""Events that nothing else tells, and the field that says most."""


def _record(row: Row) -> View:
    usage, total = inner(row.payload, "usage"), inner(row.payload, "thread_token_usage")
    return _usage(row, row.type, usage, total)


def _usage(row: Row, kind: str, usage: Payload, total: Payload) -> View:
    """Show what an answer cost. 0.155 and later say so twice: the same message stands for both."""
    sent, cached, stored, received = (_count(usage.get(name)) for name in _COUNTS)
    tokens = Tokens(max(0, sent - cached - stored), cached, stored, received)
    if not sent and not received:
        return View("other", kind, time=row.time)
    message = f"total {_count(total.get('total_tokens'))}"
    return View("other", kind, time=row.time, tokens=tokens, message=message)


_COUNTS: Final = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
)
"""`input_tokens` has those in it that came from the cache, unlike other clients' counts."""


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


_ROWS: Final[dict[str, Callable[[Row], View]]] = {
    "session_meta": _meta,
    "response_item": _item,
    "compacted": _compacted,
    "turn_context": _turn,
    "event_msg": _event,
    "token_usage_record": _record,
}
"""Types of rows. `world_state`, `retained_context` and what else there is belongs to no talk."""
