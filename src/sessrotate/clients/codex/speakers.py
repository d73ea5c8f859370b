"""Who says what in a message of a Codex session: the user, or the client in the user's name.

Rule: the client decides. 0.169 writes down where each part of a message comes from; of what older
ones wrote (0.20 on), it is told by its beginning, as they did themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessrotate.clients.codex.rows import inner, listed, text

if TYPE_CHECKING:
    from sessrotate.clients.codex.rows import Payload, Row

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

_PROVENANCE: Final = "internal_chat_message_metadata_passthrough"


def is_summary(item: Payload) -> bool:
    """Return whether a message is what a compaction left of the conversation."""
    if "compaction.summary" in listed(inner(item, _PROVENANCE), "content_item_kinds"):
        return True
    return text(item, "role") == "user" and _first(item).startswith(_SUMMARY)


def is_of_client(item: Payload) -> bool:
    """Return whether a message of the user is the client's: instructions, the environment."""
    origins = [
        text(inner(each, "provenance"), "type")
        for each in listed(inner(item, _PROVENANCE), "content_item_metadata")
        if isinstance(each, dict)
    ]
    if origins:
        return "user" not in origins
    return any(each.lstrip()[:40].lower().startswith(_OF_THE_CLIENT) for each in texts(item))


def texts(item: Payload) -> list[str]:
    """Return the texts of a message, whatever the client calls them."""
    content = item.get("content")
    if isinstance(content, str):
        return [content]
    blocks = (block for block in listed(item, "content") if isinstance(block, dict))
    return [said for block in blocks if (said := text(block, "text")) is not None]


def prompt(row: Row) -> str | None:
    """Return what the user asked in a row, None if it is no prompt of a user.

    A prompt stands twice in a file: as what is sent, and as an event, from which the client takes
    a session's preview (0.36 and later). Both are prompts.
    """
    payload = row.payload
    if row.type == "event_msg":
        return _as_typed(_in_event(payload))
    if row.type != "response_item" or text(payload, "type") != "message":
        return None
    if text(payload, "role") != "user" or is_of_client(payload) or is_summary(payload):
        return None
    return _as_typed("\n".join(texts(payload)))


def _in_event(payload: Payload) -> str:
    kind = text(payload, "type")
    if kind == "user_message":
        return text(payload, "message") or ""
    if kind == "item_completed" and text(inner(payload, "item"), "type") == "UserMessage":
        return "\n".join(texts(inner(payload, "item")))
    return ""


def _as_typed(said: str) -> str | None:
    _, mark, typed = said.partition(_MY_REQUEST)
    return (typed if mark else said).strip() or None


def _first(item: Payload) -> str:
    return next(iter(texts(item)), "")
