"""Who speaks, what a tool did, what was compacted: the words that all formats share. Pure.

Rule: one line each, as plain text; whoever shows it makes it harmless and escapes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from sessrotate import render, safe_text
from sessrotate.clients.view import (
    Block,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    View,
    is_note,
    is_of_client,
    is_typed,
)

if TYPE_CHECKING:
    from sessrotate.model import Boundary
    from sessrotate.reading import BranchEdge, Compaction, ToolUse, UnreadableLine

_SALIENT: Final = (
    "command",
    "file_path",
    "notebook_path",
    "path",
    "pattern",
    "query",
    "url",
    "description",
    "subject",
    "prompt",
)
"""Arguments that say best what a call is about; the first that is there is shown."""

_SPEAKERS: Final[tuple[tuple[str, Callable[[View], bool]], ...]] = (
    ("Summary", lambda view: view.is_summary),
    ("Attachment", lambda view: view.kind == "attachment"),
    ("Client", is_of_client),
    ("Agent", lambda view: view.is_sidechain and view.kind == "assistant"),
    ("To the agent", lambda view: view.is_sidechain),
    ("Assistant", lambda view: view.kind == "assistant"),
    ("You", is_typed),
    ("Tool", lambda view: any(isinstance(block, ToolResult) for block in view.blocks)),
    ("You", lambda view: view.kind == "user" or view.queue == "in"),
)
"""Who speaks: the first rule that matches."""

_VOICES: Final = {
    "You": "you",
    "Assistant": "agent",
    "Agent": "agent",
    "To the agent": "agent",
    "Tool": "tools",
}
VOICES: Final = tuple(dict.fromkeys(_VOICES.values()))
"""Whose words a search can be limited to."""

_UPDATES: Final = frozenset({"checkpoint"})
"""Boundaries that are not always compactions: Gemini CLI writes one at each resume."""


def speaker(view: View) -> str:
    """Return who speaks in this record."""
    who = _name(view)
    return f"{who} {view.agent}" if view.is_sidechain and view.agent else who


def _name(view: View) -> str:
    return next((name for name, is_it in _SPEAKERS if is_it(view)), view.type)


def is_by(who: str, view: View, block: Block) -> bool:
    """Return whether a block is `who`'s: `you`, `agent` (agents' agents too) or `tools`.

    What tools were given is theirs too, whoever called them. What a model writes to an agent is the
    model's. An answer to a question, or why a call was refused, is yours. A client's own words,
    its summaries, and what an editor put beside a prompt are nobody's.
    """
    if isinstance(block, ToolCall | ToolResult):
        return who == "tools" or (
            who == "you" and isinstance(block, ToolResult) and bool(block.typed)
        )
    return _VOICES.get(_name(view)) == who and not is_note(block)


def model(view: View) -> str | None:
    """Return the model that speaks, None for what the client wrote itself (`<synthetic>`)."""
    return view.model if view.model and not view.model.startswith("<") else None


def details(view: View) -> list[str]:
    """Return which model speaks, and when, each cut to 60 characters, as far as that is known."""
    known = (model(view), view.time and render.time(view.time))
    return [safe_text.clipped(word, 60) for word in known if word]


def compaction(part: Compaction, boundary: Boundary | None) -> str:
    """Return the words about a compaction: number, time, trigger, tokens before it."""
    what = part.view.type.capitalize() if part.view.type in _UPDATES else "Compaction"
    words = [what if boundary is None else f"{what} {part.record.segment}"]
    time = part.view.time or (boundary and boundary.timestamp)
    if time:
        words.append(render.time(time))
    if boundary is not None and boundary.trigger:
        words.append(boundary.trigger)
    if boundary is not None and boundary.pre_tokens is not None:
        words.append(f"{render.count(boundary.pre_tokens, 'token')} before")
    return " · ".join(words)


def branch(edge: BranchEdge) -> str:
    """Return the words about a branch that was rewound, where it begins, ends or is left out."""
    if edge.left_out:
        return (
            f"Left out here: {render.count(edge.left_out, 'record')} of a rewound branch. Export "
            "with --all-branches to see them."
        )
    if edge.is_end:
        return "The rewound branch ends here: what follows continues from before it."
    return "A rewound branch begins here: the user went back to before it."


def unread(part: UnreadableLine) -> str:
    """Return the words about a line that cannot be shown."""
    record = part.record
    where = f"segment {record.segment}, offset {record.offset}"
    if record.is_whole:
        return f"{where}: {render.size(record.size)} that are not a record"
    return f"{where}: a line of {render.size(record.size)}, too long to be shown"


def about(call: ToolCall) -> str:
    """Return the one argument that says what a call is about."""
    arguments = call.arguments
    if isinstance(arguments, dict):
        if asked := _questions(arguments.get("questions")):
            return asked
        for name in _SALIENT:
            value = arguments.get(name)
            if isinstance(value, str):
                return value
            if isinstance(value, list) and all(isinstance(word, str) for word in value):
                return " ".join(value)  # a command, in words
        for value in arguments.values():
            if isinstance(value, str):
                return value
    return "" if arguments in ({}, None) else as_json(arguments)


def _questions(value: Any) -> str:
    """Return the questions that a call asks the user, "" if it asks none."""
    if not isinstance(value, list):
        return ""
    asked = (each.get("question") for each in value if isinstance(each, dict))
    return " ".join(each for each in asked if isinstance(each, str))


def tool(part: ToolUse) -> str:
    """Return the name of the tool that was used; empty if only its call has that, out of sight."""
    if part.call is not None:
        return part.call.name
    return "" if part.result is None else part.result.tool


def outcome(result: ToolResult) -> str:
    """Return what a tool gave, in a word: how many lines, or how it failed."""
    if result.typed:
        return "refused" if result.is_error else "answered"
    if result.is_error:
        first = next((b.text for b in result.blocks if isinstance(b, Text) and b.text.strip()), "")
        return f"error: {first.strip()[:400]}" if first else "error"
    pictures = sum(isinstance(block, Image) for block in result.blocks)
    others = sum(not isinstance(block, Text | Image) for block in result.blocks)
    count = sum(
        block.text.count("\n") + (not block.text.endswith("\n"))
        for block in result.blocks
        if isinstance(block, Text) and block.text
    )
    told = {"line": count, "picture": pictures, "block": others}
    words = [render.count(number, what) for what, number in told.items() if number]
    return ", ".join(words) or render.count(0, "line")


def words(block: Block) -> str:
    """Return what a block says that is no tool's; of a picture, that there is one."""
    match block:
        case Text(text):
            return text
        case Thinking(text):
            return text or "(not kept by the client)"
        case Image():
            return f"[{picture(block)}]"
        case _:
            return as_json(getattr(block, "value", None))


def picture(image: Image) -> str:
    """Return the words for a picture or document: its type and its size or address."""
    what = image.media_type or "picture"
    return f"{what}, {render.size(len(image.data) * 3 // 4)}" if image.data else image.address


def given(result: ToolResult) -> str:
    """Return all that a tool gave, as text."""
    return "\n".join(words(block) for block in result.blocks)


def arguments(call: ToolCall) -> Iterator[tuple[str, str]]:
    """Yield what a call was given, by name: texts as they are, other values as JSON."""
    value = call.arguments
    members = value.items() if isinstance(value, dict) else [("", value)] if value else []
    for name, each in members:
        yield name, each if isinstance(each, str) else as_json(each)


def as_json(value: Any) -> str:
    """Return a JSON value on one line; what is too deep for that, as a dot."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…"
