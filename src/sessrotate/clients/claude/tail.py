"""The rows of a session's history, each with where it stands, in bounded memory; and its tail.

Rule: a line's row is what `JSON.parse` makes of it, and no line over `LONGEST` is held. Of such a
line only brackets and strings are followed: if they close where the line ends it counts as the
object that they enclose, whatever stands between them.

The tail is what stands behind the place where a session is cut, as far as it says what else is
needed. It is read once, from the boundary to the end; what is asked rarely is read again then. Only
names are kept, never rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from sessrotate.clients.claude.loading import TRANSCRIPT
from sessrotate.clients.claude.rows import Link, link_of, seconds
from sessrotate.clients.claude.thread import NEAR
from sessrotate.model import Span
from sessrotate.parsing import LONG, LONGEST, Window, json_line
from sessrotate.parsing.json_stream import Cursor
from sessrotate.parsing.json_typed import DECLINED

if TYPE_CHECKING:
    from sessrotate.parsing import LineSpan
    from sessrotate.system.source import Source

    Found = tuple[int, int, Link | None]
    """Where a line starts and ends, without its newline, and the row on it; None if that is no
    object. No `Span`: there may be millions, and few are kept."""

_NAMES: Final[json_line.Shape] = {**dict.fromkeys(link_of.names), "message": {"id": None}}

_LONGEST_VALUE: Final = 6 * json_line.MAX_TEXT + 2
"""Bytes of a text that may be as short as `MAX_TEXT`: each character may be an escape."""


class Survey:
    """Passes over the lines of a source; one pass at a time, `window` bytes in view."""

    def __init__(self, source: Source, window: int) -> None:
        self._source: Final = source
        self._window: Final = Window(source, window)

    def forward(self, span: Span) -> Iterator[Found]:
        """Yield every line of `span` that is not empty."""
        return self._rows(self._window.forward(span))

    def backward(self, end: int) -> Iterator[Found]:
        """Yield every line before the one that ends at `end`, and that one, the last first."""
        return self._rows(self._window.backward(end))

    def _rows(self, places: Iterator[LineSpan]) -> Iterator[Found]:
        decode, view = link_of.fast, self._window.view
        for start, end, at in places:
            if at == LONG:
                yield start, end, self._long(Span(start, end))
                continue
            try:
                yield start, end, decode(view[at : at + end - start])
            except DECLINED:
                yield start, end, self._refused(Span(start, end))

    def _long(self, span: Span) -> Link | None:
        if span.size > LONGEST:
            return self._followed(span)
        with memoryview(bytearray(span.size)) as line:
            self._source.fill(line, span.start)
            try:
                return link_of.fast(line)
            except DECLINED:
                return self._refused(span)

    def _refused(self, span: Span) -> Link | None:
        found = json_line.values(self._source.pieces(span), span.size, _NAMES)
        return None if found is None else link_of.fitted(found)

    def _followed(self, span: Span) -> Link | None:
        cursor = Cursor(self._source.pieces(span))
        found = _followed(cursor, _NAMES)
        return link_of.fitted(found) if cursor.is_closed and not cursor.next() else None


def _followed(cursor: Cursor, shape: json_line.Shape) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in cursor.members():
        inner = None if name is None else shape.get(name)
        if isinstance(inner, dict) and cursor.next() == b"{":
            found[name or ""] = _followed(cursor, inner)
            continue
        cursor.next()
        value = cursor.value(_LONGEST_VALUE)
        if name is not None and name in shape:
            is_short = value.size <= _LONGEST_VALUE
            found[name] = json_line.scalar(value.text) if is_short else None
    return found


# ── the tail ──────────────────────────────────────────────────────────────────────────────────────

PER_NAME: Final = 120
"""What CPython takes for a uuid, with its share of a set."""

_NONE: Final = "00000000-0000-0000-0000-000000000000"
"""What a `last-prompt` names before anything was said (2.1.330)."""


class Tail(Struct):
    """The rows from a boundary on."""

    uuids: set[str] = field(default_factory=set)
    parents: set[str] = field(default_factory=set)
    """The rows that these continue, and that are none of them."""
    answers: set[str] = field(default_factory=set)
    """The answers of the model that have rows here, by the ids of their messages."""
    newest: str = ""
    """The latest time of a row of the conversation."""
    is_spoken: bool = False
    """Whether a message follows the boundary: its summary, or what came after."""
    checkpoint: str | None = None
    """The row that 2.1.330 goes on from, where a `last-prompt` behind all others names one."""


def read(survey: Survey, span: Span, take: Callable[[int], None]) -> Tail:
    """Return what stands in `span`; `take` is told the bytes that are kept for each name."""
    tail = Tail()
    for row in _rows(survey, span):
        uuid, parent = name(row.uuid), name(row.parent_uuid)
        if uuid is not None and uuid not in tail.uuids:
            take(PER_NAME + len(uuid))
            tail.uuids.add(uuid)
        # Mostly the parent came before, and need not be kept twice.
        if parent is not None and parent not in tail.uuids and parent not in tail.parents:
            take(PER_NAME + len(parent))
            tail.parents.add(parent)
        if row.type == "last-prompt":
            tail.checkpoint = name(row.leaf_uuid) if isinstance(row.leaf_uuid, str) else None
        if row.type in TRANSCRIPT and not row.is_sidechain:
            tail.checkpoint = None
            tail.newest = max(tail.newest, name(row.timestamp) or "")
            tail.is_spoken |= row.type in {"user", "assistant"}
        answer = answer_of(row)
        if answer is not None and answer not in tail.answers:
            take(PER_NAME + len(answer))
            tail.answers.add(answer)
    tail.parents -= tail.uuids
    if tail.checkpoint in {*tail.uuids, _NONE}:
        tail.checkpoint = None
    return tail


def crossing(survey: Survey, span: Span, copies: set[str]) -> set[str]:
    """Return what the rows of `span` that are no copies continue, and that is not in `span`."""
    uuids, parents = set[str](), set[str]()
    for row in _rows(survey, span):
        if row.uuid is not None:
            uuids.add(row.uuid)
        if row.uuid not in copies and (parent := name(row.parent_uuid)) is not None:
            parents.add(parent)
    return parents - uuids


def is_told_apart(
    survey: Survey, span: Span, copies: set[str], listed: set[str], carried: set[str]
) -> bool:
    """Tell whether no other row of `span` has to do with these copies of rows from before it.

    None continues one, or is of the same answer, and a resume does not go on from one. The rows
    that the compaction listed have their places, whatever they continue. `carried` are the answers
    of the rows that stay of those before `span`.
    """
    answers: tuple[set[str], set[str]] = {*carried}, set()
    last = checkpoint = None
    for row in _rows(survey, span):
        is_copy = row.uuid in copies
        is_other = not is_copy and row.uuid not in listed
        if is_other and row.parent_uuid in copies:
            return False
        if (answer := answer_of(row)) is not None:
            answers[is_copy].add(answer)
        if row.type in TRANSCRIPT and not row.is_sidechain and row.uuid is not None:
            last = row.uuid
            checkpoint = checkpoint if is_copy else None  # what goes on behind it makes it void
        elif row.type == "last-prompt" and isinstance(row.leaf_uuid, str):
            checkpoint = row.leaf_uuid  # 2.1.330 goes on from there, older clients from the last
    return (checkpoint or last) not in copies and answers[0].isdisjoint(answers[1])


def is_near(survey: Survey, span: Span, orphans: set[str], newest_before: float) -> bool:
    """Tell whether rows whose parents are nowhere follow rows of `span` all the same.

    2.1.112 and later have such a row follow the one before it by time, if that is at most five
    seconds older. `newest_before` is the latest time of the rows before `span`, in seconds.
    """
    times: list[float] = []
    for row in _rows(survey, span) if orphans else ():
        time = seconds(name(row.timestamp))
        if name(row.parent_uuid) in orphans:
            nearest = max((other for other in times if other <= time), default=0.0)
            is_out_of_reach = newest_before < time - NEAR / 1000
            if not time or not (is_out_of_reach or newest_before < nearest):
                return False
        if row.type in TRANSCRIPT and not row.is_sidechain and time:
            times = [*times[-_RECENT:], time]
    return True


_RECENT: Final = 1000
"""Of how many rows the time is kept: what is at most five seconds older is among the last ones."""


def name(text: str | None) -> str | None:
    """Return what names a row, or is its time; a text that is longer than either is none."""
    return None if text is None or len(text) > json_line.MAX_TEXT else text


def answer_of(row: Link) -> str | None:
    """Return the answer of the model that a row is a part of."""
    message = row.message if row.type == "assistant" else None
    return None if message is None else name(message.id)


def _rows(survey: Survey, span: Span) -> Iterator[Link]:
    return (row for _, _, row in survey.forward(span) if row is not None)
