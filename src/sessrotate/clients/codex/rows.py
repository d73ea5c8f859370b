"""The rows of a Codex session, as types, and a line → its row.

Rule: nothing outside this module knows that lines have three shapes: envelopes (0.36 and later),
bare rows (0.20 to 0.29), and the bare items of a compaction's history. Only fields that somebody
reads are named. A version beside a field is the first one seen with it; fields without one are in
files of every version from 0.36 on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from sessrotate.clients.codex.items import Content, Item
from sessrotate.clients.common import text
from sessrotate.clients.preview import Continues
from sessrotate.parsing.json_typed import Decoder

if TYPE_CHECKING:
    from sessrotate.parsing.records import Record


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
