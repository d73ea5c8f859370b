"""What the rows of a Claude Code session say, in the form of `clients.view`.

Rule: nothing in a row is an error. A value of another shape than clients write (2.0.28 to 2.1.332)
is shown as `Unknown` or left out, and a line that is not a row has no view.

What a user typed while the client worked is an attachment, `queued_command`: it is a user's message
like any other (2.1.112 to 2.1.332 send it with the results of the tools that ran meanwhile).

A text in the user's name is split into what the user typed and what the client or an editor put
beside it. All of the text is in the parts, but for blanks between them and the tags around what was
typed. A note is only an element that clients and editors write (2.0.28 to 2.1.332): in front of
what was typed, or a reminder anywhere. Time grows with the text alone, whatever stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec.structs import astuple, replace

from sessrotate.clients.claude.rows import Shown, Usage, shown_of
from sessrotate.clients.common import count, text
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

if TYPE_CHECKING:
    from sessrotate.parsing import Record

    Json = dict[str, Any]
    Readers = dict[str, Callable[[Any], Block]]

KINDS: Final[dict[str, Speaker]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "attachment": "attachment",
}


def view(record: Record) -> View | None:
    """Return what a record says, None if it is no JSON object or too long to be held."""
    row = shown_of.of(record)
    return None if row is None else of_row(row)


def of_row(row: Shown) -> View:
    """Return what a row says."""
    kind = KINDS.get(row.type or "", "other")
    if kind == "attachment" and is_queued_prompt(row.attachment):
        kind, blocks = "user", _content(row.attachment["prompt"])
    else:
        blocks = _BLOCKS[kind](row)
    queue = _QUEUES.get(row.operation or "") if row.type == "queue-operation" else None
    if queue == "in":
        blocks = tuple(part for part in parts_of(_words(row.content)) if not part.is_note)
        queue = "in" if blocks else None
    if kind == "user" and not row.is_meta and not row.is_compact_summary:
        blocks = tuple(part for block in blocks for part in _parts(block))
    message = row.said
    return View(
        kind=kind,
        type=row.subtype or row.type or "",
        uuid=row.uuid,
        parent=row.parent_uuid,
        time=row.timestamp,
        blocks=blocks,
        model=message.model,
        tokens=_tokens(message.usage),
        message=message.id,
        is_meta=row.is_meta,
        is_sidechain=row.is_sidechain,
        is_boundary=kind == "system" and row.subtype == "compact_boundary",
        is_summary=row.is_compact_summary,
        agent=row.agent_id,
        queue=queue,
    )


def _words(content: Any) -> str:
    """Return what waits in the queue, "" if nobody asks anything by it.

    A command without anything behind it (`/model`) is one of the client's, which leaves no message.
    """
    said = content if isinstance(content, str) else ""
    return "" if _BARE_COMMAND.fullmatch(said) else said


_QUEUES: Final[dict[str, Literal["in", "out"]]] = {"enqueue": "in", "popAll": "out"}
"""What rows of the queue say by their operation; of the others (`dequeue`, `remove`), the rows of
what was delivered tell more (2.1.112 to 2.1.332)."""

_BARE_COMMAND: Final = re.compile(r"\s*/[\w:-]+\s*")


def is_queued_prompt(attachment: Any) -> bool:
    """Return whether an attachment is what a user typed while the client worked.

    As 2.1.112 tells it, and later ones that name a user as the `origin`: what tasks, other agents
    and channels say waits in the same queue.
    """
    if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
        return False
    origin = attachment.get("origin")
    return (
        attachment.get("commandMode", "prompt") == "prompt"
        and attachment.get("isMeta") is not True
        and (origin is None or text(origin, "kind") == "human")
        and isinstance(attachment.get("prompt"), str | list)
    )


def _parts(block: Block) -> tuple[Block, ...]:
    return parts_of(block.text) if isinstance(block, Text) and block.text else (block,)


def _message(row: Shown) -> tuple[Block, ...]:
    return _content(row.said.content)


def _attachment(row: Shown) -> tuple[Block, ...]:
    """Return what the client told the model of an attachment, or the attachment itself.

    `rendered` is what 2.1.330 keeps of it; older clients only the attachment.
    """
    if isinstance(row.rendered, list):
        told = (each for each in row.rendered if isinstance(each, dict))
        return tuple(block for each in told for block in _content(each.get("content")))
    return (_unknown(row.attachment),)


_BLOCKS: Final[dict[Speaker, Callable[[Shown], tuple[Block, ...]]]] = {
    "user": _message,
    "assistant": _message,
    "system": lambda row: _content(row.content),
    "attachment": _attachment,
    "other": lambda _row: (),
}


def _content(content: Any, readers: Readers | None = None) -> tuple[Block, ...]:
    """Return the blocks of a content, which is a text, a list of blocks, one block, or nothing."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ()
    return tuple(_block(each, readers or _READERS) for each in content)


def _block(block: Any, readers: Readers) -> Block:
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict):
        return _unknown(block)
    kind = text(block, "type") or ""
    if kind.endswith(_SERVERS_RESULT) and readers is _READERS:
        return replace(_result(block), tool=kind.removesuffix(_SERVERS_RESULT))
    return readers.get(kind, _unknown)(block)


def _unknown(block: Any) -> Block:
    return Unknown(text(block, "type") or "", block)


def _result(block: Json) -> ToolResult:
    blocks = _content(block.get("content"), _IN_RESULT)
    first = next((each.text for each in blocks if isinstance(each, Text)), "")
    return ToolResult(
        text(block, "tool_use_id") or "",
        blocks,
        is_error=block.get("is_error") is True,
        typed=typed_at_a_tool(first),
    )


def _call(block: Json) -> Block:
    return ToolCall(text(block, "id") or "", text(block, "name") or "", block.get("input"))


def _found(block: Json) -> Block:
    """Return what a search on the web found: its title and where it is."""
    return Text(" · ".join(filter(None, (text(block, "title"), text(block, "url")))))


def _image(block: Json) -> Block:
    source = block.get("source")
    if not isinstance(source, dict):
        return _unknown(block)
    return Image(*(text(source, name) or "" for name in ("media_type", "data", "url")))


_IN_RESULT: Final[Readers] = {
    "text": lambda block: Text(text(block, "text") or ""),
    "thinking": lambda block: Thinking(text(block, "thinking") or ""),
    "redacted_thinking": lambda _block: Thinking(""),
    "tool_use": _call,
    "server_tool_use": _call,
    "mcp_tool_use": _call,
    "web_search_result": _found,
    "advisor_result": lambda block: Text(text(block, "text") or ""),
    "image": _image,
    "document": _image,
}
"""Types of blocks, of the API as the client writes them down."""

_SERVERS_RESULT: Final = "_tool_result"
"""How types end of what a provider's own tools return (`web_search_tool_result`): it stands in the
answer, with the call."""

_READERS: Final[Readers] = {**_IN_RESULT, "tool_result": _result}
"""A result inside another result is unknown: such nesting would have no bound."""


def _tokens(usage: Usage | None) -> Tokens | None:
    return None if usage is None else Tokens(*(count(each) or 0 for each in astuple(usage)))


# ── what the user typed ───────────────────────────────────────────────────────────────────────────

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


def parts_of(said: str) -> tuple[Text, ...]:
    """Return the parts of a text in their order: of an empty one, none."""
    text = said.lstrip()
    if not text.startswith(("<", "Caveat: ")) and _REMINDER[0] not in said:
        return (Text(said),) if said else ()
    if text.startswith(_OF_THE_CLIENT):
        return (Text(said, is_note=True),)
    found = tuple(_split_notes(said))
    if all(part.is_note for part in found):
        return (Text(said, is_note=True),)
    return found if len(found) > 1 else (Text(_as_typed(said)),)


def _split_notes(said: str) -> Iterator[Text]:
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
