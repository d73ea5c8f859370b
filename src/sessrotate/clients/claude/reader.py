"""The `Reader` of Claude Code: what the records of its sessions say.

Rule: each answer comes from the module beside it that knows it: `view`, `kinds`, `thread`,
`agents`, `preview`. Two are found here.

The rows from before the last compaction that a resume loads: those that a rotation carries
(`carried_lines`), in another way. The segments are read from the newest back, plain or compressed,
and only while rows are missing. A row that is nowhere is left out, as clients do.

The rows of branches that the user went back from. In doubt, a row is of none. What a resume sends
is of none, nor is what that goes on from, in the whole history: a row goes on from its parent, in
each of its copies; a compaction, from what it summed up, whatever it says of that; a row whose
parent is in no file, from the row before it. If a row goes back to before a compaction that
preserved rows, it goes on from that compaction too, as clients send it. Calls and results beside an
answer belong to it. Only what then is left, and has a message, is a branch that was rewound. About
30 bytes are kept of each row while the history is read, and then eight of each that was left.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from sessrotate.clients import opaque
from sessrotate.clients.claude import agents as claude_agents
from sessrotate.clients.claude import kinds, loading, preview, thread
from sessrotate.clients.claude import view as claude_view
from sessrotate.clients.claude.loading import TRANSCRIPT, Needed, preserved
from sessrotate.clients.claude.rows import (
    Compaction,
    CompactMetadata,
    Turn,
    compaction_of,
    has_result,
    row_of,
    turn_of,
)
from sessrotate.clients.claude.thread import DIGEST, digest
from sessrotate.clients.preview import Agent
from sessrotate.clients.protocol import Reading
from sessrotate.parsing import Record
from sessrotate.system.digest import Numbering

if TYPE_CHECKING:
    Part = Callable[[], Iterator[Record]]
    """Gives the records of a segment, to be read as often as is needed."""


# ── rows from before the last compaction ─────────────────────────────────────────────────────


class _Needs(Struct):
    """What the newest segment needs of those before it.

    `answers` are the answers of the model that have rows in it, by their messages' ids.
    """

    needed: Needed = field(default_factory=Needed)
    answers: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)


def _wanted_by(tail: Iterable[Record]) -> _Needs:
    """Return which rows from before it the newest segment needs; its first row is a compaction."""
    wanted = _Needs()
    for number, record in enumerate(tail):
        row = turn_of.of(record) or Turn()
        if not number and (compaction := compaction_of.of(record)) is not None:
            wanted.needed = preserved(compaction)
            # Of what such a compaction left out, clients that know the list see the names alone.
            knows = loading.says(compaction) and not loading.is_old(compaction.version)
            wanted.needed.has_ancestors = not knows
        if row.uuid is not None:
            wanted.own.add(row.uuid)
        if row.parent_uuid is not None and row.parent_uuid not in wanted.own:
            wanted.needed.chained.add(row.parent_uuid)
        if (answer := _answer(row)) is not None:
            wanted.answers.add(answer)
    wanted.needed.chained -= wanted.own
    wanted.needed.listed -= wanted.own
    return wanted


def _needed_rows(wanted: _Needs, older: Callable[[], Iterable[Part]]) -> Iterator[Record]:
    """Yield the needed rows in the order of the history; `older` gives the parts, nearest first."""
    needed = wanted.needed
    parts, taken = _found(wanted, older())
    heads = set(needed.walked.values())
    if not needed.has_ancestors and (needed.required | heads) - wanted.own - taken:
        # Of such a list, clients take no notice.
        needed.has_ancestors = True
        parts, _ = _found(wanted, older())
    for part, numbers in reversed(parts):
        for number, record in enumerate(part()):
            if number in numbers:
                yield record


def _found(wanted: _Needs, older: Iterable[Part]) -> tuple[list[tuple[Part, set[int]]], set[str]]:
    """Return which records of which parts are needed, by number, and their uuids."""
    parts, taken = [], set[str]()
    for part in older:
        if not wanted.needed.wanted() - taken:
            break
        numbers = _numbers(wanted, taken, part())
        if numbers:
            parts.append((part, numbers))
        elif parts:
            break  # what two neighbours do not have is nowhere
    return parts, taken


def _numbers(wanted: _Needs, taken: set[str], rows: Iterator[Record]) -> set[int]:
    """Return which rows are needed, by number, and add them to those that are `taken`."""
    known: dict[str, tuple[int, str | None, str | None]] = {}
    answers: dict[str, set[str]] = defaultdict(set)
    results: dict[str, set[str]] = defaultdict(set)
    for number, record in enumerate(rows):
        row = turn_of.of(record)
        if row is None or row.uuid is None:
            continue
        answer = _answer(row)
        known[row.uuid] = number, row.parent_uuid, answer
        if answer is not None:
            answers[answer].add(row.uuid)
        elif row.parent_uuid is not None and has_result(row):
            results[row.parent_uuid].add(row.uuid)
    numbers, needed = set(), wanted.needed
    while here := (needed.wanted() - taken) & known.keys():
        taken |= here
        for uuid in here:
            number, parent, answer = known[uuid]
            numbers.add(number)
            needed.follow(uuid, parent)
            if answer is not None:
                wanted.answers.add(answer)
        if needed.has_ancestors:
            for answer in wanted.answers & answers.keys():
                beside = answers[answer].union(*map(results.__getitem__, answers[answer]))
                needed.chained |= beside - wanted.own
    return numbers


def _answer(row: Turn) -> str | None:
    return row.message.id if row.type == "assistant" and row.message is not None else None


# ── branches that were rewound ───────────────────────────────────────────────────────────────

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
        self._names: Final = Numbering(DIGEST)
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


# ── the reader ───────────────────────────────────────────────────────────────────────────────


gists: Final = kinds.gists
line_key: Final = kinds.line_key
records: Final = opaque.records
said: Final = opaque.said
sight: Final = preview.look
view: Final = claude_view.view


def worded(literals: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return what lines have whose views say more: commands come as they were typed."""
    every = b"".join(literals)
    spaced = (b"<command-",) if b" " in every else ()
    return (*spaced, b"<bash-input>") if b"!" in every else spaced


def key(record: Record) -> bytes | None:
    """Return a row's own uuid, None if it has none."""
    return line_key(record.line) if record.is_whole else None


def loaded(session: Reading) -> Iterator[Record]:
    """Yield what a resume loads: the newest segment, before it the older rows that it needs.

    Older segments are opened only if such rows are not in the live file.
    """
    if session.newest:
        wanted = _wanted_by(session.segment(session.newest))
        yield from _needed_rows(wanted, session.older)
    yield from session.segment(session.newest)


def conversation(session: Reading, *, with_agents: bool = False) -> Iterator[Record]:
    """Yield the rows that a resume sends (`thread`): what it loads is read several times.

    That is without branches that the user left and, unless `with_agents`, without agents' rows;
    what a compaction preserved stands behind its summary.
    """
    return thread.conversation(lambda: loaded(session), with_agents=with_agents)


def rewound(session: Reading) -> Callable[[Record], bool]:
    """Return what tells whether a record is of a branch that the user went back from."""
    # First, and as little as can be: what it takes to tell that is free then.
    uuids = map(_uuid, conversation(session))
    sent = array("Q", (_known_by(uuid) for uuid in uuids if uuid is not None))
    tree = _Tree()
    for number, record in enumerate(session.history()):
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


def agents(session: Reading) -> list[Agent]:
    """Return the agents' transcripts.

    The history is read once where that takes to tell which tool call started which agent.
    """
    return claude_agents.with_calls(claude_agents.of(session.beside, session.id), session.history)
