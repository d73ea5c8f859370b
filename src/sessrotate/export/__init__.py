"""A session for people and programs, each record once: one module for each format.

Promise: a session → a document. In comes an open session, and the scope: all of it, or a part. Out
comes text in pieces: JSON lines, Markdown, or a page. May import `render`, `reading` and below.

Rule: each has a function `pieces(session, scope)` that yields the output in pieces, in constant
memory. What goes into a document is the same for every format. A record that stands in a session
that was written before stays there, if the two are named together. What a client's reader knows to
be rewound, and what agents said there, is left out or marked; a line that belongs to no
conversation, or that nobody can read, stays wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from sessrotate import render, safe_text
from sessrotate.clients.view import ToolCall, View
from sessrotate.parsing import Record
from sessrotate.reading import BranchEdge, part
from sessrotate.reading.deduplicate import Copies, Seen, digest, known_by, nothing_seen, once
from sessrotate.reading.part import ALL, Part, Spot, Within, turns_of
from sessrotate.units import Moment

if TYPE_CHECKING:
    from sessrotate.parsing import Record
    from sessrotate.reading import Viewed
    from sessrotate.reading.session import Session


# ── branches that were rewound ───────────────────────────────────────────────────────────────


class Branches:
    """Tells the branches of one session apart, while its records come in the order of the history.

    Before the first record comes, the history is read once for it. `leave` is told what is left
    out.
    """

    def __init__(
        self, session: Session, *, all_branches: bool, leave: Callable[[Session, Record], None]
    ) -> None:
        self._session = session
        self._all = all_branches
        self._leave = leave
        self.is_in = False
        """Whether the last record that came is in a branch that was rewound."""
        self.left_out = 0
        """How many records were left out until now."""
        self.left_calls: set[str | None] = set()
        """The tool calls in them, by their ids."""

    def told(self, items: Iterable[Viewed]) -> Iterator[Viewed | BranchEdge]:
        """Yield what is to be shown, and the edges of branches, or the places of those left out."""
        is_rewound = self._session.reader.rewound(self._session)
        here = 0
        for record, view in items:
            # What waited in the client's queue has no place in the tree of the conversation.
            is_said = view is not None and view.kind != "other" and view.queue is None
            is_its_own = is_said and view is not None and not view.is_sidechain
            if is_its_own and is_rewound(record) != self.is_in:
                if self._all or self.is_in:
                    yield BranchEdge(is_end=self.is_in, left_out=self.left_out - here)
                self.is_in, here = not self.is_in, self.left_out
            if view is not None and is_said and self.is_in and not self._all:
                self.left_out += 1
                self._leave(self._session, record)
                self.left_calls |= _calls(view)
            else:
                yield record, view
            del record, view  # before the next one is read: each may have megabytes
        if self.is_in:
            yield BranchEdge(is_end=True, left_out=self.left_out - here)


def _calls(view: View) -> set[str | None]:
    return {block.id for block in view.blocks if isinstance(block, ToolCall)}


def calls_noted(
    items: Iterable[Viewed | BranchEdge], calls: set[str | None]
) -> Iterator[Viewed | BranchEdge]:
    """Yield the same, and note the tool calls in them, by their ids."""
    for item in items:
        if not isinstance(item, BranchEdge) and item[1] is not None:
            calls |= _calls(item[1])
        yield item
        del item


# ── the scope ────────────────────────────────────────────────────────────────────────────────


_LONGEST_NAME: Final = 200

_NAMED: Final = 3
"""Sessions that are named, where a document leaves out what others have."""


class Scope(Struct, frozen=True):
    """What is wanted: a `part`, counted from the record `at` a place on, if one is named.

    With `all_branches`, branches that were rewound too. `seen` are the records of the sessions
    `before`, which are left out; `copies` counts what was left out, and `looked` is for `is_empty`.
    What is in no document, as it was rewound, is `left` for what goes on from it.
    """

    part: Part = ALL
    at: Spot | None = None
    all_branches: bool = False
    before: tuple[str, ...] = ()
    seen: Seen = field(default_factory=nothing_seen)
    copies: Copies = field(default_factory=Copies)
    looked: list[Within] = field(default_factory=list)
    left: list[bytes] = field(default_factory=list)

    def within(self, session: Session, *, has_rewound: bool, is_numbered: bool = False) -> Within:
        """Return what tells which items are in the part; `is_empty` asks it afterwards.

        `has_rewound` is whether rewound branches are among them: their prompts are no turns. To
        know them, the history is read once where turns matter, or the document `is_numbered`.
        """
        found = Within(self.part)
        if has_rewound and (is_numbered or self.part.turns):
            found = Within(self.part, turns_of(session))
        self.looked.append(found)
        return found

    @property
    def is_empty(self) -> bool:
        """Whether nothing was in the part when it was last written."""
        return not self.is_all and bool(self.looked) and self.looked[-1].is_empty

    @property
    def is_all(self) -> bool:
        """Whether all of the session is wanted."""
        return self.part.is_all and self.at is None

    def records(self, session: Session) -> Iterator[Record]:
        """Yield the records that a part is looked for in, each once. Raises as `Session` does."""
        if self.at is None:
            found = session.said(session.history())
        else:
            found = part.from_place(session, self.at)
        return once(found, session.key, session.bytes_of, self.copies, self.seen)

    def leave(self, session: Session, record: Record) -> None:
        """Have a record that is not written here be new in the sessions after this one."""
        line = digest(record, session.bytes_of)
        self.left.append(known_by(line, session.key(record)))

    def begun(self) -> Scope:
        """Return the same for one session: what comes of that does not change this one."""
        return replace(self, seen=self.seen.copy(), copies=Copies(), looked=[], left=[])

    def after(self, session: str) -> Scope:
        """Return what is wanted of the sessions behind this one, once it is written."""
        for each in self.left:
            self.seen.forget(each)
        return replace(self, before=(*self.before, session))

    def told(self) -> Iterator[str]:
        """Yield what a document has to say of itself, in sentences."""
        if words := self._words():
            yield f"This is a part of the session: {words}."
        if self.before:
            yield f"Records that are also in {_one_of(self.before)} are left out."

    def _words(self) -> str:
        told = [
            "" if self.part.turns is None else str(self.part.turns),
            "" if self.at is None else f"from {self.at.segment}:{self.at.offset:,} on",
            "" if self.part.since is None else f"since {_limit(self.part.since)}",
            "" if self.part.until is None else f"until {_limit(self.part.until)}",
        ]
        return ", ".join(filter(None, told))


class Exported(Struct, frozen=True):
    """A session that was written, as the index of several names it.

    `file` is the path of its document, beside the index, of letters that need no escape. `used` is
    when it was used last (ISO 8601, UTC), and `bytes` how long its live file is and what its
    archive holds.
    """

    file: str
    session: str
    client: str
    title: str
    project: str
    used: str
    bytes: int


def file_name(session: str) -> str:
    """Return a session's id as a file name; an id from a manifest may contain anything."""
    clean = re.sub(r"[^A-Za-z0-9._-]", "_", session).lstrip(".-")[:_LONGEST_NAME]
    return clean or "session"


def told_of(each: Exported) -> tuple[str, ...]:
    """Return what an index says of a session besides its title, on one line each."""
    told = (safe_text.line(each.project), each.client, render.time(each.used))
    return tuple(filter(None, (*told, render.size(each.bytes))))


def _one_of(sessions: tuple[str, ...]) -> str:
    named = ", ".join(sessions[-_NAMED:])
    more = len(sessions) - _NAMED
    return named if more <= 0 else f"{more:,} other sessions, {named}"


def _limit(limit: Moment | str) -> str:
    if isinstance(limit, str):
        return f"record {limit}"
    return f"{limit.begin.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
