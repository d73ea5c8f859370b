"""What a record says, the same for all clients: who, when, and the blocks that people read. Pure.

Rule: data, never markup. Texts are as the client wrote them, and what a person typed is as it was
typed: a command without the client's tags around it. Whoever shows them must escape them.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Kind = Literal["user", "assistant", "system", "attachment", "other"]
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
    """What one record says. A field is None where the record does not tell."""

    kind: Kind
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
