"""The `Reader` of Claude Code: what the records of its sessions say.

Rule: each answer comes from the module beside it that knows it: `view`, `kinds`, `thread`,
`branches`, `agents`, `preview`. Only the rows from before the last compaction that a
resume loads are found here: those that a rotation carries (`carried_lines`), in another way. The
segments are read from the newest back, plain or compressed, and only while rows are missing. A row
that is nowhere is left out, as clients do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from sessrotate.clients import opaque
from sessrotate.clients.claude import agents as claude_agents
from sessrotate.clients.claude import branches, kinds, loading, preview, thread
from sessrotate.clients.claude import view as claude_view
from sessrotate.clients.claude.loading import Needed, preserved
from sessrotate.clients.claude.rows import Turn, compaction_of, has_result, turn_of
from sessrotate.clients.preview import EDGE, Agent, Title
from sessrotate.clients.protocol import Reading
from sessrotate.parsing import Record

if TYPE_CHECKING:
    Part = Callable[[], Iterator[Record]]
    """Gives the records of a segment, to be read as often as is needed."""


# ── rows from before the last compaction ─────────────────────────────────────────────────────


class Needs(Struct):
    """What the newest segment needs of those before it.

    `answers` are the answers of the model that have rows in it, by their messages' ids.
    """

    needed: Needed = field(default_factory=Needed)
    answers: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)


def wanted_by(tail: Iterable[Record]) -> Needs:
    """Return which rows from before it the newest segment needs; its first row is a compaction."""
    wanted = Needs()
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


def found(wanted: Needs, older: Callable[[], Iterable[Part]]) -> Iterator[Record]:
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


def _found(wanted: Needs, older: Iterable[Part]) -> tuple[list[tuple[Part, set[int]]], set[str]]:
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


def _numbers(wanted: Needs, taken: set[str], rows: Iterator[Record]) -> set[int]:
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
        wanted = wanted_by(session.segment(session.newest))
        yield from found(wanted, session.older)
    yield from session.segment(session.newest)


def conversation(session: Reading, *, with_agents: bool = False) -> Iterator[Record]:
    """Yield the rows that a resume sends (`thread`): what it loads is read several times.

    That is without branches that the user left and, unless `with_agents`, without agents' rows;
    what a compaction preserved stands behind its summary.
    """
    return thread.conversation(lambda: loaded(session), with_agents=with_agents)


def rewound(session: Reading) -> Callable[[Record], bool]:
    """Return what tells whether a row is of a branch that was rewound (`branches`)."""
    return branches.rewound(session.history(), conversation(session))


def title(session: Reading) -> Title:
    """Return the title; all of a file that was never split is read for it."""
    return preview.exact(lambda: session.titled(EDGE), session.id)


def agents(session: Reading) -> list[Agent]:
    """Return the agents' transcripts.

    The history is read once where that takes to tell which tool call started which agent.
    """
    return claude_agents.with_calls(claude_agents.of(session.beside, session.id), session.history)
