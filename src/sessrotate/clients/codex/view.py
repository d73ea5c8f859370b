"""What the rows of a Codex session say, as `clients.view` has it for all clients.

Rule: each thing once. Clients write most of it twice, for the model and as an event for the
screen; only the first is shown (0.20 to 0.169). Nothing that a row holds is an error: what has
another shape than clients write is shown as `Unknown`, not lost.

What the user typed is told apart from what the client says in the user's name. 0.169 notes where
each part of a message comes from. Messages of older clients (0.20 on) are told apart by how they
begin, as those clients did themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from sessrotate.clients.codex import rows
from sessrotate.clients.common import text
from sessrotate.clients.preview import Continues
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
from sessrotate.parsing.candidates import is_across

if TYPE_CHECKING:
    from sessrotate.parsing import Record


def view(record: Record) -> View | None:
    """Return what a record says, None if it is no JSON object or too long to be held."""
    row = rows.row_of(record)
    return None if row is None else _VIEWS[type(row)](row)


# ── items ────────────────────────────────────────────────────────────────────────────────────

_ROLES: Final[dict[str | None, Speaker]] = {"user": "user", "assistant": "assistant"}


def _item(row: rows.ResponseItem) -> View:
    item, time = row.payload, row.timestamp
    if isinstance(item, rows.Message):
        return _message(item, time)
    speaker: Speaker = "assistant"
    blocks: tuple[Block, ...] = ()
    match item:
        case rows.Reasoning():
            said = (*rows.texts(item.summary), *rows.texts(item.content))
            blocks = tuple(Thinking(each) for each in said if each) or (Thinking(""),)
        case rows.Call():
            blocks = (_call(item),)
        case rows.Output():
            speaker, blocks = "user", (_result(item),)
        case rows.GeneratedImage():
            blocks = (Image("image/png", item.result, ""),)
        case rows.RemoteCompaction():  # it is encrypted
            speaker, blocks = "system", (Thinking(""),)
        case _:
            speaker = "other"
    is_summary = isinstance(item, rows.RemoteCompaction)
    return View(speaker, item.kind, item.id, time=time, blocks=blocks, is_summary=is_summary)


def _message(message: rows.Message, time: str | None) -> View:
    role: Speaker = _ROLES.get(message.role, "system")
    sums_up = is_summary(message)
    of_client = role == "system" or (role == "user" and is_of_client(message))
    blocks = _content(message.content)
    if role == "user" and not of_client and not sums_up:
        blocks = tuple(part for block in blocks for part in _parts(block))
    return View(
        role,
        "message",
        message.id,
        time=time,
        blocks=blocks,
        is_meta=of_client and not sums_up,
        is_summary=sums_up,
    )


def _parts(block: Block) -> tuple[Block, ...]:
    return parts(block.text) if isinstance(block, Text) else (block,)


def _call(call: rows.Call) -> ToolCall:
    given = (call.arguments, call.input, call.action)
    arguments = next((each for each in given if each is not UNSET), None)
    if isinstance(arguments, str):  # as the API gives them
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    name = call.name or call.kind.removesuffix("_call")
    return ToolCall(call.call_id or call.id or "", name, arguments)


def _result(result: rows.Output) -> ToolResult:
    output = result.tools if result.output is UNSET else result.output
    blocks, is_error = _given(output)
    return ToolResult(result.call_id or result.id or "", blocks, is_error)


def _given(output: Any) -> tuple[tuple[Block, ...], bool]:
    """Return what a tool gave, and whether it says that it failed."""
    if isinstance(output, str) and output.startswith('{"output":'):
        found = rows.SHELL_OUTPUT(output.encode("utf-8", "surrogatepass"))
        if isinstance(found, rows.ShellOutput):
            return _content(found.output), found.metadata.exit_code != 0
    if isinstance(output, dict):
        blocks = _content(output.get("content", output.get("content_items")))
        return blocks or (Unknown("", output),), output.get("success") is False
    return _content(output), False


_DATA: Final = re.compile(r"data:([\w.+/-]{0,100})[^,]{0,100};base64,")


def _content(value: object) -> tuple[Block, ...]:
    """Return the blocks of a content, which is a text, a list of blocks, or nothing."""
    if isinstance(value, str):
        return (Text(value),) if value else ()
    return tuple(_block(each) for each in value) if isinstance(value, list) else ()


def _block(block: object) -> Block:
    match rows.BLOCKS.fitted(block) if isinstance(block, dict) else block:
        case str(text) | rows.PlainText(text) | rows.Refusal(text):
            return Text(text)
        case rows.InputImage(image_url=address):
            data = _DATA.match(address)
            if data is None:
                return Image("", "", address)
            return Image(data[1], address[data.end() :], "")
        case rows.EncryptedContent():
            return Thinking("")
        case {"type": str(kind)}:
            return Unknown(kind, block)
    return Unknown("", block)


# ── the client's own rows ────────────────────────────────────────────────────────────────────


def _meta(row: rows.SessionMeta) -> View:
    """Show where a fork comes from, and the base instructions."""
    meta = row.payload
    base = meta.base_instructions
    origin = _words(meta.origin) if meta.origin is not None else None
    told = (origin, meta.instructions, base.text if base is not None else None)
    blocks = tuple(Text(each) for each in told if each)
    return View("system", "session_meta", meta.id, time=row.timestamp, blocks=blocks, is_meta=True)


def _words(origin: Continues) -> str:
    if origin.at is None:
        return f"This session was forked from {origin.session}."
    return f"This session continues {origin.session} at ordinal {origin.at:,}."


def _compacted(row: rows.Compacted) -> View:
    """Show a compaction, and its summary unless an item of the history that it carries is that.

    With a history, the model's own message and an item say it (0.142 and later).
    """
    said, carries = row.payload.message, row.payload.carries
    return View(
        "system",
        "compacted",
        time=row.timestamp,
        blocks=(Text(said),) if said and not carries else (),
        is_boundary=True,
        is_summary=not carries,
    )


def worded(literals: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return what rows have whose views say more: the kind of an event, where a session began.

    A tool's arguments are JSON inside of JSON, where an escape may have an escaped backslash.
    """
    wanted = [*literals]
    told = {name: f"{_kind(name)}: " for name in _TOLD}
    events = [
        name for name, words in told.items() if any(is_across(each, words) for each in wanted)
    ]
    return (b"session_meta", b"\\u005c", b"\\u005C", *(name.encode() for name in events))


def _kind(event: str) -> str:
    return event.replace("_", " ")


def _event(row: rows.EventMsg) -> View:
    event, time = row.payload, row.timestamp
    if event.type == "token_count":
        return _usage(event.type, time, event.info or rows.UsageInfo())
    name = _TOLD.get(event.type)
    if name is None:
        return View("other", event.type, time=time)
    said = getattr(event, name)
    words = event.type if said is None else f"{_kind(event.type)}: {said}"
    return View("system", event.type, time=time, blocks=(Text(words),))


_TOLD: Final = {
    "error": "message",
    "warning": "message",
    "stream_error": "message",
    "turn_aborted": "reason",
    "thread_rolled_back": "num_turns",
}
"""Events that no item repeats, and the field that says most."""


def _usage(kind: str, time: str | None, info: rows.UsageInfo | rows.UsageRecord) -> View:
    """Show what an answer cost. 0.155 and later say so twice: the same message stands for both."""
    usage = info.last
    sent, received = max(0, usage.input_tokens), max(0, usage.output_tokens)
    if not sent and not received:
        return View("other", kind, time=time)
    cached, stored = max(0, usage.cached_input_tokens), max(0, usage.cache_write_input_tokens)
    tokens = Tokens(max(0, sent - cached - stored), cached, stored, received)
    message = f"total {max(0, info.total.total_tokens)}"
    return View("other", kind, time=time, tokens=tokens, message=message)


def _unknown(row: rows.UnknownRow) -> View:
    if row.item is None:
        return View("other", row.type, time=row.timestamp)
    blocks = (Unknown(row.type, row.item),)
    return View("system", row.type, text(row.item, "id"), time=row.timestamp, blocks=blocks)


_VIEWS: Final[dict[type, Callable[[Any], View]]] = {
    rows.SessionMeta: _meta,
    rows.ResponseItem: _item,
    rows.Compacted: _compacted,
    rows.TurnContext: lambda row: View(
        "other", "turn_context", time=row.timestamp, model=row.payload.model
    ),
    rows.EventMsg: _event,
    rows.TokenUsageRecord: lambda row: _usage("token_usage_record", row.timestamp, row.payload),
    rows.WorldState: lambda row: View("other", "world_state", time=row.timestamp),
    rows.UnknownRow: _unknown,
}


# ── what the user typed ───────────────────────────────────────────────────────────────────────────

_OF_THE_CLIENT: Final = (
    "# agents.md instructions",
    "<environment_context>",
    "<user_instructions>",
    "<skill>",
    "<skills_instructions>",
    "<plugins_instructions>",
    "<apps_instructions>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<subagents>",
    "<plugins>",
    "<hook_prompt",
)
"""Beginnings of what the client says in the user's name (0.20 to 0.169), in lower case."""

_SUMMARY: Final = "Another language model started to solve this problem and produced a summary"
"""What the summary of a local compaction begins with (0.36 to 0.169)."""

_MY_REQUEST: Final = "## My request for Codex:"
"""Behind which, in what an editor sends, stands what the user typed."""

_TAG: Final = re.compile(r"\s*(?:<image(?: name=[^>]*)?>|</image>)\s*")
"""What stands around a picture, each in a text of its own (0.142.5 names the picture)."""


def is_summary(message: rows.Message) -> bool:
    """Return whether a message is what a compaction left of the conversation."""
    if "compaction.summary" in message.passthrough.content_item_kinds:
        return True
    first = next(iter(rows.texts(message.content)), "")
    return message.role == "user" and first.startswith(_SUMMARY)


def is_of_client(message: rows.Message) -> bool:
    """Return whether a message of the user is the client's: instructions, the environment."""
    origins = [each.provenance for each in message.passthrough.content_item_metadata]
    if origins:
        return not any(each is not None and each.type == "user" for each in origins)
    said = (each.lstrip()[:40].lower() for each in rows.texts(message.content))
    return any(each.startswith(_OF_THE_CLIENT) for each in said)


def prompt(row: rows.Row) -> str | None:
    """Return what the user asked in a row, None if it is no prompt of a user.

    A prompt is in a file twice: as what is sent, and as an event, from which the client takes a
    session's preview (0.36 and later). Both are prompts.
    """
    match row:
        case rows.EventMsg(payload=rows.Event(type="user_message", message=str(said))):
            return _typed(said)
        case rows.EventMsg(
            payload=rows.Event(type="item_completed", item=rows.CompletedItem("UserMessage") as it)
        ):
            return _typed(*rows.texts(it.content))
        case rows.ResponseItem(payload=rows.Message(role="user") as sent):
            if not is_of_client(sent) and not is_summary(sent):
                return _typed(*rows.texts(sent.content))
    return None


def parts(said: str) -> tuple[Text, ...]:
    """Return a text of the user's as what was typed, and what the client or an editor put to it."""
    if _TAG.fullmatch(said):
        return (Text(said, is_note=True),)
    before, mark, typed = said.partition(_MY_REQUEST)
    if not typed.strip():
        return (Text(said),)
    return Text(before + mark, is_note=True), Text(typed.strip("\n"))


def _typed(*said: str) -> str | None:
    found = (part.text for each in said for part in parts(each) if not part.is_note)
    return "\n".join(found).strip() or None
