"""What a user of Gemini CLI said, apart from commands and what the client says in the user's name.

Rule: as `convertSessionToClientHistory` and the list of sessions of 0.61.0 take it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sessrotate.clients.common import text

if TYPE_CHECKING:
    from sessrotate.clients.gemini.rows import Row

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
