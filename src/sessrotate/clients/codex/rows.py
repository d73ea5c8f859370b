"""The rows of a Codex session and the items in them, as types, and a line → its row.

Rule: nothing outside this module knows that lines have three shapes: envelopes (0.36 and later),
bare rows (0.20 to 0.29), and the bare items of a compaction's history. An item is what is sent to
the model, and its types are those of the Responses API as the client writes them down (0.20 to
0.169). Only fields that somebody reads are named. A version beside a field is the first one seen
with it; fields without one are in files of every version from 0.36 on. Types that have the same
fields under other names are one class here; the tables say which names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from sessrotate.clients.common import text
from sessrotate.clients.preview import Continues
from sessrotate.parsing.json_typed import Decoder, tagged

if TYPE_CHECKING:
    from sessrotate.parsing import Record

# ── blocks of a content ──────────────────────────────────────────────────────────────────────


class PlainText(Struct, tag_field="type"):
    """Something said."""

    text: str


class Refusal(Struct, tag_field="type"):
    """What the model said instead of an answer."""

    refusal: str = ""


class InputImage(Struct, tag_field="type"):
    """A picture: a `data:` URL, or an address."""

    image_url: str


class EncryptedContent(Struct, tag_field="type"):
    """What only the provider can read."""


if TYPE_CHECKING:
    Block = PlainText | Refusal | InputImage | EncryptedContent | dict[str, Any] | str
else:
    Block = tagged(
        {
            PlainText: (
                "input_text",
                "output_text",
                "summary_text",
                "reasoning_text",
                "text",  # in a completed `UserMessage` (0.150)
                "Text",  # in a completed `AgentMessage` (0.169)
            ),
            Refusal: ("refusal",),
            InputImage: ("input_image",),
            EncryptedContent: ("encrypted_content",),
        }
    )

Content = str | list[Block] | None
"""A list may hold plain JSON too: texts, and blocks of types that are not here."""

BLOCKS: Final[Decoder[Block]] = Decoder(Block)


# ── items ────────────────────────────────────────────────────────────────────────────────────


class _Item(Struct, tag_field="type"):
    """What all items have."""

    id: str | None = None

    @property
    def kind(self) -> str:
        """The item's type, in the client's word."""
        return str(self.__struct_config__.tag)


class _Provenance(Struct):
    type: str | None = None  # whose a block is: "user", "harness", "skills"


class _ItemMetadata(Struct):
    provenance: _Provenance | None = None


class Passthrough(Struct):
    """What the client notes of a message; the lists go with the message's blocks."""

    content_item_kinds: list[str] = []  # "user.text", "compaction.summary"
    content_item_metadata: list[_ItemMetadata] = []


class Message(_Item):
    """A message of the user, of the client in the user's name, of the model or a developer."""

    role: str | None = None
    content: Content = None
    passthrough: Passthrough = msgspec.field(  # 0.169
        name="internal_chat_message_metadata_passthrough", default_factory=Passthrough
    )


class Reasoning(_Item):
    """What was thought."""

    summary: list[Block] | None = None
    content: list[Block] | None = None


class Call(_Item):
    """A tool that the model wants used; the arguments are in one of three fields."""

    call_id: str | None = None
    name: str | None = None
    arguments: Any = UNSET  # a text that is JSON; an object in a `tool_search_call`
    input: Any = UNSET  # of a `custom_tool_call`: any text
    action: Any = None  # of the others: an object


class Output(_Item):
    """What a tool gave: a text, a list of blocks, or an object with `content` and `success`."""

    call_id: str | None = None
    output: Any = UNSET
    tools: Any = None  # of a `tool_search_output`


class GeneratedImage(_Item):
    """A picture that the provider made: PNG, in base64."""

    result: str = ""


class RemoteCompaction(_Item):
    """What a compaction by the provider left of the conversation, encrypted."""


class Unsent(_Item):
    """What the client keeps for itself."""


if TYPE_CHECKING:
    Item = Message | Reasoning | Call | Output | GeneratedImage | RemoteCompaction | Unsent
else:
    Item = tagged(
        {
            Message: ("message",),
            Reasoning: ("reasoning",),
            Call: (
                "function_call",
                "custom_tool_call",
                "local_shell_call",
                "web_search_call",
                "tool_search_call",
            ),
            Output: (
                "function_call_output",
                "custom_tool_call_output",
                "local_shell_call_output",
                "tool_search_output",
            ),
            GeneratedImage: ("image_generation_call",),
            RemoteCompaction: ("compaction", "compaction_summary", "context_compaction"),
            Unsent: ("ghost_snapshot", "other"),
        }
    )


class _ExitCode(Struct):
    exit_code: int = 0


class ShellOutput(Struct):
    """What a shell's output is as JSON, up to 0.77."""

    output: str
    metadata: _ExitCode = msgspec.field(default_factory=_ExitCode)


SHELL_OUTPUT: Final[Decoder[ShellOutput | dict[str, Any]]] = Decoder(ShellOutput)


def texts(content: Content) -> list[str]:
    """Return the texts of a content, which is a text, a list of blocks, or nothing.

    Blocks of types that are not here count too if they have a `text`.
    """
    found = []
    for block in [content] if isinstance(content, str) else content or ():
        match block:
            case str(text) | PlainText(text) | {"text": str(text)}:
                found.append(text)
    return found


# ── rows ─────────────────────────────────────────────────────────────────────────────────────


class HistoryBase(Struct):
    """Where a fork or a revert continues another session (0.150)."""

    thread_id: str | None = None
    end_ordinal_exclusive: int | None = None


class _Git(Struct):
    branch: str | None = None


class _BaseInstructions(Struct):
    text: str | None = None


class Source(Struct):
    """Who started the session, where that is no word: an agent's has `subagent`."""

    subagent: Any = None


class Meta(Struct):
    """The payload of a `session_meta`."""

    id: str | None = None
    cwd: str | None = None
    instructions: str | None = None  # 0.20 to 0.58
    base_instructions: _BaseInstructions | None = None  # what the model is told first
    forked_from_id: str | None = None  # 0.118
    subagent_history_start_ordinal: int | None = None  # of an agent that copies its parent (0.169)
    history_base: HistoryBase | None = None
    git: _Git | None = None
    source: str | Source | None = None  # "exec", "cli"

    @property
    def origin(self) -> Continues | None:
        """What the session continues, None if it begins by itself.

        A fork of 0.150 and later holds no copy of what came before: its history goes on where the
        other one's is cut. A fork of an older client copies all rows and names only the session.
        """
        base = self.history_base
        if base is not None and base.thread_id is not None:
            ordinal = base.end_ordinal_exclusive
            at = ordinal if ordinal is not None and ordinal >= 0 else None
            return Continues(base.thread_id, "says so", at)
        fork = self.forked_from_id
        return Continues(fork, "says so") if fork is not None else None


class BareMeta(Meta, kw_only=True):
    """The first row of 0.20 to 0.29."""

    id: str
    instructions: str | None


class Usage(Struct):
    """Tokens. `input_tokens` has those in it that came from the cache or went into it."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0  # 0.145
    output_tokens: int = 0
    total_tokens: int = 0


class UsageInfo(Struct):
    """What an answer cost, and all of the session's so far."""

    last: Usage = msgspec.field(name="last_token_usage", default_factory=Usage)
    total: Usage = msgspec.field(name="total_token_usage", default_factory=Usage)


class UsageRecord(Struct):
    """The same, as the payload of a `token_usage_record` (0.155)."""

    last: Usage = msgspec.field(name="usage", default_factory=Usage)
    total: Usage = msgspec.field(name="thread_token_usage", default_factory=Usage)


class HistoryItem(Struct):
    """An item of a compaction's history. `history.items` gives them as records of their own."""


class Compaction(Struct):
    """The payload of a `compacted`."""

    message: str | None = None
    replacement_history: list[HistoryItem] | UnsetType | None = UNSET  # 0.105

    @property
    def carries(self) -> bool:
        """Whether it has the whole history that replaces the older one."""
        return self.replacement_history is not UNSET


class Turn(Struct):
    """The payload of a `turn_context`."""

    model: str | None = None
    turn_id: str | None = None


class CompletedItem(Struct):
    """What an `item_completed` tells of (0.150): a `UserMessage`, an `AgentMessage` or another."""

    type: str | None = None
    content: Content = None


class Event(Struct):
    """The payload of an `event_msg`; which fields it has depends on `type`."""

    type: str = ""
    turn_id: str | None = None  # task_started
    message: str | None = None  # user_message (0.36 to 0.145), error, warning, stream_error
    reason: str | None = None  # turn_aborted
    num_turns: int | None = None  # thread_rolled_back (0.36 to 0.145)
    info: UsageInfo | None = None  # token_count
    item: CompletedItem | None = None  # item_completed


class _Row(Struct, tag_field="type"):
    timestamp: str | None = None


class SessionMeta(_Row, tag="session_meta", kw_only=True):
    """The first row."""

    payload: Meta


class ResponseItem(_Row, tag="response_item", kw_only=True):
    """Something that is sent to the model."""

    payload: Item


class Compacted(_Row, tag="compacted", kw_only=True):
    """A compaction: the boundary."""

    payload: Compaction


class TurnContext(_Row, tag="turn_context", kw_only=True):
    """Under what settings a turn runs."""

    payload: Turn


class EventMsg(_Row, tag="event_msg", kw_only=True):
    """Something for the screen."""

    payload: Event


class TokenUsageRecord(_Row, tag="token_usage_record", kw_only=True):
    """What an answer cost."""

    payload: UsageRecord


class WorldState(_Row, tag="world_state"):
    """What the client keeps for itself (0.145)."""


class UnknownRow(Struct):
    """A row of a type that is not here; `item` is the JSON of an item that is not."""

    type: str
    timestamp: str | None = None
    item: dict[str, Any] | None = None


_Envelope = (
    SessionMeta | ResponseItem | Compacted | TurnContext | EventMsg | TokenUsageRecord | WorldState
)
Row = _Envelope | UnknownRow

LINES: Final[Decoder[_Envelope | Item | dict[str, Any]]] = Decoder(_Envelope | Item)
_BARE_META: Final[Decoder[BareMeta | dict[str, Any]]] = Decoder(BareMeta)


def row_of(record: Record) -> Row | None:
    """Return what a line is, None if it is no JSON object, or too long to be held.

    Of a compacted record that is too long, there is its message, and a history without items.
    """
    if record.line[:1] not in {b"{", b" ", b"\t"}:
        return None
    if not record.is_whole:
        return _long(record)
    found = LINES(record.line)
    if isinstance(found, dict):
        return _unknown(found)
    return ResponseItem(payload=found) if isinstance(found, Item) else found


def _unknown(found: dict[str, Any]) -> Row:
    kind, time, payload = text(found, "type"), text(found, "timestamp"), found.get("payload")
    if kind == "response_item" and isinstance(payload, dict):
        return UnknownRow(text(payload, "type") or "", time, payload)
    if "record_type" in found:  # 0.20 to 0.29
        return UnknownRow(text(found, "record_type") or "", time)
    if kind is not None and "payload" not in found:
        return UnknownRow(kind, time, found)
    if isinstance(meta := _BARE_META.fitted(found), BareMeta):
        return SessionMeta(timestamp=time, payload=meta)
    return UnknownRow(kind if kind is not None and isinstance(payload, dict) else "", time)


_LONG: Final = re.compile(
    rb'\{(?:"timestamp":"[^"\\]{0,64}",)?(?:"ordinal":[0-9]{1,15},)?'
    rb'"type":"compacted","payload":\{"message":"[^"\\]*+(?:(?>\\.[^"\\]*+))*+"'
    rb'(,"replacement_history":)?'
)
"""The beginning of a compacted record that is too long to be held."""


def _long(record: Record) -> Row | None:
    begins = _LONG.match(record.line)
    if begins is None or not record.is_ended:
        return None
    found = LINES(begins[0] + (b"[]}}" if begins[1] else b"}}"))
    return found if isinstance(found, Compacted) else None


def is_bare(record: Record) -> bool:
    """Tell whether a line is a row of 0.20 to 0.29, which has no envelope."""
    return record.line.startswith((b'{"type":', b'{"record_type":'))
