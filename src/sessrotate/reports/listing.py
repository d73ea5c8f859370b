"""All sessions of the machine: with what is cheap to know, or with what a scan of each adds.

Rule: the system is asked once for all sessions which clients run and which files are open. A
session that cannot be scanned stays as it is, and the reason is reported, but of a file that no
client claims. What a rotation would gain is asked of the plan that it would make, never guessed at;
what it refuses gains nothing.

Which session continues another is told by their first and last bytes, and each link says why it is
there. A fork or a resumed clone repeats rows of its parent, uuids included (2.0.28 to 2.1.330; a
fork begins with the parent's last compaction), so shared rows are proof. 2.1.330 has rows for that
too (`derived-from`, `continued-in`), but no sample of them is known. What cannot be read is passed
over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients, names
from sessrotate.archive import owner, place, restored, state
from sessrotate.archive.place import Place
from sessrotate.archive.state import State
from sessrotate.clients.common import ignored, is_folder, real
from sessrotate.clients.preview import Continues, Sight
from sessrotate.errors import NotASessionError, SessrotateError, storage
from sessrotate.reports import SessionInfo, discovery, file_edges, project_folder, unambiguous
from sessrotate.reports.discovery import FoundSession
from sessrotate.reports.project_folder import ProjectFolder
from sessrotate.system import in_use
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread
    from sessrotate.in_place.gain import Forecast
    from sessrotate.in_place.rotate import RotationPlan


def sessions(
    *, hidden: bool = False, continuations: bool = False, on_unread: Unread | None = None
) -> list[SessionInfo]:
    """Return all sessions of this machine's user, of all clients.

    This reads only the first and last 64 KiB of each file. Claude Code's sessions come first, by
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
    found = [*discovery.sessions(unread=unread)]
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
        count, tail = entry.compactions, entry.live_tail_bytes
        gain = packed.get(entry.path, entry.gain_bytes)
        try:
            if is_to_scan(entry):
                count, tail = _scanned(entry, done, progress)
            if gain is None:
                gain = _gained(entry, count)
        except NotASessionError:  # it was read, and there is nothing to tell
            pass
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
    known = dict(links())
    for entry in found:
        link = known.get(entry.path)
        yield entry if link is None else replace(entry, continues=link)


def is_to_scan(entry: SessionInfo) -> bool:
    """Return whether a scan would tell more than is known."""
    return entry.is_live


def _gained(entry: SessionInfo, count: int | None) -> int | None:
    """Return about how many bytes of the disk a rotation gains a session with so many compactions.

    None if no plan can be made. Raises as `rotate.prepare` does.
    """
    if count == entry.segments:
        return 0  # there is nothing to cut: spares it being read once more
    where = owner.of(entry.path)
    if where is None:
        return 0
    with storage("read the session"), state.opened(where) as found:
        told = planned(found, lambda _done: None)
        return None if told is None else told[2].gained


def _scanned(entry: SessionInfo, done: int, progress: Callable[[int], None]) -> tuple[int, int]:
    """Return how many compactions a session has, and its bytes from the last one on."""
    # 25 ms at start-up, wanted only for what is scanned.
    from sessrotate.reading.session import open_session  # noqa: PLC0415
    from sessrotate.segments import compressed, scan  # noqa: PLC0415

    if entry.segments:
        with open_session(entry.path) as session:
            newest = session.segments[-1]
            return newest.index, newest.bytes or 0
    with compressed.opened_session(entry.path) as source:
        client, in_place = clients.client_of(source), clients.in_place()
        told = scan.scan(source, client, lambda read: progress(done + read))
        if client is in_place.files:
            told = in_place.resume.of_conversation(told, 0)
    last = told.boundaries[-1].offset if told.boundaries else 0
    return len(told.boundaries), told.end - last


def planned(
    found: State, progress: Callable[[int], None]
) -> tuple[RotationPlan, Source, Forecast] | None:
    """Return the plan of a rotation, the live file, and about what that gains the disk.

    None if no plan can be made now: that needs a live file that continues its archive, and no
    unfinished operation. `progress` is told how many bytes of the live file were read.
    """
    # 5 ms at start-up, wanted only for what is planned.
    from sessrotate.in_place import gain, rotate  # noqa: PLC0415

    if found.live is None or found.is_gone or found.is_away:
        return None
    if found.intent is not None or found.pack is not None or found.problem is not None:
        return None
    plan = rotate.prepare(found, progress, heal=False, proves=False)  # no healing frees
    if plan.refusals or plan.live is None:
        return plan, found.live, gain.Forecast()
    gained, need = max(0, gain.expected(plan, found.live)), gain.needed(plan, found.live)
    return plan, found.live, gain.Forecast(gained=gained, need=need)


# ── which session continues which ─────────────────────────────────────────────────────────────────


class Neighbour(Struct, frozen=True):
    """What is in sight of a session: its edges, and the uuids in them."""

    edges: Sight
    uuids: frozenset[str]


def links() -> Iterator[tuple[Path, Continues]]:
    """Yield the live files of all sessions that continue another one, with the link to that."""
    projects = real(clients.in_place().files.projects_folder())
    for name, folder in project_folder.every(ignored, place.archives()):
        found = _neighbours(folder.places(projects, name), folder)
        for session, link in parents(found).items():
            yield projects / name / f"{session}{names.SUFFIX}", link


def _neighbours(places: Iterable[Place], folder: ProjectFolder) -> dict[str, Neighbour]:
    """Return what the sessions of a project show, by id."""
    found, edges = {}, clients.in_place().edges
    for where in places:
        session = discovery.of_place(where, folder, ignored)
        if session is not None:
            here = file_edges.seen(str(where.live), ignored)
            uuids = edges.uuids(here.head, here.tail) if here is not None else frozenset()
            found[where.session] = Neighbour(session.sight, uuids | session.boundaries)
    return found


def parents(project: Mapping[str, Neighbour]) -> dict[str, Continues]:
    """Return for each session that has rows of another one which that is."""
    holders: dict[str, list[str]] = defaultdict(list)
    for session, sight in sorted(project.items()):
        for uuid in sight.uuids:
            holders[uuid].append(session)
    parents: dict[str, Continues] = {}
    for session, sight in project.items():
        holding = holders.get(sight.edges.first or "", [])
        older = [each for each in holding if _is_before(project, each, session)]
        if older:
            latest = max(older, key=lambda each: _rank(project, each))
            parents[session] = Continues(latest, "same rows")
    return parents


def _rank(project: Mapping[str, Neighbour], session: str) -> tuple[str, str]:
    return project[session].edges.ended or "", session  # all in UTC: their order is that of times


def _is_before(project: Mapping[str, Neighbour], one: str, other: str) -> bool:
    """Tell whether a session that has the other's first row is the elder of the two.

    It is if the row is not its first; where both begin alike, it is the one that ended first.
    """
    if one == other:
        return False
    if project[one].edges.first != project[other].edges.first:
        return True
    return _rank(project, one) < _rank(project, other)
