"""All sessions of the machine as rows of a list, by what is cheap to know or by a scan of each.

Rule: the system is asked once for all sessions: who runs, who has what open. A session that cannot
be scanned stays as it is, and why is told.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate import clients, units
from sessrotate.errors import SessrotateError
from sessrotate.reports import discovery
from sessrotate.reports.row import Continues, Entry, told_apart
from sessrotate.system import in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sessrotate.reports.discovery import Listed, Unread

SAYS: Final = "says so"
"""Why a session is known to continue another one that its own first row names."""

_NS: Final = 1_000_000_000


def entries(unread: Unread) -> list[Entry]:
    """Return all sessions, also those that nobody used.

    `unread` is told the path of what cannot be read, and why.
    """
    with _nothing_collected():
        return _entries(unread)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Make many objects that all stay: looking for garbage among them costs a tenth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _entries(unread: Unread) -> list[Entry]:
    found = [*discovery.sessions(hidden=True, unread=unread)]
    configs = {each.place.config for each in found if each.place is not None}
    running = {(config, session) for config in configs for session in in_use.running(config)}
    written = in_use.written({each.file for each in found if each.file is not None})
    return told_apart(
        _entry(
            each,
            is_running=each.file in written
            or (each.place is not None and (each.place.config, each.session) in running),
        )
        for each in found
    )


def _entry(listed: Listed, *, is_running: bool) -> Entry:
    sight = listed.edges
    modified = listed.modified / _NS
    ended = units.seconds(sight.ended)
    fallback = listed.place.project if listed.place is not None else listed.path.parent.name
    return Entry(
        session=listed.session,
        name=sight.id or listed.session,
        client=listed.client,
        project=sight.folder or fallback,
        path=str(listed.path),
        is_live=listed.bytes is not None,
        bytes=listed.bytes or 0,
        archived_bytes=listed.archived_bytes,
        archived_disk_bytes=listed.archived_disk_bytes,
        side_bytes=listed.side_bytes,
        segments=listed.segments,
        compactions=listed.compactions,
        live_tail_bytes=listed.live_tail,
        modified=modified,
        last_used=modified if ended is None else ended,
        running=is_running,
        standing=sight.standing,
        title=sight.title,
        branch=sight.branch,
        started=sight.started,
        ended=sight.ended,
        continues=(
            None if sight.origin is None else Continues(sight.origin.session, SAYS, sight.origin.at)
        ),
    )


def deepened(
    found: Iterable[Entry], progress: Callable[[int], None], unread: Unread
) -> Iterator[Entry]:
    """Yield sessions with all that a scan of each tells, and with what they continue.

    `progress` is told how many bytes are scanned.
    """
    links = {str(path): link for path, link in discovery.continuing()}
    done = 0
    for entry in found:
        link = links.get(entry.path)
        continues = Continues(link.session, link.reason) if link is not None else entry.continues
        count, tail = entry.compactions, entry.live_tail_bytes
        if is_to_scan(entry):
            try:
                count, tail = _scanned(entry, done, progress)
            except SessrotateError as error:
                unread(entry.path, str(error))
            done += entry.bytes
        yield replace(entry, compactions=count, live_tail_bytes=tail, continues=continues)


def is_to_scan(entry: Entry) -> bool:
    """Tell whether a scan says more of a session than is known."""
    return entry.is_live and (entry.compactions is None or entry.live_tail_bytes is None)


def _scanned(entry: Entry, done: int, progress: Callable[[int], None]) -> tuple[int, int]:
    """Return how many compactions a session has, and its bytes from the last one on."""
    # 25 ms at start-up, wanted only for what is scanned.
    from sessrotate.reading.session import open_session  # noqa: PLC0415
    from sessrotate.segments import compressed, scan  # noqa: PLC0415

    if entry.segments:
        with open_session(entry.path) as session:
            newest = session.segments[-1]
            return newest.index, newest.bytes or 0
    with compressed.opened(Path(entry.path)) as source:
        client = clients.client_of(source)
        told = scan.scan(source, client, lambda read: progress(done + read))
    last = told.boundaries[-1].offset if told.boundaries else 0
    return len(told.boundaries), told.end - last
