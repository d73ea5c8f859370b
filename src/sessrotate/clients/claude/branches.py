"""Which rows of a Claude Code session are of branches that the user went back from.

Rule: in doubt, a row is of none. What a resume sends is of none, nor is what that goes on from, in
the whole history: a row goes on from its parent, in each of its copies; a compaction, from what it
summed up, whatever it says of that; a row whose parent is in no file, from the row before it. If a
row goes back to before a compaction that preserved rows, it goes on from that compaction too, as
clients send it. Calls and results beside an answer belong to it. Only what then is left, and has
a message, is a branch that was rewound.

About 30 bytes are kept of each row while the history is read, and then eight of each that was left.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from sessrotate.clients.claude.loading import TRANSCRIPT
from sessrotate.clients.claude.rows import (
    Compaction,
    CompactMetadata,
    Turn,
    compaction_of,
    has_result,
    row_of,
    turn_of,
)
from sessrotate.clients.claude.thread import Numbering, digest

if TYPE_CHECKING:
    from sessrotate.parsing import Record

_NOWHERE: Final = -1

_SPOKEN: Final = 1
"""A row of the conversation, no agent's."""
_SAYS: Final = 2
"""A message: of a person, the client or the model."""
_RESULT: Final = 4
"""It brings the result of a tool."""
_MAIN: Final = 8
"""It is of no branch that was left; of an answer: one of its rows is."""
_LEFT: Final = 16
"""It is of one."""
_SEEN: Final = 32
"""It was looked at whether it goes on from one."""


def rewound(history: Iterable[Record], conversation: Iterable[Record]) -> Callable[[Record], bool]:
    """Return what tells whether a record is of a branch that the user went back from.

    `history` are all records, and `conversation` those that a resume sends.
    """
    # First, and as little as can be: what it takes to tell that is free then.
    sent = array("Q", (_known_by(uuid) for uuid in map(_uuid, conversation) if uuid is not None))
    tree = _Tree()
    for number, record in enumerate(history):
        row = turn_of.of(record)
        if row is not None and row.uuid is not None:
            tree.add(number, row, record)
    left = tree.left(sent)

    def is_left(record: Record) -> bool:
        uuid = _uuid(record) if left else None
        if uuid is None:
            return False
        at = bisect_left(left, _known_by(uuid))
        return at < len(left) and left[at] == _known_by(uuid)

    return is_left


def _uuid(record: Record) -> str | None:
    row = row_of.of(record)
    return None if row is None else row.uuid


def _known_by(uuid: str) -> int:
    return int.from_bytes(digest(uuid), "big")


class _Compaction(Struct, frozen=True):
    """A compaction: its place, what it goes on from, and the summary that preserved rows follow."""

    node: int
    place: int
    before: int
    names: array[int]
    anchor: int


class _Tree:
    """Rows by node: a node is a uuid, or the id of an answer, that was named somewhere."""

    def __init__(self) -> None:
        self._names: Final = Numbering()
        self._places: Final = array("i")
        """The number of the first record that is this row, `_NOWHERE` if there is none."""
        self._parents: Final = array("i")
        self._answers: Final = array("i")
        self._flags: Final = bytearray()
        self._more: Final[dict[int, list[int]]] = {}
        """Parents that a later copy of a row has and the first has not."""
        self._before: Final[dict[int, int]] = {}
        """The row before each row whose parent was in no line yet."""
        self._compactions: Final[list[_Compaction]] = []
        self._by_node: Final[dict[int, _Compaction]] = {}
        self._last = _NOWHERE

    def add(self, place: int, row: Turn, record: Record) -> None:
        """Note a row that has a uuid."""
        if row.is_sidechain:
            return
        node = self._node(row.uuid)
        parent = self._node(row.parent_uuid)
        if parent == _NOWHERE and b'"parentUuid"' not in record.line:
            parent = self._last  # no client writes such a row
        if self._places[node] == _NOWHERE:
            self._places[node], self._parents[node] = place, parent
            if parent != _NOWHERE and self._places[parent] == _NOWHERE:
                self._before[node] = self._last
            compaction = compaction_of.of(record) if row.subtype == "compact_boundary" else None
            if compaction is not None:
                self._compact(node, place, compaction)
        elif parent not in {_NOWHERE, self._parents[node]}:
            self._more.setdefault(node, []).append(parent)
        if row.type in TRANSCRIPT:
            says = row.type in {"user", "assistant"}
            self._flags[node] |= _SPOKEN | _SAYS * says | _RESULT * has_result(row)
            if row.type == "assistant" and row.message is not None and row.message.id is not None:
                self._answers[node] = self._node(f"answer {row.message.id}")
            self._last = node

    def _compact(self, node: int, place: int, row: Compaction) -> None:
        metadata = row.compact_metadata or CompactMetadata()
        messages, segment = metadata.preserved_messages, metadata.preserved_segment
        named: list[Any] = [row.logical_parent_uuid]
        anchor = None
        if segment is not None:
            named += [segment.head_uuid, segment.tail_uuid]
            anchor = segment.anchor_uuid
        if messages is not None:
            named += [*(messages.uuids or ()), *(messages.all_uuids or ())]
            anchor = messages.anchor_uuid or anchor
        nodes = array("i", (self._node(each) for each in named if isinstance(each, str)))
        found = _Compaction(node, place, self._last, nodes, self._node(anchor))
        self._by_node[node] = found
        self._compactions.append(found)

    def _node(self, name: str | None) -> int:
        if name is None:
            return _NOWHERE
        node = self._names.number(digest(name))
        if node == len(self._flags):
            for column in (self._places, self._parents, self._answers):
                column.append(_NOWHERE)
            self._flags.append(0)
        return node

    # ── what was left ────────────────────────────────────────────────────────────────────────

    def left(self, sent: Iterable[int]) -> array[int]:
        """Return the digests of the uuids that were left, sorted; `sent` are those of some others.

        A row that has no message is of a branch if one stands on either side of it there.
        """
        found = [self._names.find(each.to_bytes(8, "big")) for each in sent]
        seeds = array("i", (node for node in found if node is not None))
        if not seeds:
            return array("Q")
        self._mark(seeds)
        self._mark_beside()
        flags = self._flags
        for node in range(len(flags)):
            on = node if flags[node] & _SAYS else _NOWHERE
            while on != _NOWHERE and not flags[on] & (_MAIN | _LEFT):
                flags[on] |= _LEFT
                on = self._parents[on]
        for node in range(len(flags)):
            way, on = array("i"), node
            while on != _NOWHERE and not flags[on] & (_MAIN | _LEFT | _SEEN):
                flags[on] |= _SEEN
                way.append(on)
                on = self._parents[on]
            for each in way if on != _NOWHERE and flags[on] & _LEFT else ():
                flags[each] |= _LEFT
        is_left = _LEFT | _SPOKEN
        names = (name for node, name in self._names.digests() if flags[node] & is_left == is_left)
        return array("Q", sorted(int.from_bytes(name, "big") for name in names))

    def _mark(self, nodes: Iterable[int]) -> None:
        """Mark rows that were not left, and all that they go on from."""
        waiting = array("i", nodes)
        while waiting:
            node = waiting.pop()
            if node == _NOWHERE or self._flags[node] & _MAIN:
                continue
            self._flags[node] |= _MAIN
            if (answer := self._answers[node]) != _NOWHERE:
                self._flags[answer] |= _MAIN
            waiting.extend(self._goes_on_from(node))

    def _goes_on_from(self, node: int) -> Iterator[int]:
        compaction = self._by_node.get(node)
        if compaction is not None:
            known = [each for each in compaction.names if self._places[each] != _NOWHERE]
            yield from known or (compaction.before,)
        if self._parents[node] != _NOWHERE or node in self._more:
            parents = {self._parents[node], *self._more.get(node, ())} - {_NOWHERE}
            known = [parent for parent in parents if self._places[parent] != _NOWHERE]
            yield from known or (self._before.get(node, _NOWHERE),)
            for parent in parents:
                yield from self._crossed(parent, node)

    def _crossed(self, parent: int, node: int) -> Iterator[int]:
        """Yield the last compaction before a row, and its summary, if clients put them between."""
        place = self._places[node]
        at = bisect_left(self._compactions, place, key=lambda each: each.place)
        last = self._compactions[at - 1] if at else None
        if last is not None and last.anchor != _NOWHERE and self._places[parent] < last.place:
            yield from (last.node, last.anchor)

    def _mark_beside(self) -> None:
        """Mark what belongs to an answer that was not left: its other calls, and their results."""
        parts = array("i")
        for node, answer in enumerate(self._answers):
            if answer != _NOWHERE and self._flags[answer] & _MAIN:
                parts.append(node)
        self._mark(parts)
        results = array("i")
        for node, parent in enumerate(self._parents):
            is_part = parent != _NOWHERE and self._answers[parent] != _NOWHERE
            if self._flags[node] & _RESULT and is_part and self._flags[parent] & _MAIN:
                results.append(node)
        self._mark(results)
