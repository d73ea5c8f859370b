"""Which of a user's words are his own, and what he typed. Pure.

Rule: clients write much in the user's name; a prompt is only what a person asked. The tags are
those of Claude Code (2.0.28 to 2.1.330), which other clients do not write.

A turn begins with a command too (`/review`, `!ls`). A session is not called by one, nor by a text
that begins with any other element, since the client's own list does not: what gives it a title is
`claude.titles.prompt`, by rows. Over all else that real clients wrote both agree.
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
"""Beginnings of what the client says in the user's name, also where no `isMeta` says so."""

_INTERRUPTED: Final = "[Request interrupted by user"

_COMMAND: Final = re.compile(r"\s*<command-(name|args|message)>(.*?)</command-\1>\s*", re.DOTALL)
_COMMANDS: Final = ("<command-name>", "<command-message>")
_BASH: Final = re.compile(r"<bash-input>(.*?)</bash-input>\s*", re.DOTALL)


def is_of_client(view: View) -> bool:
    """Return whether the client says this of itself: notes, reminders, a command's output."""
    if view.is_boundary or view.is_summary:
        return False
    return (
        view.is_meta
        or view.kind == "system"
        or (view.kind == "user" and _first(view).startswith(_OF_THE_CLIENT))
    )


def is_prompt(view: View) -> bool:
    """Return whether a person asked this: with it a turn begins."""
    return (
        view.kind == "user"
        and not view.is_sidechain
        and not view.is_summary
        and any(isinstance(block, Text | Image) for block in view.blocks)
        and not is_of_client(view)
        and not _first(view).startswith(_INTERRUPTED)
    )


def as_typed(text: str) -> str:
    """Return a prompt as it was typed: the client wraps its commands (`/…`, `!…`) in tags.

    A text that says anything else too stays as it is, so that nothing of it is hidden.
    """
    if text.startswith(_COMMANDS) and not _COMMAND.sub("", text):
        found = dict(_COMMAND.findall(text))
        if "name" in found:
            return f"{found['name']} {found.get('args', '')}".strip()
    typed = _BASH.fullmatch(text)
    return text if typed is None else f"!{typed[1]}"


def _first(view: View) -> str:
    return next((block.text for block in view.blocks if isinstance(block, Text)), "")
