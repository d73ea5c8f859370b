"""A text in the user's name → what the user typed, and what the client or an editor put beside it.

Rule: all of the text is in the parts, but for blanks between them and the tags around what was
typed. A note is only an element that clients and editors write (2.0.28 to 2.1.332): in front of
what was typed, or a reminder anywhere. Time grows with the text alone, whatever stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sessrotate.clients.view import Text

if TYPE_CHECKING:
    from sessrotate.clients.claude.rows import Shown

_OF_THE_CLIENT: Final = (
    "<local-command-caveat>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "<tick>",
    "Caveat: The messages",
)
"""How texts begin that are the client's as a whole, some of them in rows without `isMeta`."""

_BESIDE: Final = re.compile(r"\s*<(ide_[a-z_]+|system-reminder|user-prompt-submit-hook)>")
"""Elements that editors, the client and its hooks put in front of what was typed."""

_REMINDER: Final = ("<system-reminder>", "</system-reminder>")

_COMMAND: Final = re.compile(r"\s*<(command-(?:name|args|message))>")
_COMMANDS: Final = ("<command-name>", "<command-message>", "<bash-input>")
_WRAPPED: Final = re.compile(r"<(bash-input|user-memory-input|teammate-message)(?: [^>]*)?>")
"""What was typed behind `!` or `#`, and what a team's lead asks of a teammate (2.1.310)."""


def parts(said: str) -> tuple[Text, ...]:
    """Return the parts of a text in their order: of an empty one, none."""
    text = said.lstrip()
    if not text.startswith(("<", "Caveat: ")) and _REMINDER[0] not in said:
        return (Text(said),) if said else ()
    if text.startswith(_OF_THE_CLIENT):
        return (Text(said, is_note=True),)
    found = tuple(_parts(said))
    if all(part.is_note for part in found):
        return (Text(said, is_note=True),)
    return found if len(found) > 1 else (Text(_as_typed(said)),)


def _parts(said: str) -> Iterator[Text]:
    """Yield what was typed, and between that the elements of others; blanks are no part."""
    begin = 0
    while (found := _BESIDE.match(said, begin)) is not None:
        closing = f"</{found[1]}>"
        end = said.find(closing, found.end())
        end = len(said) if end < 0 else end + len(closing)
        yield Text(said[begin:end].strip(), is_note=True)
        begin = end
    opens, closes = _REMINDER
    while begin < len(said):
        start = said.find(opens, begin)
        end = said.find(closes, start) + len(closes) if start >= 0 else 0
        typed = said[begin : start if end >= len(closes) else len(said)].strip()
        if typed:
            yield Text(_as_typed(typed))
        if end < len(closes):
            return
        yield Text(said[start:end], is_note=True)
        begin = end


_ANSWERED: Final = re.compile(
    r"(?:User has answered your questions|Your questions have been answered|The user answered): "
)
_ANSWERS_END: Final = re.compile(r" (?:You can now continue with|Read the answers carefully)")
_REFUSED: Final = "The user doesn't want to proceed with this tool use."
_REASON: Final = "the user said:\n"
_REASON_ENDS: Final = "\n\nNote: The user's next message may contain"


def typed_at_a_tool(given: str) -> str:
    """Return what the user typed, by what a tool gave: answers, or why they refused; "" if nothing.

    The words around it are those of 2.1.310 and 2.1.332.
    """
    if (answered := _ANSWERED.match(given)) is not None:
        ends = [*_ANSWERS_END.finditer(given, answered.end())]
        return given[answered.end() : ends[-1].start() if ends else len(given)].strip()
    if not given.startswith(_REFUSED):
        return ""
    return given.partition(_REASON)[2].partition(_REASON_ENDS)[0].strip()


def is_command(row: Shown) -> bool:
    """Return whether a row has a command: one of the client's, or `!` and one of the shell's."""
    return any(each.lstrip().startswith(_COMMANDS) for each in texts(row))


def texts(row: Shown) -> list[str]:
    """Return the texts of a row's message, as they are."""
    content = row.said.content
    if isinstance(content, str):
        return [content]
    found = (block.get("text") for block in row.blocks("text"))
    return [each for each in found if isinstance(each, str)]


def _as_typed(text: str) -> str:
    """Return what was typed, without the tags that the client puts around commands.

    A text with anything else beside the tags comes back unchanged, so that nothing is hidden.
    """
    if text.startswith(_COMMANDS[:2]):
        found, at = dict[str, str](), 0
        while (tag := _COMMAND.match(text, at)) is not None:
            end = text.find(f"</{tag[1]}>", tag.end())
            if end < 0:
                return text
            found[tag[1]] = text[tag.end() : end]
            at = end + len(tag[1]) + 3
        if "command-name" in found and not text[at:].strip():
            return f"{found['command-name']} {found.get('command-args', '')}".strip()
    tag = _WRAPPED.match(text)
    if tag is None or not text.rstrip().endswith(closing := f"</{tag[1]}>"):
        return text
    inner = text.rstrip()[tag.end() : -len(closing)]
    return f"!{inner}" if tag[1] == "bash-input" else inner.strip("\n")
