"""What the user of a Codex session typed, apart from what the client says in the user's name.

Rule: the client decides. 0.169 notes where each part of a message comes from. Messages of older
clients (0.20 on) are told apart by how they begin, as those clients did themselves.
"""

from __future__ import annotations

import re
from typing import Final

from sessrotate.clients.codex.items import Message, texts
from sessrotate.clients.codex.rows import CompletedItem, Event, EventMsg, ResponseItem, Row
from sessrotate.clients.view import Text

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


def is_summary(message: Message) -> bool:
    """Return whether a message is what a compaction left of the conversation."""
    if "compaction.summary" in message.passthrough.content_item_kinds:
        return True
    first = next(iter(texts(message.content)), "")
    return message.role == "user" and first.startswith(_SUMMARY)


def is_of_client(message: Message) -> bool:
    """Return whether a message of the user is the client's: instructions, the environment."""
    origins = [each.provenance for each in message.passthrough.content_item_metadata]
    if origins:
        return not any(each is not None and each.type == "user" for each in origins)
    said = (each.lstrip()[:40].lower() for each in texts(message.content))
    return any(each.startswith(_OF_THE_CLIENT) for each in said)


def prompt(row: Row) -> str | None:
    """Return what the user asked in a row, None if it is no prompt of a user.

    A prompt is in a file twice: as what is sent, and as an event, from which the client takes a
    session's preview (0.36 and later). Both are prompts.
    """
    match row:
        case EventMsg(payload=Event(type="user_message", message=str(said))):
            return _typed(said)
        case EventMsg(
            payload=Event(type="item_completed", item=CompletedItem("UserMessage") as it)
        ):
            return _typed(*texts(it.content))
        case ResponseItem(payload=Message(role="user") as sent):
            if not is_of_client(sent) and not is_summary(sent):
                return _typed(*texts(sent.content))
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
