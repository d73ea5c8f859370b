"""What the records of a Codex session say, and what of it a resume loads: its `Reader`.

Rule: the client decides. A compaction that carries its history is a complete base: a resume needs
nothing from before it (0.105 and later; `codex-rs/core`, rollout_reconstruction). Without such a
compaction, a resume loads everything, and each compaction keeps only what the user asked and its
own summary (0.36 to 0.101).

All else comes from the module that knows it: `view`, `copies`, `preview`. Nothing is kept beside a
session, and an agent's rollout is a session of its own, whose source says so.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final

from sessrotate.clients import opaque
from sessrotate.clients.codex import copies, preview
from sessrotate.clients.codex import view as codex_view
from sessrotate.clients.codex.rows import (
    Compacted,
    Event,
    EventMsg,
    ResponseItem,
    Row,
    UnknownRow,
    Unsent,
    is_bare,
    row_of,
)
from sessrotate.clients.common import in_order
from sessrotate.clients.protocol import Reading
from sessrotate.parsing import Record
from sessrotate.parsing.json_stream import arrays_at

# ── what a resume loads ──────────────────────────────────────────────────────────────────────


_ROLLED_BACK: Final = b'"thread_rolled_back"'
_STARTED: Final = b'"task_started"'

_HISTORY: Final = ("payload", "replacement_history")


def conversation(
    session: Reading,
    *,
    with_agents: bool = False,  # noqa: ARG001 - agents have sessions of their own
) -> Iterator[Record]:
    """Yield what a resume sends, in the order of the conversation: messages, calls, results.

    The items of a compaction's history are records of their own, which lie inside its line. Turns
    that the user took back are left out. The live records are read several times.
    """
    return in_order(lambda: (record for record, _, _ in _rows(session)), _kept(session))


def rewound(session: Reading) -> Callable[[Record], bool]:
    """Return what tells whether a row was taken back: what stands from a turn to a rollback.

    The rollback's own row is the first behind it. Forks leave their trunk as it is.
    """
    begun: tuple[int, int] | None = None
    turns: list[tuple[int, int]] = []
    spans: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for record in session.history():
        place = record.segment, record.offset
        if _ROLLED_BACK in record.line:
            count = _rolled_back(row_of(record))
            if count and turns:
                while spans and spans[-1][0] >= turns[-min(count, len(turns))]:
                    spans.pop()
                spans.append((turns[-min(count, len(turns))], place))
                del turns[-count:]
        elif _STARTED in record.line:
            begun = place
        elif begun is not None and (row := row_of(record)) is not None and _is_prompt(row):
            turns.append(begun)
            begun = None

    def is_rewound(record: Record) -> bool:
        place = record.segment, record.offset
        at = bisect_right(spans, place, key=lambda span: span[0])
        return bool(at) and place < spans[at - 1][1]

    return is_rewound


def base(session: Reading) -> int:
    """Return the segment with which a resume can start; 0 if it needs all of them.

    In 0.118 to 0.145, a user who takes back turns takes back the compactions in them too. So none
    that a rollback follows is the base: what is left follows from all of the history.
    """
    for index in range(session.newest, 0, -1):
        rows = session.segment(index)
        first = next(rows, None)
        if any(_ROLLED_BACK in each.line and _rolled_back(row_of(each)) for each in rows):
            return 0
        if first is not None and _carries(row_of(first)):
            return index
    return 0


def _carries(row: Row | None) -> bool:
    return isinstance(row, Compacted) and row.payload.carries


def _is_prompt(row: Row) -> bool:
    return isinstance(row, ResponseItem) and codex_view.prompt(row) is not None


def _rolled_back(row: Row | None) -> int:
    """Return how many turns a row takes back."""
    match row:
        case EventMsg(payload=Event(type="thread_rolled_back", num_turns=int(number))):
            return max(0, number)
    return 0


def items(compaction: Record, pieces: Iterable[bytes]) -> Iterator[Record]:
    """Yield the items of a compaction's history as records, each where it stands in its segment.

    `pieces` is the whole line. Memory is one item's; of one that is too long, only the beginning
    is kept. What is damaged ends the history, and is no error.
    """
    for item in chain.from_iterable(arrays_at(_HISTORY, compaction, pieces)):
        if item.is_ended and item.line.startswith(b"{"):
            yield item


def _rows(session: Reading) -> Iterator[tuple[Record, Row, bool]]:
    """Yield the rows that make up the history, each compaction's own items behind it.

    Each with whether it is such an item.
    """
    for index in range(base(session), session.newest + 1):
        for record in session.segment(index):
            row = row_of(record)
            if row is None:
                continue
            yield record, row, False
            if _carries(row):
                for item in items(record, session.bytes_of(record)):
                    yield item, row_of(item) or UnknownRow("", item={}), True


def _kept(session: Reading) -> array[int]:
    """Return the numbers of the rows that are sent, in order."""
    history = _History()
    for number, (_, row, is_left) in enumerate(_rows(session)):
        match row:
            case Compacted():
                history.compact(None if _carries(row) else number)
            case ResponseItem(payload=Unsent()):
                pass  # the client keeps it for itself
            case ResponseItem() | UnknownRow(item=dict()):
                history.add(number, is_prompt=_is_prompt(row), is_left=is_left)
            case EventMsg(payload=Event(type="task_started")):
                history.begin_turn()
            case _:
                history.take_back(_rolled_back(row))
    return history.sent


class _History:
    """What is sent, by numbers, and what was sent before each turn of the user."""

    def __init__(self) -> None:
        self.sent = array("Q")
        self._asked = array("Q")  # those of them that the user asked
        self._replaced: list[tuple[array[int], array[int]]] = []
        self._turns: list[tuple[int, int, int]] = []
        self._begun: tuple[int, int, int] | None = None

    def begin_turn(self) -> None:
        """Note that a turn begins; it is the user's if he asks something in it."""
        self._begun = len(self._replaced), len(self.sent), len(self._asked)

    def add(self, number: int, *, is_prompt: bool, is_left: bool) -> None:
        """Add an item; `is_left`: a compaction left it."""
        if is_prompt:
            if self._begun is not None and not is_left:
                self._turns.append(self._begun)
                self._begun = None
            self._asked.append(number)
        self.sent.append(number)

    def compact(self, summary: int | None) -> None:
        """Replace the history: by items to come, or by what was asked and the summary."""
        self._replaced.append((self.sent, self._asked))
        kept = array("Q") if summary is None else self._asked
        self.sent, self._asked = kept[:], kept[:]
        if summary is not None:
            self.sent.append(summary)

    def take_back(self, count: int) -> None:
        """Undo so many of the user's turns, with the compactions in them."""
        if not count or not self._turns:
            return
        replaced, sent, asked = self._turns[-min(count, len(self._turns))]
        del self._turns[-count:]
        if replaced < len(self._replaced):
            self.sent, self._asked = self._replaced[replaced]
            del self._replaced[replaced:]
        del self.sent[sent:]
        del self._asked[asked:]


# ── the reader ───────────────────────────────────────────────────────────────────────────────


agents: Final = opaque.agents
copied: Final = copies.copied
records: Final = opaque.records
said: Final = opaque.said
sight: Final = preview.sight
view: Final = codex_view.view
worded: Final = codex_view.worded


def key(record: Record) -> bytes | None:
    """Return what makes two records copies of one: all their bytes.

    No client copies rows within a file. Bare rows have no time, so that the same thing, asked
    twice, has the same bytes: each is known by its place.
    """
    return b"%d:%d" % (record.segment, record.offset) if is_bare(record) else None
