"""The rows of Gemini CLI's sessions, as types, and a line → its row.

Rule: as `loadConversationRecord` of 0.61.0 takes them; a row of another shape is none, and no
error. A message is the same in both formats: a line of a `.jsonl`, an element of `messages` in a
`.json`. Only fields that somebody reads are named. A version beside a field is the first one seen
with it; fields without one are in files of every version from 0.24.0 to 0.61.0.

Some lines replace all messages. Whether a line does has one verdict, whoever asks and however long
the line is. `boundary` looks at the two ends of a line, which is what cutting needs of hundreds of
megabytes; `replaces` reads all of it, which is what a resume does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Reversible
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field

from sessrotate.clients.common import iso_time
from sessrotate.model import Boundary, Span
from sessrotate.parsing import Record, json_line
from sessrotate.parsing.json_stream import arrays_at
from sessrotate.parsing.json_typed import Decoder

if TYPE_CHECKING:
    from sessrotate.parsing import Record

    BytesOf = Callable[[Record], Iterable[bytes]]

RowType = Literal["rewind", "message", "update", "metadata"]


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
    def kind(self) -> RowType | None:
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


# ── what replaces all messages ────────────────────────────────────────────────────────────────────

MARKER: Final = b'"messages"'
"""Bytes that every boundary line has, however it is spaced.

No other line of a client has them: inside a string the quotes are escaped. (`"$set"` would be
found in every second line: one follows each message.)
"""

UPDATED: Final = ("$set", "messages")
NAMED: Final = ("messages",)
"""Where a line may have messages: in an update, and (0.61.0 reads it) in metadata."""

# As `JSON.stringify` writes an update of `messages` and `lastUpdated`, which is how 0.44.0 to
# 0.61.0 write every one.
_BEGIN: Final = re.compile(rb'\{"\$set":\{"messages":\[(?:\]|\{"id":")')
_END: Final = re.compile(rb'[\[}]\],"lastUpdated":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"\}\}\Z')
_EDGE: Final = 64

_BOUNDARY: Final[json_line.Shape] = {
    "$rewindTo": None,
    "id": None,
    "$set": {"messages": list, "lastUpdated": None},
}

_UPDATE: Final = re.compile(rb'\s*\{\s*"\$set"\s*:\s*\{\s*"messages"\s*:\s*\[')


def boundary(line: Reversible[bytes], span: Span) -> Boundary | bool:
    """Say whether a line that holds `MARKER` is an update that replaces all messages.

    Such a line has all that was said so far, often hundreds of megabytes of it, so one that begins
    and ends as all clients write it is taken at its two ends, and what is between them not read.
    A line that was torn has no such end, whatever the client put behind it next: `$set` of a
    session's id, a message, metadata. Only a torn one that another of its kind follows without a
    newline, which no client does, is taken for a boundary and is none: a cut there loses nothing,
    and who needs to know what a resume loads parses the line (`live`). Whatever begins or
    ends in another way is parsed here.
    """
    begin = next(iter(line), b"")
    if _BEGIN.match(begin):
        end = b""
        for piece in reversed(line):
            end = piece[-_EDGE:] + end
            if len(end) >= _EDGE:
                break
        if found := _END.search(end):
            return Boundary(offset=span.start, timestamp=found[1].decode())
    return _parsed(line, span)


def _parsed(line: Iterable[bytes], span: Span) -> Boundary | bool:
    """Return what `boundary` does by all of the line, however it begins and ends."""
    values = json_line.values(line, span.size, _BOUNDARY)
    if values is None:
        return True
    changed = values.get("$set")
    if (
        isinstance(values.get("$rewindTo", 0), str | None)
        or isinstance(values.get("id", 0), str | None)
        or not isinstance(changed, dict)
        or changed.get("messages") is not True
    ):
        return False
    return Boundary(offset=span.start, timestamp=iso_time(changed.get("lastUpdated")))


def is_update(line: bytes) -> bool:
    """Tell by its beginning whether a line is an update that replaces all messages."""
    return _UPDATE.match(line) is not None


def replaces(record: Record, bytes_of: BytesOf) -> bool:
    """Tell whether a line is an update that replaces all messages, by all of it."""
    if MARKER not in record.line and record.is_whole:
        return False
    found = _parsed(_pieces(record, bytes_of), Span(0, record.size))
    return isinstance(found, Boundary)


def messages_in(
    record: Record, bytes_of: BytesOf, path: tuple[str, ...]
) -> Iterator[Iterator[Record]]:
    """Yield the arrays that a line has at `path`, each as its messages; see `arrays_at`."""
    return arrays_at(path, record, _pieces(record, bytes_of))


def _pieces(record: Record, bytes_of: BytesOf) -> Iterable[bytes]:
    return (record.line,) if record.is_whole else bytes_of(record)
