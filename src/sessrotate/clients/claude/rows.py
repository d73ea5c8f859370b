"""Claude Code's record types: what sessrotate reads of a row, and nothing else of it.

Rule: a field is here because somebody asks for it, under the client's own name in camel case, and
says since when it has been seen: in files that 2.0.28, 2.1.30, 2.1.112, 2.1.260, 2.1.300 and
2.1.330 wrote. Fields without a version are in all of them. A row may lack any field.

There are three sizes of a row, because what is not named costs nothing: `Row` says where a row
belongs, `Turn` also what its message consists of, and `Shown` what people read of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from msgspec import Raw, Struct

from sessrotate.clients.common import BOM
from sessrotate.parsing.json_typed import Decoder

Name = str | int | bool | None
"""A text, in what clients write. As a key of theirs another scalar would do as well."""

NOTHING = Raw(b"")


class Dated(Struct, gc=False):
    """When a row was written."""

    timestamp: Any = None


class Origin(Struct, rename="camel", gc=False):
    """Where and when a row was written, and in which session."""

    session_id: Any = None
    uuid: Any = None  # of rows of the conversation only
    parent_uuid: Any = None  # the row that this one follows
    cwd: Any = None  # the folder that the client ran in
    git_branch: Any = None  # empty outside of git
    timestamp: Any = None


class Row(Struct, rename="camel", gc=False):
    """Where a row belongs."""

    type: str | None = None
    """`user`, `assistant`, `system`, `attachment`, or one of some forty types of metadata."""
    uuid: str | None = None  # of rows of the conversation only
    parent_uuid: str | None = None
    """The row that this one follows; null where a conversation begins, as at a compaction."""
    session_id: Name = None
    message_id: str | None = None
    """The row whose files a `file-history-snapshot` or `file-history-delta` has (2.1.112)."""
    leaf_uuid: Name = None
    """The last row of what a `summary` is of (2.0.28), or a `last-prompt` (2.1.260)."""
    organization_uuid: Name = None  # of a `hybrid-organization` (in the code of 2.1.330)


class Answer(Struct, gc=False):
    """What an `assistant` row has in `message`, as far as it ties rows together."""

    id: str | None = None  # all rows of one answer of the model have it


class Link(Row, rename="camel", gc=False):
    """Where a row belongs, and what else ties it to others."""

    timestamp: str | None = None
    is_sidechain: bool = False  # it is an agent's
    message: Answer | None = None


# ── messages ─────────────────────────────────────────────────────────────────────────────────


class Source(Struct, gc=False):
    """What a picture or a document is; only that it is an object."""


class Block(Struct, gc=False):
    """A block of a message, of the Anthropic API as the client writes it down."""

    type: str | None = None  # `text`, `thinking`, `tool_use`, `tool_result`, `image` and others
    id: str | None = None  # of a `tool_use`: the call's
    name: str | None = None  # of a `tool_use`: the tool's
    tool_use_id: str | None = None  # of a `tool_result`: the call's whose result it is
    content: Raw = NOTHING  # of a `tool_result`: a text, or a list of blocks
    source: Source | None = None  # of an `image` or a `document`


class Message(Struct, gc=False):
    """What a `user` or `assistant` row has in `message`."""

    id: str | None = None  # of the model's: the answer that all its rows are parts of
    content: str | list[Block] | None = None


class Attached(Struct, gc=False):
    """What an `attachment` row has in `attachment`; only what kind it is."""

    type: str | None = None


class Turn(Row, rename="camel", gc=False):
    """A row, and what its message consists of."""

    subtype: str | None = None
    """Of a `system` row: `compact_boundary`, `local_command`, `stop_hook_summary` and others."""
    timestamp: str | None = None
    """ISO 8601 in UTC, in milliseconds. Metadata has none."""
    is_sidechain: bool = False  # it is an agent's
    message: Message | None = None
    attachment: Attached | None = None


# ── what people read ─────────────────────────────────────────────────────────────────────────


class Usage(Struct, gc=False):
    """What an answer cost, in tokens."""

    input_tokens: Any = None
    cache_read_input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    output_tokens: Any = None


class Said(Struct):
    """A message, all of its content included."""

    id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    content: Any = None


class Shown(Row, rename="camel"):
    """A row, and what people read of it."""

    subtype: str | None = None
    timestamp: str | None = None
    is_sidechain: bool = False
    is_meta: bool = False  # the client says it in the user's name
    is_compact_summary: bool = False  # it is what a compaction left of the conversation
    is_visible_in_transcript_only: bool = False  # it is not sent to the model
    agent_id: str | None = None  # the agent whose transcript this is
    message: Said | str | None = None
    content: Any = None  # of a `system` row: a text; of a `queue-operation`: what was typed
    operation: str | None = None  # of a `queue-operation` (2.1.30): `enqueue`, `dequeue` and others
    attachment: Any = None  # of an `attachment` (2.1.112): an object that has a type
    rendered: Any = None  # of an `attachment` (2.1.300): what the model was told of it, as messages

    @property
    def said(self) -> Said:
        """Its message; one that is a text, which clients do not write, is its content."""
        message = self.message
        return message if isinstance(message, Said) else Said(content=message)

    def blocks(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the blocks of its message that have this type."""
        content = self.said.content
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == kind:
                yield block


class Titled(Shown, rename="camel"):
    """A row that may give its session a title."""

    custom_title: str | None = None  # of a `custom-title`: the user's own (2.1.80)
    ai_title: str | None = None  # of an `ai-title`: the model's (2.1.80)
    last_prompt: str | None = None  # of a `last-prompt` (2.1.112)
    summary: str | None = None  # of a `summary` (2.0.28)


class Outcome(Struct, rename="camel"):
    """What the client noted of a tool's result, for its own display."""

    agent_id: str | None = None  # the agent that the call started


class Started(Shown, rename="camel"):
    """A row that may start an agent, or have its result."""

    tool_use_result: Outcome | str | list[Raw] | None = None


# ── compactions ──────────────────────────────────────────────────────────────────────────────


class PreservedSegment(Struct, rename="camel"):
    """The rows that a compaction preserved, by the ends of their chain (2.1.260; read by 2.1.80).

    The chain goes from `tail_uuid` to `head_uuid` by the rows' parents.
    """

    head_uuid: str | None = None
    tail_uuid: str | None = None
    anchor_uuid: str | None = None  # the row that they follow from now on: the summary


class PreservedMessages(Struct, rename="camel"):
    """The same rows as a list (2.1.260)."""

    anchor_uuid: str | None = None
    uuids: list[Any] | None = None
    all_uuids: list[Any] | None = None
    """These, and what stands between them; one of them may be in no file (2.1.260)."""


class CompactMetadata(Struct, rename="camel"):
    """What a compaction did."""

    preserved_messages: PreservedMessages | None = None
    preserved_segment: PreservedSegment | None = None


class Compaction(Row, rename="camel"):
    """A `system` row of the subtype `compact_boundary`."""

    version: str | None = None  # of the client that wrote it
    entrypoint: str | None = None  # how that was started: `cli`, `sdk-ts`, `claude-desktop` …
    logical_parent_uuid: str | None = None  # the last row of what it summed up
    compact_metadata: CompactMetadata | None = None


dated_of = Decoder[Dated](Dated)
origin_of = Decoder[Origin](Origin)
row_of = Decoder[Row](Row, BOM)
link_of = Decoder[Link](Link)
turn_of = Decoder[Turn](Turn, BOM)
shown_of = Decoder[Shown](Shown, BOM)
titled_of = Decoder[Titled](Titled, BOM)
started_of = Decoder[Started](Started, BOM)
compaction_of = Decoder[Compaction](Compaction, BOM)


def is_foreign(named: object, session: str | None) -> bool:
    """Tell whether a row that names a session is another's; rows of metadata may name none."""
    return session is not None and isinstance(named, str) and named != session


def has_result(row: Turn) -> bool:
    """Tell whether a row is a user's message that brings a tool's result."""
    content = row.message.content if row.type == "user" and row.message is not None else None
    return isinstance(content, list) and any(block.type == "tool_result" for block in content)


def seconds(time: str | None) -> float:
    """Return a row's time in seconds since 1970, 0 if it has none."""
    try:
        return datetime.fromisoformat(time or "").timestamp()
    except (ValueError, OverflowError):
        return 0
