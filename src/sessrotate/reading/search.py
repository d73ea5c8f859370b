"""What a person is looking for → the records of one session that say it, each with its place.

Promise: what is found is what a search through the view of every record finds; only lines that may
match are decoded.

Rule: a record is decided by its own line alone, so that a session may be searched in windows. Where
records are not lines, or repeat others (Gemini CLI), all of the session is read if anything in it
may match.

The history is read in stretches, each from any line on. A place in it is the same before and after
a rotation, so that parts of a session may be read by different processes, each of which opens it
for itself. The segments of a live file are looked for when somebody asks in which one a place is,
and not before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import cached_property, partial
from io import FileIO
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import xxhash
from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients
from sessrotate.clients import opaque
from sessrotate.clients.protocol import Reader
from sessrotate.clients.view import Block, View
from sessrotate.errors import DamagedError, InputError, RequestError, SessrotateError
from sessrotate.model import Span
from sessrotate.parsing import Record
from sessrotate.parsing.candidates import Sieve, candidates
from sessrotate.reading import holders, part, select
from sessrotate.reading.deduplicate import Asks, asks, waiting
from sessrotate.reading.holders import Around
from sessrotate.reading.pieces import Holder
from sessrotate.reading.select import LONGEST, Group, excerpts
from sessrotate.reading.session import Session
from sessrotate.segments import compressed, content
from sessrotate.system.source import Source

if TYPE_CHECKING:
    Read = Callable[[], Iterable[bytes | memoryview]]


class Window(Struct, frozen=True):
    """The lines that begin in these bytes of a history; without an `end`, all from `begin` on."""

    begin: int = 0
    end: int | None = None

    def has(self, place: int) -> bool:
        """Tell whether a place is in it."""
        return self.begin <= place and (self.end is None or place < self.end)


class Stretch(Struct, frozen=True):
    """Whole lines of a history, and what reads them.

    `index` is the segment's, None where they are not a sealed segment. `start` is where in the
    segment they begin, or behind all sealed segments. `problem` says why they cannot be read.
    """

    index: int | None
    start: int
    read: Read
    problem: str | None = None


class Stretches:
    """The stretches of a session that is open, and of which the sizes of all parts are known.

    * `pruned`: where the segments begin that were pruned.
    * `sealed`: how many bytes of the history are in segments.
    """

    def __init__(self, holder: Holder) -> None:
        """Raise DamagedError if the live file does not go on from its archive."""
        holder.check()
        self._holder: Final = holder
        sizes = (each.info.bytes or 0 for each in holder.sealed)
        *begins, self.sealed = accumulate(sizes, initial=0)
        self._begins: Final = [*zip(begins, holder.sealed, strict=True)]
        self.pruned: Final = [begin for begin, each in self._begins if each.is_pruned]

    def within(self, window: Window) -> Iterator[Stretch]:
        """Yield the sealed segments that begin in the window, then other lines that do."""
        for begin, segment in self._begins:
            if window.has(begin) and not segment.is_pruned:
                yield Stretch(segment.info.index, 0, segment.pieces, segment.problem)
        place = self.sealed
        for each in self._holder.loose:
            span, shift = each.span, place - each.span.start
            if each.file is not None:
                span = _lines(each.file, span, shift, window)
            elif not window.has(place):
                span = Span(0, 0)
            if span.size:
                yield Stretch(None, span.start + shift - self.sealed, partial(each.read, span))
            place += each.span.size

    def where(self, stretch: Stretch, offset: int) -> tuple[int, int]:
        """Return the number of the segment that has a line, and the offset in it.

        `offset` is the line's, as counted from the stretch's `start`. Without a live file, lines
        belong to the last segment. Raises what a scan raises.
        """
        if stretch.index is not None:
            return stretch.index, offset
        if not self._live:
            last = self._holder.sealed[-1].info
            return last.index, (last.bytes or 0) + offset
        begin, index = next(each for each in reversed(self._live) if each[0] <= offset)
        return index, offset - begin

    @cached_property
    def _live(self) -> list[tuple[int, int]]:
        """Where segments that are not sealed begin, behind the sealed ones, and their numbers."""
        files = [each.file for each in self._holder.loose if each.file is not None]
        names = tuple((each.path, each.identity()) for each in files)
        state = self.sealed, names, tuple(each.span for each in self._holder.loose)
        if state not in _CUTS:
            segments = (each.info for each in self._holder.segments())
            live = [each for each in segments if each.standing == "live"]
            begins = accumulate((each.bytes or 0 for each in live), initial=0)
            _CUTS.clear()
            _CUTS[state] = [(begin, each.index) for begin, each in zip(begins, live, strict=False)]
        return _CUTS[state]


_CUTS: Final[dict[object, list[tuple[int, int]]]] = {}
"""The segments of the last live file of which somebody asked: it is searched in many windows."""


def read(stretch: Stretch) -> Iterator[bytes | memoryview]:
    """Yield a stretch's bytes. Raises DamagedError where that is known to be impossible."""
    if stretch.problem is not None:
        raise DamagedError(stretch.problem)
    return iter(stretch.read())


def _lines(source: Source, span: Span, shift: int, window: Window) -> Span:
    """Return where the lines stand in a file that begin in a window.

    They are in `span`, and `shift` makes an offset of the file a place in the history.
    """
    start = max(span.start, window.begin - shift)
    end = span.end if window.end is None else min(span.end, window.end - shift)
    if start > span.start:
        start = min(source.line_end(start - 1, max(end, start - 1)) + 1, span.end)
    if start >= end:
        return Span(start, start)
    return Span(start, min(source.line_end(end - 1, span.end) + 1, span.end))


# ── what is searched for ──────────────────────────────────────────────────────────────────────────

ALL: Final = Window()


class Query(Struct, frozen=True):
    """What is looked for, and how: all of these `words` in one record, in any order.

    `is_raw` searches the lines as they are in the file, `around` is how many lines are shown before
    and behind one that matches. `since` and `until` (excluded) pass over records that were written
    earlier or later, or that do not say when. `who` says who speaks in a record, and `is_by`
    whether a block of it is searched. `is_brief` stops after the first hit.
    """

    words: tuple[re.Pattern[str], ...]
    who: Callable[[View], str]
    is_raw: bool = False
    around: int = 0
    since: datetime | None = None
    until: datetime | None = None
    is_by: Callable[[View, Block], bool] | None = None
    is_brief: bool = False

    @property
    def is_accented(self) -> bool:
        """Whether texts are composed before they are compared."""
        return not (self.is_raw or all(word.pattern.isascii() for word in self.words))

    def takes(self, view: View | None) -> bool:
        """Return whether a record with this view is wanted, by its time and by who speaks in it."""
        is_by = self.is_by
        if is_by is not None and not (view and any(is_by(view, block) for block in view.blocks)):
            return False
        if self.since is None and self.until is None:
            return True
        time = None if view is None else part.time_of(view)
        return time is not None and not (
            (self.since is not None and time < self.since)
            or (self.until is not None and time >= self.until)
        )


class Hit(Struct, frozen=True):
    """A record that matches, in a segment at an offset in bytes.

    `character` is where the first match begins, in what the record says (`select.text_of`) or, with
    a raw search, in its line. `time` and `who` are those of its view. `groups` are the lines that
    match. `digest` and `key` are what copies of the record share, and `asks` what becomes of a
    prompt by it (`deduplicate`).
    """

    segment: int
    offset: int
    character: int
    time: str | None
    who: str | None
    groups: tuple[Group, ...]
    digest: bytes
    key: bytes | None
    asks: Asks = None


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
        for found in search_.found():
            yield found
            if query.is_brief and isinstance(found, Hit):
                break
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
                yield from _said_once(self._in_lines(all_of_it, clients.reader(holder.client)))
                return
            if not self._window.begin and self._may_match(holder):
                yield from self._in_records(holder)

    # ── where records are lines ──────────────────────────────────────────────────────────────

    def _stretches(self, holder: Holder) -> Stretches | None:
        """Return the stretches of a session that is made of lines, None of any other."""
        reader = clients.reader(holder.client)
        is_made_so = reader.records is opaque.records
        is_made_so = is_made_so and (self._query.is_raw or reader.said is opaque.said)
        is_among_clients = holder.state is not None or holder.file is not None
        return Stretches(holder) if is_made_so and is_among_clients else None

    def _in_lines(self, all_of_it: Stretches, reader: Reader) -> Iterator[Hit | Problem]:
        wanted = self._sieves(reader)
        pruned = sum(map(self._window.has, all_of_it.pruned))
        self.searched = Searched(pruned, 0, all_of_it.sealed)
        for stretch in all_of_it.within(self._window):
            try:
                yield from self._in_stretch(all_of_it, stretch, reader, wanted)
            except InputError as error:
                yield Problem(error)

    def _in_stretch(
        self, all_of_it: Stretches, stretch: Stretch, reader: Reader, wanted: list[Sieve]
    ) -> Iterator[Hit]:
        lines = candidates(read(stretch), wanted[0], stretch.start)
        for line, at, size, is_ended in lines:
            if wanted[1:] and size == len(line) and not all(each(bytes(line)) for each in wanted):
                continue
            record = Record(0, at, bytes(line), size, is_ended)
            hit = self._hit(record, reader)
            if hit is not None:
                segment, offset = all_of_it.where(stretch, at)
                key = reader.key(replace(record, segment=segment, offset=offset))
                yield replace(hit, segment=segment, offset=offset, key=key)

    # ── where they are not ───────────────────────────────────────────────────────────────────

    def _may_match(self, holder: Holder) -> bool:
        """Tell whether anything in a file may match."""
        source, wanted = holder.file, self._sieves(clients.reader(holder.client))[0]
        if source is None:
            return True
        pieces = source.pieces(Span(0, source.size()))
        return any(True for _ in candidates(pieces, wanted))

    def _in_records(self, holder: Holder) -> Iterator[Hit | Problem]:
        problems: list[str] = []
        session = Session(self._path, holder, problems.append)
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
        if not compressed.is_session(self._path.name):
            return False
        if self._window.begin:
            return True
        with suppress(OSError, InputError, RequestError), FileIO(self._path, "rb") as stream:
            pieces = (memoryview(piece)[:size] for piece, size in content(stream, "zstd"))
            first = next(pieces, memoryview(b""))
            client = clients.of(bytes(first), is_whole=False)
            if client is not None:
                wanted = self._sieves(clients.reader(client))[0]
                return not any(True for _ in candidates(chain((first,), pieces), wanted))
        return False

    # ── one record ───────────────────────────────────────────────────────────────────────────

    def _sieves(self, reader: Reader) -> list[Sieve]:
        """Return what lets lines through that may match, for each word; the rarest comes first."""
        words, told = self._query.words, None if self._query.is_raw else reader
        return sorted((select.sieve_for(word, told) for word in words), key=_frequency)

    def _hit(self, record: Record, reader: Reader) -> Hit | None:
        """Return a record as a hit, its key left out; None if it is none."""
        query = self._query
        view = None if query.is_raw else reader.view(record)
        if not record.is_whole and view is None:
            searched = self.searched
            self.searched = replace(searched, unsearched=searched.unsearched + 1)
            return None
        found = self._in_texts(self._texts(record, view))
        if found is None:
            return None
        view = reader.view(record) if query.is_raw else view
        if not query.takes(view):
            return None
        character, groups = found
        said = view if view is None or query.is_raw else select.only_at(view, character)
        return Hit(
            segment=record.segment,
            offset=record.offset,
            character=character,
            time=None if view is None else view.time,
            who=None if said is None else query.who(said),
            groups=groups,
            digest=xxhash.xxh3_128_digest(record.line),
            key=None,
            asks=asks(view),
        )

    def _texts(self, record: Record, view: View | None) -> Iterator[tuple[str, bool]]:
        """Yield each text of a record, and whether it is searched."""
        is_by = self._query.is_by
        if view is None:
            yield record.line.decode("utf-8", "replace"), True
            return
        for block in view.blocks:
            is_wanted = is_by is None or is_by(view, block)
            for text in select.texts_of(block):
                yield text, is_wanted

    def _in_texts(self, texts: Iterable[tuple[str, bool]]) -> tuple[int, tuple[Group, ...]] | None:
        """Return where the first match begins, and the lines that match, if all words are there.

        Those are the lines that have all of the words or, if there are none, any of them.
        """
        words, is_accented = self._query.words, self._query.is_accented
        found: list[re.Match[str] | None] = [None] * len(words)
        matching: list[tuple[int, str, str]] = []
        before = 0
        for text, is_wanted in texts:
            told = select.composed(text) if is_accented else text
            matches = [word.search(told) for word in words] if is_wanted else []
            if any(matches):
                found = [one or other for one, other in zip(found, matches, strict=True)]
                matching.append((before, text, told))
            before += len(text) + 1
        if not all(found):
            return None
        shown = self._shown(matching, len(words)) or self._shown(matching, 1)
        before, text, told, groups = shown[0]
        line = next(line for line in groups[0] if line.spans)
        at = line.at + (line.spans[0][0] if line.spans else 0)
        character = before + (at if told is text else select.uncomposed(text, told, at))
        return character, tuple(group for *_, groups in shown for group in groups)

    def _shown(
        self, matching: list[tuple[int, str, str]], least: int
    ) -> list[tuple[int, str, str, tuple[Group, ...]]]:
        words, around = self._query.words, self._query.around
        several = (excerpts(told, words, around, least) for _, _, told in matching)
        return [(*each, groups) for each, groups in zip(matching, several, strict=True) if groups]


def _frequency(sieve: Sieve) -> int:
    """Return the less, the fewer lines are expected to come through a sieve."""
    return -min(map(len, sieve.wanted), default=0)


def _said_once(found: Iterator[Hit | Problem]) -> Iterator[Hit | Problem]:
    """Yield what is found, but not what waited in the client's queue where a later hit says it."""
    for each, is_over in waiting(found, _told, lambda _each: LONGEST):
        if not is_over:
            yield each


def _told(each: Hit | Problem) -> tuple[Asks, str]:
    if isinstance(each, Problem):
        return None, ""
    lines = (line.text for group in each.groups for line in group if line.spans)
    return each.asks, "\n".join(lines)
