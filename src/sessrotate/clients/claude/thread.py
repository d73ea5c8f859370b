"""The conversation in a Claude Code session's rows: which of them a resume sends, in which order.

Rule: the rows are a tree, and the conversation is the path from its newest leaf back to the root.
Agents' rows and branches that the user left are not part of it. The client decides which leaf that
is; tests compare with what 2.0.28, 2.1.112 and 2.1.330 send. Two passes: the first
keeps about 50 bytes of each row, the second yields the records.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from xxhash import xxh3_64_digest

from sessrotate.clients.claude.loading import TRANSCRIPT
from sessrotate.clients.claude.rows import (
    Compaction,
    CompactMetadata,
    Turn,
    compaction_of,
    has_result,
    seconds,
    turn_of,
)
from sessrotate.clients.common import in_order
from sessrotate.system.digest import Numbering

if TYPE_CHECKING:
    from sessrotate.parsing import Record

NEAR: Final = 5000
"""Milliseconds by which a row may be older that one follows whose parent is nowhere."""

_NOWHERE: Final = -1
_SILENT: Final = -2
"""The number of a row that is a link of the tree and says nothing: `progress`, up to 2.1.80."""


def conversation(
    records: Callable[[], Iterator[Record]], *, with_agents: bool = False
) -> Iterator[Record]:
    """Yield the records of the conversation, in its order.

    `with_agents`, each row of the conversation is followed by the agents' rows that stand behind it
    in the file. Those of a branch that the user left are not among them.

    `records` gives the rows that a resume loads, in the order of the file, as often as it is
    called; what it raises goes through. A uuid that stands there twice is its last row, as for
    the clients. A row whose parent is nowhere follows the row before it by time, if that is at most
    five seconds older (2.1.112 and 2.1.330;
    older clients begin the conversation there).
    """
    tree = _Tree()
    for number, record in enumerate(records()):
        row = turn_of.of(record)
        if row is not None and tree.add(number, row):
            tree.compact(number, compaction_of.of(record))
    yield from in_order(records, tree.order(with_agents=with_agents))


DIGEST: Final = 8
"""Bytes of a digest that a name is known by. To take one of two million names for another is less
likely than 1 in a million."""


def digest(name: str) -> bytes:
    """Return what a name is known by."""
    return xxh3_64_digest(name.encode("utf-8", "surrogatepass"))


class _Tree(Struct):
    """Rows by node: a node is a uuid that a row has, or that another names as its parent."""

    nodes: Numbering = field(default_factory=lambda: Numbering(DIGEST))
    numbers: array[int] = field(default_factory=lambda: array("i"))
    """The number of the node's record, `_NOWHERE` if there is none."""
    parents: array[int] = field(default_factory=lambda: array("i"))
    answers: array[int] = field(default_factory=lambda: array("i"))
    """Which answer of the model the row is a part of, a node too; `_NOWHERE` if of none."""
    times: array[float] = field(default_factory=lambda: array("d"))
    """Seconds since 1970, 0 where the row has no time."""
    spoken: array[int] = field(default_factory=lambda: array("i"))
    """The nodes of rows of the conversation that are no agent's, in the order of the file."""
    agents: dict[int, array[int]] = field(default_factory=dict)
    """The numbers of agents' rows, by the node behind whose row they stand."""
    results: bytearray = field(default_factory=bytearray)
    """Whether the node brings results of tools."""
    checkpoint: str | None = None
    compaction: CompactMetadata | None = None
    cut: int = _NOWHERE
    by_time: list[int] | None = None

    def add(self, number: int, row: Turn) -> bool:
        """Note a row; return whether it is a compaction."""
        kind, uuid = row.type, row.uuid
        if kind == "last-prompt" and isinstance(row.leaf_uuid, str):
            self.checkpoint = row.leaf_uuid or self.checkpoint
        if uuid is None:
            return False
        node = self._node(uuid)
        parent = row.parent_uuid
        self.parents[node] = _NOWHERE if parent is None else self._node(parent)
        self.numbers[node] = number if kind in TRANSCRIPT else _SILENT
        if kind not in TRANSCRIPT:
            return False
        if row.is_sidechain:
            before = self.spoken[-1] if self.spoken else _NOWHERE
            self.agents.setdefault(before, array("i")).append(number)
            return False
        self.spoken.append(node)
        self.times[node] = seconds(row.timestamp)
        self.checkpoint = None  # what was written down before is out of date
        if kind in {"user", "assistant"}:
            self._say(node, row)
            return False
        return row.subtype == "compact_boundary"

    def compact(self, number: int, row: Compaction | None) -> None:
        """Note the row that was just added as a compaction; the last one counts."""
        self.compaction, self.cut = None if row is None else row.compact_metadata, number

    def _say(self, node: int, row: Turn) -> None:
        message = row.message
        if message is None:
            return
        if row.type == "assistant":
            if message.id is not None:
                self.answers[node] = self._node(f"answer {message.id}")
        elif has_result(row):
            self.results[node] = True

    def _node(self, name: str) -> int:
        node = self.nodes.number(digest(name))
        if node == len(self.numbers):
            for column in (self.numbers, self.parents, self.answers):
                column.append(_NOWHERE)
            self.times.append(0)
            self.results.append(False)
        return node

    # ── the way back ─────────────────────────────────────────────────────────────────────────

    def order(self, *, with_agents: bool) -> array[int]:
        """Return the numbers of the conversation's records, in its order."""
        self._settle()
        self._relink()
        way = self._way(self._leaf())
        beside = self._beside(way)
        agents = self.agents if with_agents else {}
        found = array("i", agents.get(_NOWHERE, ()))
        for node in way:
            for each in (node, *beside.get(node, ())):
                if self.numbers[each] >= 0:
                    found.append(self.numbers[each])
                    found.extend(agents.get(each, ()))
        return found

    def _settle(self) -> None:
        """Put each node that was said where its last row is."""
        if any(not self.numbers[a] < self.numbers[b] for a, b in pairwise(self.spoken)):
            self.spoken = array("i", sorted(set(self.spoken), key=self.numbers.__getitem__))

    def _leaf(self) -> int:
        """Return the leaf: the end that 2.1.330 wrote down, else the last row without a child.

        2.1.80 and 2.1.112 take the newest such row by its time, and 2.0.28 the newest of all. In
        what they write the last is the newest, but for the output of `/compact`, of which 2.0.28
        loses the turns behind it.
        """
        node = self._known(self.checkpoint)
        if node != _NOWHERE:
            return node
        is_parent = bytearray(len(self.numbers) + 1)  # the last is for those that have none
        for parent in self.parents:
            is_parent[parent] = True
        ends = (node for node in reversed(self.spoken) if not is_parent[node])
        return next(ends, self.spoken[-1] if self.spoken else _NOWHERE)

    def _way(self, node: int) -> array[int]:
        way, seen = array("i"), bytearray(len(self.numbers))
        while node != _NOWHERE and not seen[node]:
            seen[node] = True
            if self.numbers[node] >= 0:
                way.append(node)
            if self.numbers[node] == _NOWHERE:
                node = self._before(way[-1], seen) if way else _NOWHERE
            else:
                node = self.parents[node]
        return way[::-1]

    def _before(self, node: int, seen: bytearray) -> int:
        """Return the row before this one by time, as 2.1.112 and 2.1.330 do.

        Of rows of one time that is the first in the file; it is not on the way yet.
        """
        if self.by_time is None:
            self.by_time = sorted(
                self.spoken, key=lambda each: (self.times[each], -self.numbers[each])
            )
        time = self.times[node]
        at = bisect_right(self.by_time, time, key=self.times.__getitem__)
        while at and seen[self.by_time[at - 1]]:
            at -= 1
        before = self.by_time[at - 1] if at else _NOWHERE
        is_near = (
            at and self.times[before] > 0 and round(1000 * (time - self.times[before])) <= NEAR
        )
        return before if is_near else _NOWHERE

    def _beside(self, way: array[int]) -> dict[int, list[int]]:
        """Return what belongs beside the way: node → the nodes that follow it.

        From 2.1.30 on each tool call of an answer is the parent of its own result, so that the
        way goes through one of them only. The others follow the last part of the answer that is
        on the way: first the calls, then the results.
        """
        last = array("i", [_NOWHERE]) * len(self.numbers)
        is_taken, is_said = bytearray(len(last)), bytearray(len(last))
        for node in way:
            is_taken[node] = True
            if self.answers[node] != _NOWHERE:
                last[self.answers[node]] = node
        for node in self.spoken:
            is_said[node] = True
        found: dict[int, list[int]] = {}
        for is_result in (False, True):
            for node in self.spoken:
                part = self.parents[node] if is_result else node
                if is_taken[node] or part == _NOWHERE or not is_said[part]:
                    continue
                answer = self.answers[part]
                behind = last[answer] if answer != _NOWHERE else _NOWHERE
                if behind != _NOWHERE and (not is_result or self.results[node]):
                    is_taken[node] = True
                    found.setdefault(behind, []).append(node)
        return found

    # ── what a compaction preserved ──────────────────────────────────────────────────────────

    def _relink(self) -> None:
        """Put the rows that the last compaction preserved behind its summary, all or none.

        So do 2.1.112 to 2.1.330: what followed the summary then follows the preserved rows, and
        all else from before the compaction is gone. What went back to it follows the preserved rows
        too in 2.1.330, and the row before it by time in 2.1.112.
        """
        metadata = self.compaction or CompactMetadata()
        messages, segment = metadata.preserved_messages, metadata.preserved_segment
        kept: list[int] = []
        anchor = _NOWHERE
        if messages is not None and messages.uuids is not None:
            kept = [self._known(uuid) for uuid in messages.uuids]
            anchor = self._known(messages.anchor_uuid)
        elif segment is not None:
            kept = self._segment(segment.head_uuid, segment.tail_uuid)
            anchor = self._known(segment.anchor_uuid)
        if not kept or _NOWHERE in (anchor, *kept):
            return
        gone = {node for node in self.spoken if self.numbers[node] < self.cut} - {*kept}
        for node in gone:
            self.numbers[node] = _NOWHERE
        self.spoken = array("i", (node for node in self.spoken if node not in gone))
        left = {anchor, *gone}
        for node in self.spoken:
            if self.parents[node] in left:
                self.parents[node] = kept[-1]
        for parent, node in zip([anchor, *kept], kept, strict=False):
            self.parents[node] = parent

    def _segment(self, head: str | None, tail: str | None) -> list[int]:
        """Return the nodes from `head` to `tail`, by their parents; none if that breaks."""
        first, node = self._known(head), self._known(tail)
        way: list[int] = []
        while _NOWHERE not in {first, node} and len(way) <= len(self.numbers):
            way.append(node if self.numbers[node] >= 0 else _NOWHERE)
            if node == first:
                return way[::-1]
            node = self.parents[node]
        return []

    def _known(self, uuid: Any) -> int:
        """Return the node of a row, `_NOWHERE` if it is not there."""
        node = self.nodes.find(digest(uuid)) if isinstance(uuid, str) else None
        return node if node is not None and self.numbers[node] >= 0 else _NOWHERE
