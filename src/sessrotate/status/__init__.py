"""Where this machine stands, in a handful of figures: what `sessrotate` alone shows. Only reads.

Promise: the gain is that of `tidy`, to the byte, because it is the same plan, or what that was for
sessions of which nothing changed since; what is on the disk is the sum of what `list` says. In come
the settings; out comes a `Status`.

Rule: what cannot be read counts nothing here: `doctor` and `tidy` say what is wrong.

What plans came to, and what sessions take, is remembered: a session of which nothing changed is not
read again. Nothing that is carried out goes by that. Whoever deletes the file costs the next status
time, and whoever changes a figure in it changes what is shown, and no more. Figures are found by a
digest of all that they follow from: our version, what was asked for, and the path, size, times,
device and inode of the live file, and of all in the archive and in the folder that the client keeps
beside it, and what leads to all archives. So nothing is found of what changed, and neither names
nor content are in the file. What more than that decides (who uses a session, a full disk, what was
interrupted or failed) is asked each time.

May import: `automation`, `hook`, `job`, `reports`, `retention`, `in_place`, `archive`, `segments`,
`clients`, `parsing`, `system`, `fs`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct, field, structs

from sessrotate import __version__, clients, fs, names
from sessrotate.archive import place, restored
from sessrotate.archive.place import Place
from sessrotate.automation import findings
from sessrotate.clients import in_place
from sessrotate.clients.preview import Sight, Standing, Title
from sessrotate.errors import SessrotateError
from sessrotate.hook import installation
from sessrotate.in_place import gain
from sessrotate.in_place.fleet import Known
from sessrotate.in_place.outcome import Outcome, Usual
from sessrotate.job import run, run_log
from sessrotate.job.config import Settings
from sessrotate.job.job import Scope
from sessrotate.job.run_log import LastRun
from sessrotate.job.schedule.installed import installed
from sessrotate.model import Count, Digest
from sessrotate.parsing import json_typed
from sessrotate.reports import NextStep, SessionInfo, discovery, in_parallel, next_steps
from sessrotate.reports.discovery import FoundSession
from sessrotate.reports.next_steps import OnDisk
from sessrotate.reports.project_folder import InProject
from sessrotate.retention import rollouts
from sessrotate.segments import load
from sessrotate.system import disk_use, in_use, inside, locks, user_folders
from sessrotate.system.digest import Fingerprint

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread
    from sessrotate.in_place.operations import Progress
    from sessrotate.job.job import Act, Sized

_MOST_BYTES: Final = 32 << 20
"""Bytes of the file that are read: 80,000 sessions."""

_Change = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""Bytes more or fewer."""


class _Figures(Struct, frozen=True):
    """What the plan of a session came to, as in an `Outcome`, in bytes; `usual` too.

    Where `room` or more are free, the plan does not depend on it.
    """

    result: Literal["planned", "nothing to do"]
    freed: _Change
    size: Count
    gained: _Change
    room: Count
    usual: Usual = ""


class _Taken(Struct, frozen=True, array_like=True):
    """What a session of Claude Code takes, as in `SessionInfo` and `FoundSession`."""

    standing: Standing
    is_plain: bool
    is_live: bool
    is_away: bool
    bytes: Count
    archived_bytes: Count | None
    archived_disk_bytes: Count
    archive_missing: bool
    disk_bytes: Count
    gain_bytes: Count | None
    waiting_disk_bytes: Count
    side_bytes: Count
    segments: Count
    modified: float
    last_used: float
    file: tuple[Count, Count] | None


class _Known(Struct, frozen=True):
    """The file: what is known of each session, by the digest of what it follows from."""

    figures: dict[Digest, _Figures] = {}
    taken: dict[Digest, _Taken] = {}


class Memory:
    """What is remembered when a status begins, and what it finds out."""

    def __init__(self) -> None:
        self._before = _read()
        self._now = _Known({}, {})
        self._looks: dict[Place, str] = {}
        self._way = _way()

    def sessions(self, places: list[InProject], unread: Unread) -> Iterator[FoundSession]:
        """Yield what is known of the sessions at these places first, then what all others take.

        Titles and compactions are left out. The places are taken off the list.
        """
        keys, unknown = dict[Place, str](), list[InProject]()
        for where, folder in in_parallel.taken(places):
            of_agents = folder.agents.get(where.session)
            asked = f"on disk {where.session in folder.archives} {of_agents}"
            keys[where] = key = self._key(asked, where)
            if key not in self._before.taken:
                unknown.append((where, folder))
                continue
            found = self._now.taken[key] = self._before.taken[key]
            yield _recalled(where, found)
        troubled = set[str]()

        def note(path: str, reason: str) -> None:
            troubled.add(path)
            unread(path, reason)

        for each in discovery.in_brief(unknown, note):
            yield each
            at = each.place
            if at is None or not troubled.isdisjoint(map(str, (at.live, at.archive))):
                continue  # it may be readable the next time
            # Of agents that have no session nothing is known: what they take follows from more.
            if (each.info.is_live or each.info.archived_disk_bytes) and self._is_same(at):
                self._now.taken[keys[at]] = _taken(each)

    def recall(
        self,
        asked: str,
        wanted: Sized,
        act: Act,
        *,
        live: bool = True,
    ) -> Iterator[Outcome]:
        """Yield what is known of sessions first, then what planning all others comes to."""
        asked, before = f"{asked} {live}", self._before.figures
        keys = {where: self._key(asked, where) for where, _ in wanted}
        known = {
            where: before[key]
            for where, key in keys.items()
            if key in before and _has_room(where, before[key])
        }
        if not live:
            gaining = {where for where, found in known.items() if found.result == "planned"}
            for where in gaining.difference(_unused(gaining)):
                del known[where]
        for where, found in known.items():
            self._now.figures[keys[where]] = found
            yield Outcome(
                where, found.result, found.freed, found.size, found.gained, usual=found.usual
            )
        for outcome in act([each for each in wanted if each[0] not in known]):
            if outcome.where is not None:
                figures = _figures(outcome.where, outcome)
                if figures is not None and self._is_same(outcome.where):
                    self._now.figures[keys[outcome.where]] = figures
            yield outcome

    def _key(self, asked: str, where: Place) -> str:
        """Return the digest of all that an answer about a session follows from."""
        if where not in self._looks:
            self._looks[where] = _look(where)
        digest = Fingerprint()
        known = (__version__, self._way, asked, str(where.live), self._looks[where])
        digest.update(repr(known).encode())
        return digest.digest

    def _is_same(self, where: Place) -> bool:
        """Tell whether nothing changed while it was read: that would not be what was found."""
        return _look(where) == self._looks[where]

    def keep(self, *, forgets: bool = True) -> None:
        """Write down what was found out, where that can be done, and no failure is told.

        It `forgets` what nobody asked for: all was asked for.
        """
        found, before = self._now, self._before
        if not forgets:
            found = _Known(before.figures | found.figures, before.taken | found.taken)
        if found == before:
            return
        with suppress(SessrotateError, OSError):
            path = user_folders.cache_file()
            user_folders.check_home(path)
            inside.check_owner(path)
            fs.create_folder(path.parent)
            fs.create_file_at_once(path, json_typed.dump_line(found))


def _read() -> _Known:
    with suppress(SessrotateError, OSError):
        path = user_folders.cache_file()
        known = json_typed.parse_line(load.read_small(path.parent, path.name, _MOST_BYTES), _Known)
        return known or _Known()
    return _Known()


def _way() -> list[object]:
    """Return what leads to all archives: what is there, on which device, or why it cannot be seen.

    A session that was never rotated has nothing there, and its plan follows from that all the same.
    """
    found: list[object] = []
    for path in (place.root().parent, place.root(), place.root() / place.ARCHIVES):
        try:
            is_link, status = path.is_symlink(), path.stat()
            found.append((is_link, status.st_mode, status.st_dev, status.st_ino))
        except OSError as error:
            found.append((os.path.lexists(path), error.errno))
    return found


def _look(where: Place) -> str:
    """Return what the system says of all files of a session."""
    live = str(where.live)
    found = disk_use.seen(live, live.removesuffix(names.SUFFIX), str(where.archive))
    return repr(
        [
            (each.st_size, each.st_mtime_ns, each.st_ctime_ns, each.st_dev, each.st_ino)
            for each in found
        ]
    )


def _taken(found: FoundSession) -> _Taken:
    info = structs.asdict(found.info)
    told = {name: info[name] for name in _Taken.__struct_fields__ if name in info}
    return _Taken(**told, is_plain=found.is_plain, file=found.file)


def _recalled(where: Place, found: _Taken) -> FoundSession:
    told = structs.asdict(found)
    is_plain, file = told.pop("is_plain"), told.pop("file")
    info = SessionInfo(
        id=where.session,
        name=where.session,
        client=clients.in_place().files.NAME,
        project=where.project,
        path=where.live,
        compactions=None,
        live_tail_bytes=None,
        is_running=False,
        is_restored=False,
        title=Title(),
        branch=None,
        started=None,
        ended=None,
        **told,
    )
    sight = Sight(Title(), found.standing, None, None, None, None, None)
    return FoundSession(info, sight, where, file, frozenset(), is_plain=is_plain)


def _figures(where: Place, outcome: Outcome) -> _Figures | None:
    """Return what to remember of an outcome; None if more than the session's files decided it.

    Of what is planned, that is only what goes to the archive: the rest is rare, or must be seen.
    """
    if where.pack.exists() or where.waiting.exists():
        return None  # these go by time
    if outcome.result == "planned" and outcome.segments:
        # More than the new live file and its segments take at once, with what is beside them.
        room = outcome.size + outcome.before + 2 * gain.BLOCK * (len(outcome.segments) + 16)
    elif outcome.result == "planned" and rollouts.is_one(where):
        room = outcome.size + rollouts.SPARE
    elif outcome.result == "nothing to do":
        room = 0
    else:
        return None
    found = _Figures(
        outcome.result, outcome.freed, outcome.size, outcome.gained, room, outcome.usual
    )
    return found if _has_room(where, found) else None


def _has_room(where: Place, figures: _Figures) -> bool:
    if not figures.room:  # of most: the system need not be asked
        return True
    free = fs.free_bytes(where.config)
    return free is None or free >= figures.room


def _unused(places: Iterable[Place]) -> Iterator[Place]:
    """Yield those of these sessions that nobody is known to use."""
    files = {}
    for where in places:
        with suppress(OSError):
            status = where.live.stat()
            files[where] = (status.st_dev, status.st_ino)
    written = in_use.written(frozenset(files.values())) if files else ()
    for where, file in files.items():
        if file not in written and not any(in_use.clients(where)):
            yield where


# ── where things stand ────────────────────────────────────────────────────────────────────────────


class Status(Struct, frozen=True):
    """The figures: what is on the disk, what tidying would gain, and what is done by itself.

    `gain` is in bytes, of `worth` sessions; `failing` are the ids of those that it would fail for,
    `kept` is how many stay whole because their owner restored them. `has_hook` and `has_schedule`
    are what runs by itself. `wrong` says what keeps it from running, the worst first. `doomed` is
    how many sessions the client deletes within a week that nothing saves. `others` are folders of
    the client that were not looked at. `last` is the last run, None if there was none.
    `hidden` is what may hide sessions (`find.hidden`), and `steps` say what else would free some.
    """

    clients: tuple[OnDisk, ...]
    gain: int
    worth: int
    failing: tuple[str, ...]
    kept: int
    has_hook: bool
    has_schedule: bool
    last: LastRun | None
    wrong: tuple[str, ...] = ()
    doomed: int = 0
    others: tuple[Path, ...] = ()
    hidden: dict[str, str] = field(default_factory=dict)
    steps: tuple[NextStep, ...] = ()


def look(settings: Settings, now: float, progress: Progress) -> Status:
    """Return where this machine stands; `now` is in seconds since 1970.

    Sessions are read of which nothing is remembered.
    """
    memory, marked, archives = Memory(), {*restored.marked()}, [*place.archives()]
    clients = tuple(next_steps.of_clients(archives, memory.sessions))
    known = _known(archives, clients)
    tidying, scope = settings.for_tidying, Scope(asks=True)
    try:
        planned = run.plan(tidying, now, progress, scope, recall=memory.recall, known=known)
    except BaseException:
        memory.keep(forgets=False)  # whoever does not wait asks again
        raise
    memory.keep()
    found = [each for _, each in planned.outcomes]
    gaining = [each for each in found if each.result == "planned" and each.gained > 0]
    failing = dict.fromkeys(each.session for each in found if each.result == "failed")
    schedule = installed()
    wrong = [*findings.not_running(schedule)]
    return Status(
        clients=clients,
        gain=sum(each.gained for each in gaining),
        worth=len({each.where for each in gaining}),
        failing=tuple(filter(None, failing)),
        kept=restored.whole(marked),
        has_hook=_has_hook(),
        has_schedule=schedule is not None,
        last=_last(),
        wrong=tuple(each.detail for each in wrong),
        doomed=_doomed(now, known, is_run=all(each.kind != "schedule" for each in wrong)),
        others=tuple(in_place().files.other_folders()),
        hidden=planned.hidden,
        steps=next_steps.after(found, clients, now, next_steps.left_alone(marked)),
    )


def _known(archives: Sequence[Place], clients: Iterable[OnDisk]) -> Known:
    claudes = [each for each in clients if each.client == in_place().files.NAME]
    live = (info for each in claudes for info in each.infos if info.is_live)
    plain = frozenset[Path]().union(*(each.plain for each in claudes))
    return Known(archives, {info.path: info.bytes for info in live}, plain)


def _doomed(now: float, known: Known, *, is_run: bool) -> int:
    """Return how many sessions the client deletes within a week, and no run saves in time."""
    if is_run and findings.saving_margin() is not None:
        return 0
    cleanup = in_place().cleanup
    return len(cleanup.doomed(cleanup.in_force(), findings.WEEK, now, known.sizes))


def _has_hook() -> bool:
    try:
        found = installation.installed()
    except SessrotateError:
        return False
    return bool(found.commands) and not found.missing and not in_place().calls.silenced()


def _last() -> LastRun | None:
    """Return the last run, also one that was killed; not one that goes on, and may end well."""
    with suppress(SessrotateError):
        return run_log.last(or_killed=not locks.is_held(place.run_lock()))
    return None
