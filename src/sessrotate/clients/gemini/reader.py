"""What the records of Gemini CLI's append-only sessions (`.jsonl`, 0.39 and later) say.

Promise: a record is a line; the lines of a session come as its messages, as said (`said`) or as a
resume sends them (`conversation`).

Rule: for people, a message keeps its first place, and has its last version there. The client
appends the last message again each time it learns more of it, such as what its tools gave (0.61.0:
`getLastMessage`); so of neighbouring lines with one id, the last one counts. An update that
replaces all messages repeats what was said, mostly under the same ids, after a compression under
new ones. Of an update, only what is new counts: what a compression left of the conversation. The
earlier copies stay, because later ones have long results cut. What `$rewindTo` takes back stays
too: it was said.

A resume loads them as the client rebuilds them (0.61.0, `loadConversationRecord`). A message with a
known id takes the place of the one before it. An update of `messages` replaces all messages.
`$rewindTo` takes back a message and everything after it, or all messages if none has that id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import xxhash
from msgspec.structs import replace

from sessrotate.clients import opaque
from sessrotate.clients.common import in_order, text
from sessrotate.clients.gemini import folders, preview
from sessrotate.clients.gemini import view as gemini_view
from sessrotate.clients.gemini.rows import (
    NAMED,
    NONE,
    UPDATED,
    Row,
    id_at,
    identity,
    is_update,
    messages_in,
    replaces,
    row_of,
)
from sessrotate.clients.gemini.view import is_sent
from sessrotate.clients.preview import EDGE, Agent
from sessrotate.clients.protocol import Reading
from sessrotate.errors import SessrotateError
from sessrotate.parsing import Record

if TYPE_CHECKING:
    from sessrotate.clients.gemini.rows import BytesOf

# ── of a line ────────────────────────────────────────────────────────────────────────────────


records: Final = opaque.records
sight: Final = preview.sight
view: Final = gemini_view.view


def key(record: Record) -> bytes | None:
    """Return a message's id, None for any other line, which only an equal one is a copy of."""
    found = identity(record) if record.is_whole else None
    return None if found is None else found.encode("utf-8", "surrogatepass")


def worded(literals: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return what lines have whose views say more: a thought's subject is put in asterisks."""
    return (b'"subject"',) if any(b"*" in literal for literal in literals) else ()


# ── what people read ─────────────────────────────────────────────────────────────────────────────


_BETWEEN: Final = 64
"""Small updates that may stand between two lines of one message."""


def said(lines: Iterable[Record], bytes_of: BytesOf) -> Iterator[Record]:
    """Yield the messages, each once, and the small lines between them.

    A message that only an update has is a record of its own, with its place and its bytes in that
    update. The update itself comes before it, as a record that `is_carried`; of several updates
    with nothing new between them, only the last one comes. A tool's result is left out if the
    message that called the tool has it too (0.44 and later write both). `bytes_of` gives all bytes
    of a line that is too long to be held. Memory grows with the number of messages.
    """
    told = _Told()
    for line in lines:
        if is_update(line.line) or replaces(line, bytes_of):
            yield from told.update(line, bytes_of)
        else:
            yield from told.line(line)
    yield from told.rest()


class _Told:
    """What was told so far, and what waits because more of it may come."""

    def __init__(self) -> None:
        self._known: set[str] = set()  # ids of messages
        self._parts: set[bytes] = set()  # what messages consist of: texts, calls, results
        self._update: Record | None = None
        self._waiting: list[Record] = []  # a message, and the small lines behind it
        self._last: str | None = None  # the id of that message
        self._held: set[bytes] = set()  # its parts

    def line(self, line: Record) -> Iterator[Record]:
        """Take the next line; yield what need not wait any longer."""
        row = row_of(line) or NONE
        name = row.id if row.kind == "message" else None if line.is_whole else id_at(line.line)
        if name is None:
            self._waiting.append(line)
            if len(self._waiting) > _BETWEEN:
                yield from self._let_go()
            return
        parts = {*_parts(row)}
        if name == self._last and self._waiting:
            self._waiting[0], self._held = line, parts
            return
        yield from self._let_go()
        self._known.add(name)
        is_result = bool(parts) and all(part[:1] == _RESULT for part in parts)
        if not (is_result and parts <= self._parts):
            yield from self._let_update_go()
            self._waiting, self._last, self._held = [line], name, parts

    def update(self, line: Record, bytes_of: BytesOf) -> Iterator[Record]:
        """Take an update that replaces all messages; yield what waited, and what is new in it."""
        yield from self._let_go()
        self._update = replace(line, is_carried=True)
        for elements in messages_in(line, bytes_of, UPDATED):
            for each in elements:
                if self._is_new(each):
                    yield from self._let_update_go()
                    yield each

    def rest(self) -> Iterator[Record]:
        """Yield what still waits."""
        yield from self._let_go()
        yield from self._let_update_go()

    def _is_new(self, message: Record) -> bool:
        name = id_at(message.line)  # most are known by that, and need not be parsed
        if name is None or name in self._known:
            return False
        parts = {*_parts(row_of(message) or NONE)}
        if parts <= self._parts and message.is_whole:
            return False
        self._known.add(name)
        self._parts |= parts
        return True

    def _let_go(self) -> Iterator[Record]:
        waiting, self._waiting, self._last = self._waiting, [], None
        self._parts |= self._held
        yield from waiting

    def _let_update_go(self) -> Iterator[Record]:
        if self._update is not None:
            yield self._update
            self._update = None


_TEXT: Final = b"t"
_CALL: Final = b"c"
_RESULT: Final = b"r"


def _parts(row: Row) -> Iterator[bytes]:
    """Yield what a message consists of, each part as 17 bytes that only equal parts share.

    A call and its result are known by the call's id, whether they are fields of the message or
    parts of its content. Thoughts do not count: only some copies have them.
    """
    for call in row.tool_calls:
        yield _digest(_CALL, call.id)
        if call.result:
            yield _digest(_RESULT, call.id)
    for part in row.content if isinstance(row.content, list) else [row.content]:
        match part:
            case {"functionCall": dict(called)}:
                yield _digest(_CALL, text(called, "id") or "")
            case {"functionResponse": dict(given)}:
                yield _digest(_RESULT, text(given, "id") or "")
            case {"thought": is_thought} if is_thought:
                pass
            case str(words) | {"text": str(words)}:
                if part:
                    yield _digest(_TEXT, words)
            case _ if part:
                yield _digest(_TEXT, json.dumps(part))


def _digest(kind: bytes, words: str) -> bytes:
    return kind + xxhash.xxh3_128_digest(words.encode("utf-8", "surrogatepass"))


# ── what a resume loads ───────────────────────────────────────────────────────────────────────────

_REWIND: Final = b'"$rewindTo"'


def live(session: Reading) -> Iterator[Record]:
    """Yield the lines that a resume needs: metadata, and all from the last full update on.

    If a segment turns out to begin with a torn line instead of such an update, the segment before
    it is read too.
    """
    base = session.newest
    while base and not _is_base(session, base):
        base -= 1
    if base:
        with suppress(SessrotateError):  # a resume does without it where the first one was pruned
            first = next(iter(session.segment(0)), None)
            if first is not None and (row_of(first) or NONE).kind == "metadata":
                yield first
    for index in range(base, session.newest + 1):
        yield from session.segment(index)


def _is_base(session: Reading, index: int) -> bool:
    with suppress(SessrotateError):
        first = next(iter(session.segment(index)), None)
        return first is not None and replaces(first, session.bytes_of)
    return False


def conversation(
    session: Reading,
    *,
    with_agents: bool = False,  # noqa: ARG001 - agents have files of their own
) -> Iterator[Record]:
    """Yield the messages that a resume sends, in its order; those of updates one by one.

    The live lines are read twice. Memory grows with the number of messages.
    """
    order: dict[str, int] = {}
    number = 0
    for record, name in _steps(session, live(session)):
        if record is None:
            _take_back(order, name)
            continue
        if name is not None:
            order[name] = number
        number += 1

    def records() -> Iterator[Record]:
        return (record for record, _ in _steps(session, live(session)) if record is not None)

    for found in in_order(records, [*order.values()]):
        row = row_of(found)
        if row is None or is_sent(row):
            yield found


def rewound(session: Reading) -> Callable[[Record], bool]:
    """Return what tells whether a message was taken back by `$rewindTo`, and did not come again."""
    left: set[str] = set()
    order: dict[str, None] = {}
    if any(_REWIND in record.line for record in session.history()):
        for record, name in _steps(session, session.history()):
            if record is not None and name is not None:
                left.discard(name)
                order[name] = None
            elif record is None and name is None:
                order.clear()  # an update: what it repeats was not taken back
            elif record is None:
                left |= _take_back(order, name)
    return lambda record: bool(left) and identity(record) in left


def _take_back(order: dict[str, Any], name: str | None) -> set[str]:
    """Drop a message and all after it, or all if none has this id; return which those were."""
    names = [*order]
    gone = names[names.index(name) if name in order else 0 :]
    for each in gone:
        del order[each]
    return {*gone}


def _steps(session: Reading, lines: Iterable[Record]) -> Iterator[tuple[Record | None, str | None]]:
    """Yield each message and its id; without a message, the id that is gone back to, or None."""
    for record in lines:
        if replaces(record, session.bytes_of):
            for elements in messages_in(record, session.bytes_of, UPDATED):
                yield None, None
                yield from ((each, identity(each)) for each in elements)
            continue
        row = row_of(record) or NONE
        match row.kind:
            case "rewind":
                yield None, row.rewind_to
            case "metadata" if row.messages is not None:
                for elements in messages_in(record, session.bytes_of, NAMED):
                    yield from ((each, identity(each)) for each in elements)
            case _:
                yield record, identity(record)


# ── of the session ───────────────────────────────────────────────────────────────────────────


_METADATA: Final = 64
"""Lines among which a session names itself."""


def agents(session: Reading) -> list[Agent]:
    """Return the transcripts of the session's agents, in the order of their ids.

    A tool call says which agent it started, by `agentId` (0.45 and later).
    """
    found = folders.agents_of(session.path, _own_id(session) or "")
    calls = _calls(session) if found else {}
    return [_agent(path, calls) for path in found]


def folder(path: Path, head: bytes, known: Iterable[str]) -> str:
    """Return the folder in which a session was run, or what its project is called (`folders`).

    That is the word that the client has for it, or the first characters of its hash.
    """
    project, digest = path.parent.parent, preview.project_hash(head)
    return (
        _told(project, digest)
        or folders.folder_of(project, digest, known)
        or folders.short_name(project)
    )


# The client's own notes of where projects are are read once for each, not for each session.
@lru_cache(maxsize=4096)
def _told(project: Path, digest: str | None) -> str | None:
    return folders.folder_of(project, digest)


beside: Final = folders.beside


def _agent(path: Path, calls: dict[str, str]) -> Agent:
    name = folders.session_of(path.name)
    seen = sight(folders.beginning(path, EDGE), b"", is_whole=False)
    asked = seen.title.text if seen.title.source == "first prompt" else None
    return Agent(name, path, path.stat().st_size, calls.get(name), asked)


def _calls(session: Reading) -> dict[str, str]:
    """Return the calls that started agents, by the agent's id."""
    found: dict[str, str] = {}
    for record in session.history():
        if b'"agentId"' in record.line:
            for call in (row_of(record) or NONE).tool_calls:
                if call.agent_id is not None and call.id:
                    found[call.agent_id] = call.id
    return found


def _own_id(session: Reading) -> str | None:
    """Return the uuid that a session names itself with, None where its beginning has none."""
    for record in islice(session.history(), _METADATA):
        row = row_of(record) or NONE
        if row.kind == "metadata":
            return row.session_id
    return None
