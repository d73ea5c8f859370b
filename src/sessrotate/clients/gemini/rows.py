"""The rows of Gemini CLI's sessions, as types, and a line → its row.

Rule: as `loadConversationRecord` of 0.61.0 takes them; a row of another shape is none, and no
error. A message is the same in both formats: a line of a `.jsonl`, an element of `messages` in a
`.json`. Only fields that somebody reads are named. A version beside a field is the first one seen
with it; fields without one are in files of every version from 0.24.0 to 0.61.0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field

from sessrotate.parsing.json_typed import Decoder

if TYPE_CHECKING:
    from sessrotate.parsing.records import Record

Kind = Literal["rewind", "message", "update", "metadata"]


class Thought(Struct):
    """What was thought."""

    subject: str | None = None
    description: str | None = None


class ToolCall(Struct, rename="camel"):
    """A tool that the model used, and what that gave."""

    id: str = ""
    name: str = ""
    args: Any = None
    result: Any = None  # a text, a part, or a list of parts
    status: str | None = None  # "success", "error", "cancelled"
    agent_id: str | None = None  # the agent that the call started (0.45.2)


class Tokens(Struct):
    """What an answer cost. `input` has those in it that came from the cache."""

    input: int = 0
    cached: int = 0
    output: int = 0
    thoughts: int = 0


class Held(Struct):
    """A message inside of a line; `messages_in` gives them as records of their own."""


class Update(Struct, rename="camel"):
    """What a `$set` changes (0.39.1)."""

    messages: list[Held] | None = None  # takes the place of all that was said before (0.45.2)
    last_updated: str | None = None
    summary: str | None = None


class Row(Struct, rename="camel"):
    """A line: the first that it can be of a rewind, a message, an update, and metadata."""

    rewind_to: str | None = field(name="$rewindTo", default=None)  # a message's id (0.39.1)

    id: str | None = None
    timestamp: str | None = None
    type: str | None = None  # "user", "gemini", "info", "error", "warning"
    content: Any = None  # a text, a part, or a list of parts, as the API has them
    thoughts: list[Thought] = []
    tool_calls: list[ToolCall] = []
    tokens: Tokens | None = None
    model: str | None = None

    changed: Update | list[Any] | None = field(name="$set", default=None)

    session_id: str | None = None
    project_hash: str | None = None
    start_time: str | None = None
    last_updated: str | None = None
    summary: str | None = None  # a member of a `.json`
    messages: list[Held] | None = None

    @property
    def kind(self) -> Kind | None:
        """What the row is, None if the client passes it over."""
        if self.rewind_to is not None:
            return "rewind"
        if self.id is not None:
            return "message"
        if self.changed is not None:
            return "update"
        is_metadata = self.session_id is not None and self.project_hash is not None
        return "metadata" if is_metadata else None

    @property
    def update(self) -> Update:
        """What the row changes: nothing, if it is no update."""
        changed = self.changed if self.kind == "update" else None
        return changed if isinstance(changed, Update) else Update()


row_of: Final = Decoder[Row](Row).of
"""Return what a record holds, None if it is no JSON object, or too long to be held."""

NONE: Final = Row()
"""Stands for a line that is no row."""


def identity(record: Record) -> str | None:
    """Return the id of a message, None of another line; of a long one, what it begins with."""
    if record.is_whole:
        row = row_of(record) or NONE
        return row.id if row.kind == "message" else None
    return id_at(record.line)


_ID: Final = re.compile(rb'\s*\{\s*"id"\s*:\s*"([^"\\]{1,200})"')


def id_at(line: bytes) -> str | None:
    """Return the id that a message begins with, as all clients write it."""
    found = _ID.match(line)
    return found[1].decode("utf-8", "replace") if found is not None else None
