"""What a person is looking for → the records of one session that say it, each with its place.

Promise: what is found is what a search through the view of every record finds; only lines that may
match are decoded.

Rule: a record is decided by its own line alone, so that a session may be searched in windows. Where
records are not lines, or repeat others (Gemini CLI), all of the session is read if anything in it
may match.
"""

from __future__ import annotations

from contextlib import suppress
from io import FileIO
from itertools import chain
from typing import TYPE_CHECKING, Final

import xxhash
from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients
from sessrotate.archive.state import State
from sessrotate.clients import opaque
from sessrotate.errors import DamagedError, InputError, RequestError, SessrotateError
from sessrotate.model import Span
from sessrotate.parsing.candidates import candidates
from sessrotate.parsing.records import Record
from sessrotate.reading import holders, part, select, stretches
from sessrotate.reading.excerpts import excerpts
from sessrotate.reading.holders import WholeFile
from sessrotate.reading.session import of_holder
from sessrotate.reading.stretches import OfFile, OfState, Window
from sessrotate.segments import compressed_session
from sessrotate.segments.segment_set import content

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from sessrotate.clients.protocol import Reader
    from sessrotate.clients.view import View
    from sessrotate.parsing.literals import Sieve
    from sessrotate.reading.excerpts import Group
    from sessrotate.reading.holders import Around, Holder
    from sessrotate.reading.stretches import Stretch, Stretches

ALL: Final = Window()


class Query(Struct, frozen=True):
    """What is looked for, and how.

    `is_raw` searches the lines as they are in the file, `around` is how many lines are shown before
    and behind one that matches, and `since` passes over records that were written earlier, or that
    do not say when. `who` says who speaks in a record.
    """

    pattern: re.Pattern[str]
    who: Callable[[View], str]
    is_raw: bool = False
    around: int = 0
    since: datetime | None = None


class Hit(Struct, frozen=True):
    """A record that matches, in a segment at an offset in bytes.

    `time` and `who` are those of its view. `include` is what `read --include` takes to show it;
    `is_line` if only its line shows it. `groups` are the lines that match. `digest` and `key` are
    what copies of the record share (`deduplicate`).
    """

    segment: int
    offset: int
    time: str | None
    who: str | None
    include: frozenset[str]
    is_line: bool
    groups: tuple[Group, ...]
    digest: bytes
    key: bytes | None


class Problem(Struct, frozen=True):
    """Why a part of the session could not be searched."""

    error: SessrotateError


class Searched(Struct, frozen=True):
    """The end of a search: how many segments were pruned, and lines too long to be searched.

    `sealed` is how many bytes of the history were in segments when the session was opened.
    """

    pruned: int = 0
    unsearched: int = 0
    sealed: int = 0


Found = Hit | Problem | Searched
"""What a search yields: hits and problems as they come, `Searched` at the end."""


def search(
    path: Path, query: Query, window: Window = ALL, around: Around | None = None
) -> Iterator[Found]:
    """Yield what is found in the session at `path`, among the lines that begin in a window.

    Hits come in the order of the history. Whoever searches in several windows, which may be at
    different moments, finds each line once unless `sealed` differs. `around` is as for
    `holders.opened`. Raises nothing of the library.
    """
    search_ = _Search(path, query, window, around)
    try:
        yield from search_.found()
    except SessrotateError as error:
        yield Problem(error)
    yield search_.searched


class _Search:
    def __init__(self, path: Path, query: Query, window: Window, around: Around | None) -> None:
        self._path: Final = path
        self._query: Final = query
        self._window: Final = window
        self._around: Final = around
        self.searched = Searched()

    def found(self) -> Iterator[Hit | Problem]:
        if self._is_surely_without():
            return
        with holders.opened(self._path, self._around) as holder:
            all_of_it = self._stretches(holder)
            if all_of_it is not None:
                yield from self._in_lines(all_of_it)
                return
            if not self._window.begin and self._may_match(holder):
                yield from self._in_records(holder)

    # ── where records are lines ──────────────────────────────────────────────────────────────

    def _stretches(self, holder: Holder) -> Stretches | None:
        """Return the stretches of a session that is made of lines, None of any other."""
        match holder:
            case State():
                return OfState(holder)
            case WholeFile(source=source, client=client):
                reader = clients.reader(client)
                is_made_so = reader.records is opaque.records
                if is_made_so and (self._query.is_raw or reader.said is opaque.said):
                    return OfFile(source, client)
        return None

    def _in_lines(self, all_of_it: Stretches) -> Iterator[Hit | Problem]:
        reader = clients.reader(all_of_it.client)
        wanted = self._sieve(reader)
        pruned = sum(map(self._window.has, all_of_it.pruned))
        self.searched = Searched(pruned, 0, all_of_it.sealed)
        for stretch in all_of_it.within(self._window):
            try:
                yield from self._in_stretch(all_of_it, stretch, reader, wanted)
            except InputError as error:
                yield Problem(error)

    def _in_stretch(
        self, all_of_it: Stretches, stretch: Stretch, reader: Reader, wanted: Sieve
    ) -> Iterator[Hit]:
        lines = candidates(stretches.read(stretch), wanted, stretch.start)
        for line, at, size, is_ended in lines:
            record = Record(0, at, bytes(line), size, is_ended)
            hit = self._hit(record, reader)
            if hit is not None:
                segment, offset = all_of_it.where(stretch, at)
                key = reader.key(replace(record, segment=segment, offset=offset))
                yield replace(hit, segment=segment, offset=offset, key=key)

    # ── where they are not ───────────────────────────────────────────────────────────────────

    def _may_match(self, holder: Holder) -> bool:
        """Tell whether anything in a file may match."""
        if not isinstance(holder, WholeFile):
            return True
        source, wanted = holder.source, self._sieve(clients.reader(holder.client))
        pieces = source.pieces(Span(0, source.size()))
        return any(True for _ in candidates(pieces, wanted))

    def _in_records(self, holder: Holder) -> Iterator[Hit | Problem]:
        problems: list[str] = []
        session = of_holder(self._path, holder, problems.append)
        history = session.history()
        for record in history if self._query.is_raw else session.said(history):
            hit = self._hit(record, session.reader)
            if hit is not None:
                yield replace(hit, key=session.key(record))
        for each in problems:
            yield Problem(DamagedError(each))

    # ── a session that its client compressed ─────────────────────────────────────────────────

    def _is_surely_without(self) -> bool:
        """Tell whether a compressed session has nothing that may match, without opening it.

        To open it, all of it is written to a file of its own.
        """
        if not compressed_session.is_session(self._path.name):
            return False
        if self._window.begin:
            return True
        with suppress(OSError, InputError, RequestError), FileIO(self._path, "rb") as stream:
            pieces = (memoryview(piece)[:size] for piece, size in content(stream, "zstd"))
            first = next(pieces, memoryview(b""))
            client = clients.of(bytes(first), is_whole=False)
            if client is not None:
                wanted = self._sieve(clients.reader(client))
                return not any(True for _ in candidates(chain((first,), pieces), wanted))
        return False

    # ── one record ───────────────────────────────────────────────────────────────────────────

    def _sieve(self, reader: Reader) -> Sieve:
        return select.sieve_for(self._query.pattern, None if self._query.is_raw else reader)

    def _hit(self, record: Record, reader: Reader) -> Hit | None:
        """Return a record as a hit, its key left out; None if it is none."""
        view = None if self._query.is_raw else reader.view(record)
        if not record.is_whole and view is None:
            searched = self.searched
            self.searched = replace(searched, unsearched=searched.unsearched + 1)
            return None
        if not self._query.is_raw and view is not None:
            groups, include = self._in_blocks(view)
        else:
            text = record.line.decode("utf-8", "replace")
            groups, include = self._in_text(text), frozenset()
        if not groups:
            return None
        is_line = view is None
        view = reader.view(record) if self._query.is_raw else view
        since = self._query.since
        if since is not None:
            time = None if view is None else part.time_of(view)
            if time is None or time < since:
                return None
        return Hit(
            segment=record.segment,
            offset=record.offset,
            time=None if view is None else view.time,
            who=None if view is None else self._query.who(view),
            include=include,
            is_line=is_line,
            groups=groups,
            digest=xxhash.xxh3_128_digest(record.line),
            key=None,
        )

    def _in_blocks(self, view: View) -> tuple[tuple[Group, ...], frozenset[str]]:
        groups: list[Group] = []
        include: frozenset[str] = frozenset()
        for block in view.blocks:
            for text in select.shown(view, block):
                if found := self._in_text(text):
                    groups += found
                    include |= select.wanted_for(view, block)
        return tuple(groups), include

    def _in_text(self, text: str) -> tuple[Group, ...]:
        pattern = self._query.pattern
        if pattern.search(text) is None:
            return ()
        return excerpts(text, pattern, self._query.around)
