"""What a record says, the same for all clients: who, when, and the blocks that people read. Pure.

Rule: data, never markup. Texts are as the client wrote them; whoever shows them escapes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["user", "assistant", "system", "attachment", "other"]
"""Who speaks; `other` is what belongs to no conversation (titles, modes, file history)."""


@dataclass(frozen=True, slots=True)
class Text:
    """Something said."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Something thought; empty where only a signature of it was kept."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants used. `arguments` is JSON, mostly an object."""

    id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave, to the call with this id."""

    id: str
    blocks: tuple[Block, ...]
    is_error: bool


@dataclass(frozen=True, slots=True)
class Image:
    """A picture or document: its media type, and base64 data or an address, one of them empty."""

    media_type: str
    data: str
    address: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A block of a type that we do not know, as JSON."""

    type: str
    value: Any


Block = Text | Thinking | ToolCall | ToolResult | Image | Unknown


@dataclass(frozen=True, slots=True)
class Tokens:
    """What an answer cost, in tokens; `cached` were read from the provider's cache."""

    sent: int
    cached: int
    stored: int
    received: int


@dataclass(frozen=True, slots=True)
class View:
    """One record.

    `type` is the client's own word for its kind. `time` is ISO 8601 as the client wrote it.
    `is_meta` is what the client said in the user's name, `is_sidechain` an agent's part of the
    conversation, `is_boundary` a compaction and `is_summary` what it left of the conversation.
    """

    kind: Kind
    type: str
    uuid: str | None = None
    parent: str | None = None
    time: str | None = None
    blocks: tuple[Block, ...] = ()
    model: str | None = None
    tokens: Tokens | None = None
    message: str | None = None
    """The id that all parts of one answer share."""
    is_meta: bool = False
    is_sidechain: bool = False
    is_boundary: bool = False
    is_summary: bool = False
    agent: str | None = None
    """The id of the agent whose transcript this is."""
