"""A search through all sessions of the machine, the newest first, in two processes.

Rule: each record of a session is found once, whichever of its copies comes first. Large sessions
are searched in windows. If one was rotated between two of them, all of it is searched again, and
only what was not found before comes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients, names
from sessrotate.archive import owner, place
from sessrotate.clients.common import real
from sessrotate.clients.protocol import Placing
from sessrotate.errors import WrongUsageError, printable
from sessrotate.reading import holders
from sessrotate.reading.deduplicate import Known
from sessrotate.reading.holders import Around
from sessrotate.reading.search import ALL, Hit, Problem, Query, Searched, Window, search
from sessrotate.reports import SHORTEST, SessionInfo, discovery, project_folder, unambiguous
from sessrotate.reports.discovery import FoundSession
from sessrotate.reports.in_parallel import streamed
from sessrotate.reports.project_folder import InProject
from sessrotate.segments import compressed

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread

    Show = Callable[[SessionInfo, Hit], str]
    Look = Callable[[SessionInfo, Window], Iterator["Made | Problem | Searched"]]

FIRST: Final = 128
"""Sessions that are opened before the first is searched."""

_MORE: Final = 8
"""How many times as many are opened in each round as in the one before."""

WINDOW: Final = 32 * 1024 * 1024
"""Bytes of a session that one process searches at a time."""

BATCH: Final = 4 * 1024 * 1024
"""Bytes of small sessions that are searched together."""

WORTH_TWO: Final = 48 * 1024 * 1024
"""Bytes that are worth other processes, to fork which takes as long as to search so many."""

_WORKERS: Final = 2


class Made(Struct, frozen=True):
    """What was made of a hit, by the process that found it."""

    what: str
    digest: bytes
    key: bytes | None


Told = tuple["SessionInfo", Made | Problem | Searched]
"""A session and what is found in it."""


class _Part(Struct, frozen=True):
    """A window of the session with this number."""

    session: int
    window: Window


class Machine:
    """All sessions that hold anything, the newest first; `unread` is as for the list.

    Behind each stand the transcripts of its agents, which are read by their paths. To open ten
    thousand takes seconds, so they are opened in rounds, those of the newest files first: one whose
    file has an older time than its last record comes late. `opened` are the sessions of the first
    round, `unopened` the ids of the others; `around` is for `holders.opened`.
    """

    def __init__(self, unread: Unread) -> None:
        """Open the newest, and those that decide what is shown of others."""
        self._unread: Final = unread
        archives = [*place.archives(unread=unread)]
        self.around: Final = Around(archives)
        places = project_folder.places(unread, archives)
        latest = [*_latest(places)]
        self._left: Final = sorted(zip(latest, places, strict=True), key=itemgetter(0))
        first = self._taken(max(FIRST, latest.count(math.inf)))
        found = discovery.sessions(unread=unread, places=first)
        self._waiting = [*_with_agents(found)]
        self.opened: Final = [info for info, *_ in self._waiting]
        self.unopened: Final = [where.session for _, (where, _) in self._left]

    @property
    def left(self) -> int:
        """How many sessions no round had yet."""
        return len(self._left) + len(self._waiting)

    def rounds(self) -> Iterator[list[SessionInfo]]:
        """Yield the next ones, as many as nothing can come before that is not opened yet."""
        count = FIRST
        while True:
            until = self._left[-1][0] if self._left else -math.inf
            self._waiting.sort(key=lambda each: (-each[0].last_used, each[0].id, each[0].path))
            ready = [each for each in self._waiting if each[0].last_used > until]
            self._waiting = self._waiting[len(ready) :]
            yield [*chain.from_iterable(ready)]
            if not self._left:
                return
            count *= _MORE
            found = discovery.in_projects(self._taken(count), self._unread)
            self._waiting += _with_agents(found)

    def _taken(self, count: int) -> list[InProject]:
        """Return the newest that are left, and take them off the list."""
        taken = [each for _, each in self._left[-count:]]
        del self._left[-count:]
        return taken


def _latest(places: Sequence[InProject]) -> Iterator[float]:
    """Yield when each session was used last at the latest; infinity for what is opened first.

    The short name of one that begins like another depends on whether that holds anything; and
    copies are called by what is there, as are projects of Gemini CLI.
    """
    begun = Counter(where.session[:SHORTEST] for where, _ in places)
    files = clients.in_place().files
    others = [each for each in clients.clients() if each is not files and any(each.sessions())]
    is_open = any(isinstance(clients.reader(each), Placing) for each in others)
    is_open = is_open or any(any(each.copies()) for each in clients.clients())
    for where, _ in places:
        is_first = is_open or begun[where.session[:SHORTEST]] > 1
        yield math.inf if is_first else project_folder.latest(where)


def _with_agents(found: Iterable[FoundSession]) -> Iterator[list[SessionInfo]]:
    """Yield each session that holds anything, with the transcripts of its agents behind it."""
    several = [*found]
    named = unambiguous(each.info for each in several)
    for info, each in zip(named, several, strict=True):
        transcripts = [*_agents(info, each)]
        if info.bytes or info.segments or not info.is_live or transcripts:
            yield [info, *transcripts]


def of_session(known: Sequence[SessionInfo], path: Path) -> list[SessionInfo]:
    """Return the session at a path with the transcripts of its agents, or one of these alone.

    A path outside of the clients' folders stands for a session, too. Raises as `holders.opened`.
    """
    where = owner.read_with(owner.meant(path))
    meant = real(path if where is None else where.live)
    named = {each.path for each in known if each.path.name == meant.name}
    named = {each for each in named if real(each) == meant}
    belongs = parents(known)
    found = [each for each in known if {each.path, belongs[each.path]} & named]
    if found:
        return found
    with holders.opened(path) as holder:
        if holder.file is None:
            raise WrongUsageError(f"{printable(str(path))} is not one file: use `read --grep`.")
        client = holder.client
    outside, _ = discovery.of_file(client, clients.reader(client), (), path)
    return [] if outside is None else [replace(outside.info, id=str(path), name=str(path))]


def parents(known: Iterable[SessionInfo]) -> dict[Path, Path]:
    """Return the path of the session that each path belongs to, which stands before its agents."""
    found: dict[Path, Path] = {}
    session = None
    for each in known:
        session = each.path if session is None or each.id != str(each.path) else session
        found[each.path] = session
    return found


def _agents(info: SessionInfo, session: FoundSession) -> Iterator[SessionInfo]:
    """Yield the transcripts of a session's agents that are in files of their own, as sessions."""
    client, paths = clients.in_place(), tuple[Path, ...]()
    if info.is_away and session.place is not None:
        put_away = session.place.archive / names.ARCHIVED / info.path.name
        paths = tuple(client.beside.away(put_away, info.id))
    elif info.client == client.files.NAME and info.side_bytes:
        paths = (*map(Path, session.beside), *client.beside.transcripts(info.path, info.id))
    for path in paths:
        with suppress(OSError):
            seen = path.lstat()
            title = replace(info.title, text=f"an agent of {info.title.text or info.id}")
            yield replace(
                info,
                id=str(path),
                name=str(path),
                path=path,
                title=title,
                is_live=not holders.is_compressed(path),
                is_away=False,
                bytes=seen.st_size,
                modified=seen.st_mtime,
                archived_bytes=0,
                segments=0,
                side_bytes=0,
            )


def found(
    sessions: Sequence[SessionInfo],
    query: Query,
    show: Show,
    done: Callable[[int, int], None] = lambda _done, _total: None,
    around: Around | None = None,
) -> Generator[Told]:
    """Yield what is found in these sessions, in their order: of each, all until its `Searched`.

    `show` makes of a hit what its reader wants. `done` is called now and then with how many parts
    are searched, and how many there are; `around` is as for `holders.opened`. Raises nothing: what
    cannot be searched is a `Problem`.
    """
    parts = [_Part(number, each) for number, info in enumerate(sessions) for each in windows(info)]
    batches = [*_batches(parts, sessions)]
    total = sum(map(_size, sessions))
    look = partial(_in_window, query, show, around or Around())
    workers = _WORKERS if total >= WORTH_TWO else 0
    results = streamed(partial(_in_batch, sessions, look), batches, workers)
    merged = _Merged(look)
    last = {part.session: part for part in parts}
    searched = 0
    for part, each in results:
        if isinstance(each, Searched):
            searched += 1
            done(searched, len(parts))
        is_last = last[part.session] == part
        yield from merged.told(sessions[part.session], each, is_last=is_last)


def _size(info: SessionInfo) -> int:
    return info.bytes + (info.archived_bytes or 0)


def windows(info: SessionInfo) -> Iterator[Window]:
    """Yield the windows in which a session is searched."""
    # To open one whose live file is compressed takes as long as to read it.
    is_plain = info.is_live and not compressed.is_session(info.path.name)
    if not is_plain or info.client not in _IN_LINES:
        yield ALL
        return
    starts = range(0, max(_size(info) - WINDOW // 2, 1), WINDOW)
    for begin in starts:
        yield Window(begin, None if begin == starts[-1] else begin + WINDOW)


_IN_LINES: Final = frozenset({"claude", "codex"})
"""Clients whose sessions may be searched in windows; another's window has all or nothing."""


def _batches(parts: Iterable[_Part], sessions: Sequence[SessionInfo]) -> Iterator[list[_Part]]:
    batch: list[_Part] = []
    held = 0
    for part in parts:
        batch.append(part)
        held += min(_size(sessions[part.session]), WINDOW)
        if held >= BATCH:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _in_batch(
    sessions: Sequence[SessionInfo], look: Look, batch: Sequence[_Part]
) -> Iterator[tuple[_Part, Made | Problem | Searched]]:
    for part in batch:
        for each in look(sessions[part.session], part.window):
            yield part, each


def _in_window(
    query: Query, show: Show, around: Around, info: SessionInfo, window: Window
) -> Iterator[Made | Problem | Searched]:
    for each in search(info.path, query, window, around):
        yield Made(show(info, each), each.digest, each.key) if isinstance(each, Hit) else each


class _Merged:
    """Puts the windows of each session together; sessions come one after the other."""

    def __init__(self, look: Look) -> None:
        self._look: Final = look
        self._forget()

    def _forget(self) -> None:
        self._known: Known | None = None
        self._problems: set[str] = set()
        self._sealed: int | None = None
        self._was_rotated = False
        self._pruned = self._unsearched = 0

    def told(
        self, info: SessionInfo, each: Made | Problem | Searched, *, is_last: bool
    ) -> Iterator[Told]:
        """Yield what is new in a result."""
        match each:
            case Made() if self._is_new(each):
                yield info, each
            case Problem(error) if str(error) not in self._problems:
                self._problems.add(str(error))
                # A session that went away meanwhile is none any more.
                if not isinstance(error, WrongUsageError):
                    yield info, each
            case Searched():
                self._add(each)
                if is_last:
                    if self._was_rotated:
                        yield from self._again(info)
                    yield info, Searched(self._pruned, self._unsearched)
                    self._forget()

    def _is_new(self, hit: Made) -> bool:
        self._known = Known() if self._known is None else self._known
        return self._known.is_new_line(hit.digest, hit.key)

    def _add(self, each: Searched) -> None:
        self._was_rotated = self._was_rotated or self._sealed not in {None, each.sealed}
        self._sealed = each.sealed
        self._pruned += each.pruned
        self._unsearched += each.unsearched

    def _again(self, info: SessionInfo) -> Iterator[Told]:
        self._pruned = self._unsearched = 0
        for each in self._look(info, ALL):
            if isinstance(each, Searched):
                self._add(each)
            else:
                yield from self.told(info, each, is_last=False)
