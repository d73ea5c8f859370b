"""All sessions of the machine: with what is cheap to know, or with what a scan of each adds.

Rule: the system is asked once for all sessions which clients run and which files are open. A
session that cannot be scanned stays as it is, and the reason is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessrotate import clients
from sessrotate.archive import restored
from sessrotate.archive.place import Place
from sessrotate.clients.common import ignored, is_folder
from sessrotate.errors import SessrotateError
from sessrotate.reports import continuing, discovery, project_folder
from sessrotate.reports.discovery import FoundSession
from sessrotate.reports.session_info import SessionInfo, unambiguous
from sessrotate.system import in_use

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread


def sessions(
    *, hidden: bool = False, continuations: bool = False, on_unread: Unread | None = None
) -> list[SessionInfo]:
    """Return all sessions of this machine's user, of all clients.

    Only the first and last 64 KiB of each file are read. Claude Code's sessions come first, by
    project and id; then those of the other clients, by path. With `hidden`, sessions that nobody
    used are listed too (`SessionInfo.standing` says what they are). With `continuations`, each
    Claude Code session is compared with the others of its project, which reads them a second time.

    `on_unread` is called with the path of each file or folder that cannot be read, and the reason;
    a session whose file cannot be read is listed with what is known. Raises nothing for those.
    """
    found = _sessions(on_unread or ignored)
    if continuations:
        found = [*_linked(found)]
    return [each for each in found if hidden or each.standing == "session"]


def _sessions(unread: Unread) -> list[SessionInfo]:
    found = [*discovery.sessions(hidden=True, unread=unread)]
    running = discovery.running(found)
    written = in_use.written({each.file for each in found if each.file is not None})
    marked = {*restored.marked()}
    listed = []
    for each in found:
        is_ours = each.place is not None and each.info.id in running
        is_running = is_ours or each.file in written
        where = each.place
        is_restored = where is not None and where.session in marked
        entry = each.info
        if is_running or is_restored:  # few are, and there may be ten thousand
            entry = replace(entry, is_running=is_running, is_restored=is_restored)
        listed.append(entry)
    return unambiguous(listed)


def of(places: Iterable[Place]) -> dict[Place, FoundSession]:
    """Return these sessions as the list finds them, those of which nothing is there left out.

    Which of them run is not asked.
    """
    found: dict[Place, FoundSession] = {}
    ordered = sorted(places, key=lambda each: each.live)

    for where in (each for each in ordered if clients.cold().is_named_so(each.live.name)):
        path = clients.cold().form(where.live)
        codex = clients.cold().FORMAT
        seen, _ = discovery.of_file(codex, clients.reader(codex), (), path)
        if seen is not None:
            found[where] = seen
    ordered = [each for each in ordered if each not in found]
    for parent, group in groupby(ordered, key=lambda each: each.live.parent):
        wanted = [*group]
        archives = {each.session for each in wanted if is_folder(each.archive)}
        folder = project_folder.read(parent, archives, ignored)
        for where in wanted:
            entry = discovery.of_place(where, folder, ignored)
            if entry is not None:
                found[where] = entry
    return found


def deepened(
    found: Iterable[SessionInfo], progress: Callable[[int], None], unread: Unread
) -> Iterator[SessionInfo]:
    """Yield sessions with all that a scan of each tells, and with what they continue.

    `progress` is called with the number of bytes scanned.
    """
    found, done = [*found], 0
    packed = _packed(found)
    for entry in _linked(found):
        count, tail, gain = entry.compactions, entry.live_tail_bytes, entry.gain_bytes
        try:
            if is_to_scan(entry):
                count, tail = _scanned(entry, done, progress)
            if gain is None:
                gain = _gained(entry, count)
            gain = packed.get(entry.path, gain)
        except SessrotateError as error:
            unread(str(entry.path), str(error))
        done += entry.bytes if is_to_scan(entry) else 0
        yield replace(entry, compactions=count, live_tail_bytes=tail, gain_bytes=gain)


def _packed(found: Iterable[SessionInfo]) -> dict[Path, int]:
    """Return about how many bytes of the disk compressing each plain session of Codex gains."""
    plain = {each.path: each for each in found if each.client == "codex"}
    if not plain:
        return {}
    from sessrotate.retention import sizes  # noqa: PLC0415 - as below

    files = {path: each.bytes for path, each in plain.items() if not each.is_compressed}
    made = sizes.compressed(files, clients.cold().WINDOW)
    return {path: max(0, plain[path].disk_bytes - size) for path, size in made.items()}


def _linked(found: Iterable[SessionInfo]) -> Iterator[SessionInfo]:
    """Yield sessions with what they continue."""
    links = dict(continuing.links())
    for entry in found:
        link = links.get(entry.path)
        yield entry if link is None else replace(entry, continues=link)


def is_to_scan(entry: SessionInfo) -> bool:
    """Return whether a scan would tell more than is known."""
    return entry.is_live and (entry.compactions is None or entry.live_tail_bytes is None)


def _gained(entry: SessionInfo, count: int | None) -> int | None:
    """Return what a rotation would gain a session with so many compactions."""
    if count == entry.segments:
        return 0  # there is nothing to cut: spares it being read once more
    from sessrotate.reports import planned_gain  # noqa: PLC0415 - as below

    return planned_gain.of(entry.path)


def _scanned(entry: SessionInfo, done: int, progress: Callable[[int], None]) -> tuple[int, int]:
    """Return how many compactions a session has, and its bytes from the last one on."""
    # 25 ms at start-up, wanted only for what is scanned.
    from sessrotate.reading.session import open_session  # noqa: PLC0415
    from sessrotate.segments import compressed_session, scan  # noqa: PLC0415

    if entry.segments:
        with open_session(entry.path) as session:
            newest = session.segments[-1]
            return newest.index, newest.bytes or 0
    with compressed_session.opened(entry.path) as source:
        client = clients.client_of(source)
        told = scan.scan(source, client, lambda read: progress(done + read))
    last = told.boundaries[-1].offset if told.boundaries else 0
    return len(told.boundaries), told.end - last
