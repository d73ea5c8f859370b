"""Which records are prompts that a person typed, and how they were typed. Pure.

Rule: clients write many records in the user's name; only what a person asked is a prompt. The tags
are those of Claude Code (2.0.28 to 2.1.330); other clients do not write them.

A command (`/review`, `!ls`) begins a turn too, but it does not give a session its title; `/compact`
begins none, because it asks nothing. A text that begins with any other element gives a title only
where there is no other: the client's own list shows none of them. Titles come from `claude.titles`,
and a test holds its `prompt` and this together over all that real clients wrote.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sessrotate.clients.view import Image, Text

if TYPE_CHECKING:
    from sessrotate.clients.view import View

_OF_THE_CLIENT: Final = (
    "<local-command-caveat>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "<system-reminder>",
)
"""How records begin that the client writes in the user's name, some of them without `isMeta`."""

_INTERRUPTED: Final = "[Request interrupted by user"

_COMMAND: Final = re.compile(r"\s*<command-(name|args|message)>(.*?)</command-\1>\s*", re.DOTALL)
_COMMANDS: Final = ("<command-name>", "<command-message>")
_COMPACT: Final = "<command-name>/compact</command-name>"
_BASH: Final = re.compile(r"<bash-input>(.*?)</bash-input>\s*", re.DOTALL)


def is_of_client(view: View) -> bool:
    """Return whether the client wrote this itself: a note, a reminder, a command's output."""
    if view.is_boundary or view.is_summary:
        return False
    return (
        view.is_meta
        or view.kind == "system"
        or (view.kind == "user" and _first(view).startswith(_OF_THE_CLIENT))
    )


def is_prompt(view: View) -> bool:
    """Return whether a person asked this, so that a turn begins here."""
    return (
        view.kind == "user"
        and not view.is_sidechain
        and not view.is_summary
        and any(isinstance(block, Text | Image) for block in view.blocks)
        and not is_of_client(view)
        and not _first(view).startswith(_INTERRUPTED)
        and not _asks_to_compact(view)
    )


def is_typed(view: View) -> bool:
    """Return whether a person typed this: a prompt, or a command that begins no turn."""
    return is_prompt(view) or (view.kind == "user" and _asks_to_compact(view))


def _asks_to_compact(view: View) -> bool:
    text = _first(view)
    return text.startswith(_COMMANDS) and _COMPACT in text and as_typed(text) != text


def as_typed(text: str) -> str:
    """Return a prompt as it was typed, without the tags that the client puts around commands.

    A text with anything else beside the tags comes back unchanged, so that nothing is hidden.
    """
    if text.startswith(_COMMANDS) and not _COMMAND.sub("", text):
        found = dict(_COMMAND.findall(text))
        if "name" in found:
            return f"{found['name']} {found.get('args', '')}".strip()
    typed = _BASH.fullmatch(text)
    return text if typed is None else f"!{typed[1]}"


def _first(view: View) -> str:
    return next((block.text for block in view.blocks if isinstance(block, Text)), "")
