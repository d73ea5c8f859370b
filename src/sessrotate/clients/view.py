"""What a record says, the same for all clients: who, when, and the blocks that people read. Pure.

Rule: data, never markup. Texts are as the client wrote them, and what a person typed is as it was
typed: a command without the client's tags around it. Whoever shows them must escape them.

Clients write many records, and texts beside what was typed, in the user's name; only what a person
asked is a prompt. Which text is whose, the client's view says (`Text.is_note`). What a record asks
is said here alone, for turns, headings, titles, search and the list. A command (`/review`, `!ls`)
begins a turn too; `/compact` begins none, because it asks nothing.

Each line counts once, whole, under one kind: talk, thinking, tools, pictures, or a client's own
notes. A message has the kind of most of its characters, and on a tie the kind that comes first; a
picture in a tool's result is a picture. A line that is not a message has the kind of the client's
word for it, and a line that nobody can read is unknown. What a client writes beside a message (a
tool's result once more, for its own display) counts as part of that message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from sessrotate.parsing import Record

    Told = tuple["Gist", bytes | None, bytes | memoryview, int, int, bool]
    """A record's gist and its key, and then its line (`records.Line`)."""
    Copied = Callable[[Record], Mapping["Copy", int]]
    """Tells of one record after the other how many bytes of it stood somewhere before, as what."""

Speaker = Literal["user", "assistant", "system", "attachment", "other"]
"""Who speaks; `other` is a record outside the conversation (a title, a mode, file history)."""


class Text(Struct, frozen=True):
    """`text` that was said.

    `is_note`: in a user's message, it is what the client or an editor put beside what was typed.
    """

    text: str
    is_note: bool = False


class Thinking(Struct, frozen=True):
    """What the model thought; `text` is empty if the client kept only a signature of it."""

    text: str


class ToolCall(Struct, frozen=True):
    """A call of a tool by `name`. `arguments` is JSON, mostly an object; `id` is the call's."""

    id: str
    name: str
    arguments: Any


class ToolResult(Struct, frozen=True):
    """What a tool returned: its `blocks`, for the call with this `id`; `is_error` if it failed.

    `tool` is its name, empty where only the call has it. `typed` is what the user typed at it: the
    answer to a question, or why they refused the call.
    """

    id: str
    blocks: tuple[Block, ...]
    is_error: bool
    tool: str = ""
    typed: str = ""


class Image(Struct, frozen=True):
    """A picture or document of a `media_type`: base64 `data` or an `address`, one of them empty."""

    media_type: str
    data: str
    address: str


class Unknown(Struct, frozen=True):
    """A block of a `type` that sessrotate does not know; its JSON `value`."""

    type: str
    value: Any


Block = Text | Thinking | ToolCall | ToolResult | Image | Unknown


class Tokens(Struct, frozen=True):
    """What an answer cost, in tokens.

    `sent` were sent anew, `cached` were read from the provider's cache, `stored` were written to
    it, and `received` are the answer.
    """

    sent: int
    cached: int
    stored: int
    received: int


class View(Struct, frozen=True):
    """What one record says. A field is None if the record does not have it."""

    kind: Speaker
    """Who speaks: `user`, `assistant`, `system`, `attachment`, or `other`."""
    type: str
    """The client's own word for the record's kind."""
    uuid: str | None = None
    """The record's own id."""
    parent: str | None = None
    """The `uuid` of the record that it follows in the conversation."""
    time: str | None = None
    """When it was written, ISO 8601 as the client wrote it."""
    blocks: tuple[Block, ...] = ()
    """What is said, in order."""
    model: str | None = None
    """The model that answered."""
    tokens: Tokens | None = None
    """What the answer cost."""
    message: str | None = None
    """The id that all parts of one answer share."""
    is_meta: bool = False
    """Whether the client said it in the user's name."""
    is_sidechain: bool = False
    """Whether it belongs to an agent's part of the conversation."""
    is_boundary: bool = False
    """Whether it is a compaction."""
    is_summary: bool = False
    """Whether it is what a compaction left of the conversation."""
    agent: str | None = None
    """The id of the agent whose transcript this is."""
    queue: Literal["in", "out"] | None = None
    """Whether its words, a prompt's, were put in the client's queue, or all that waited taken back.

    What was delivered later is said by a record of its own; what never was, by this one alone.
    """


# ── what a record asks ────────────────────────────────────────────────────────────────────────────

_INTERRUPTED: Final = "[Request interrupted by user"
_COMPACT: Final = ("/compact", "/compact ")


def is_note(block: Block) -> bool:
    """Return whether a block is what the client or an editor put beside what was typed."""
    return isinstance(block, Text) and block.is_note


def is_of_client(view: View) -> bool:
    """Return whether the client wrote this itself: a note, a reminder, a command's output."""
    if view.is_boundary or view.is_summary:
        return False
    return (
        view.is_meta
        or view.kind == "system"
        or (bool(view.blocks) and all(map(is_note, view.blocks)))
    )


def asked(view: View) -> str | None:
    """Return what a person, or whoever started an agent, asked with a record; None if nobody did.

    That is what was typed, and "" where only a picture was sent.
    """
    if view.kind != "user" or view.is_meta or view.is_summary:
        return None
    typed = [block for block in view.blocks if _is_typed(block)]
    texts = (block.text.strip() for block in typed if isinstance(block, Text))
    said = "\n".join(filter(None, texts))
    return None if not typed or said.startswith(_INTERRUPTED) else said


def is_prompt(view: View) -> bool:
    """Return whether a person asked this, so that a turn begins here."""
    said = None if view.is_sidechain else asked(view)
    return said is not None and not _asks_to_compact(said)


def is_typed(view: View) -> bool:
    """Return whether a person typed this: a prompt, or a command that begins no turn."""
    return not view.is_sidechain and asked(view) is not None


def is_heading(view: View, block: Block) -> bool:
    """Return whether a prompt begins with this block: what its turn is called by.

    Results of tools may stand before it: a person may put words to what they allow or refuse.
    """
    return is_prompt(view) and block is next(filter(_is_typed, view.blocks))


def typed_first(view: View) -> View:
    """Return a prompt with what was typed before its pictures, and these before all else.

    So that its first block is what the turn is called by (`is_heading`). Other records stay as they
    are, and so does one with a tool's result, which belongs to what came before.
    """
    if not is_prompt(view) or not all(isinstance(block, Text | Image) for block in view.blocks):
        return view
    return replace(view, blocks=tuple(sorted(view.blocks, key=_rank)))


def _rank(block: Block) -> int:
    return 2 if is_note(block) else int(isinstance(block, Image))


def _is_typed(block: Block) -> TypeGuard[Text | Image]:
    return isinstance(block, Text | Image) and not is_note(block)


def _asks_to_compact(said: str) -> bool:
    return said == _COMPACT[0] or said.startswith(_COMPACT[1])


# ── the kind of a line ────────────────────────────────────────────────────────────────────────────

LineKind = Literal[
    "user text",
    "assistant text",
    "thinking",
    "tool calls",
    "tool results",
    "images",
    "attachments",
    "file-history",
    "progress",
    "compactions",
    "metadata",
    "unknown",
]
"""What a line mostly is."""

Copy = Literal["lines", "pictures", "history", "parent"]
"""What stands a second time: a whole line, a picture, what a compaction wrote again of the history,
or a line that the session took over from the one that it was forked from."""


class Gist(Struct, frozen=True, gc=False):
    """What is counted of one record.

    A Struct, because there are millions and a dataclass takes four times as long to make.

    `time` is ISO 8601 as the client wrote it. `calls` are the tools called, each with the id and
    the name, and `result` is the id of the call whose result this is, of several the first.
    """

    kind: LineKind
    time: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    result: str | None = None


UNKNOWN: Final = Gist("unknown")

SAID: Final[Mapping[Speaker, LineKind]] = {"user": "user text", "assistant": "assistant text"}
"""The kind of a text by its speaker, and of a message without blocks."""

_BEGINNINGS: Final[tuple[tuple[str, LineKind], ...]] = (
    ("file-history", "file-history"),
    ("progress", "progress"),
    ("compact", "compactions"),
    ("", "metadata"),
)
"""Kinds of records outside the conversation, by how the client's word for them begins."""

_BLOCKS: Final[Mapping[type, LineKind]] = {
    Thinking: "thinking",
    ToolCall: "tool calls",
    ToolResult: "tool results",
    Image: "images",
}

_RESULT: Final = "tool_result"
"""How types of blocks end that are results of a provider's own tools (`web_search_tool_result`)."""


def gist_of(view: View | None) -> Gist:
    """Return the gist of a record by its view; the gist of one without a view is unknown."""
    if view is None:
        return UNKNOWN
    if view.kind not in SAID:
        return Gist(kind_of_note(view.kind, view.type), view.time)
    results = (block.id for block in view.blocks if isinstance(block, ToolResult))
    return Gist(
        kind_of_blocks(SAID[view.kind], view.blocks),
        view.time,
        tuple((block.id, block.name) for block in view.blocks if isinstance(block, ToolCall)),
        next(results, None),
    )


def kind_of_note(speaker: Speaker, word: str) -> LineKind:
    """Return the kind of a record that is no message, by the client's word for it."""
    if speaker == "attachment":
        return "attachments"
    if not word:
        return "unknown"
    return next(kind for beginning, kind in _BEGINNINGS if word.startswith(beginning))


def kind_of_blocks(said: LineKind, blocks: tuple[Block, ...]) -> LineKind:
    """Return the kind of a message whose texts are `said`."""
    weights: dict[LineKind, int] = {}
    for block in blocks:
        kind = _of_block(said, block)
        weights[kind] = weights.get(kind, 0) + _weight(block)
        for each in block.blocks if isinstance(block, ToolResult) else ():
            inner: LineKind = "images" if isinstance(each, Image) else kind
            weights[inner] = weights.get(inner, 0) + _weight(each)
    return max(weights, key=lambda kind: weights[kind], default=said)


def _of_block(said: LineKind, block: Block) -> LineKind:
    if isinstance(block, Text):
        return said
    if type(block) in _BLOCKS:
        return _BLOCKS[type(block)]
    return "tool results" if getattr(block, "type", "").endswith(_RESULT) else "unknown"


def _weight(block: Block) -> int:
    match block:
        case Text(text) | Thinking(text):
            return len(text)
        case ToolCall():
            return _characters(block.arguments)
        case Image():
            return len(block.data) + len(block.address)
        case ToolResult():
            return 0
        case _:
            return _characters(block.value)


def _characters(value: Any) -> int:
    """Return how many characters the texts in a JSON value have together."""
    found, todo = 0, [value]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            found += len(each)
        elif isinstance(each, dict):
            todo += each.values()
        elif isinstance(each, list):
            todo += each
    return found
