"""All sessions of the machine → one report: totals, growth, and which sessions to rotate.

Rule: a session that cannot be read, or that disappears meanwhile, is reported and left out; the
others are counted. A process has one session open at a time.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import accumulate, pairwise
from typing import Final

from msgspec.structs import replace

from sessrotate import clients
from sessrotate.archive import restored
from sessrotate.clients.in_place import Cleanup
from sessrotate.errors import SessrotateError
from sessrotate.in_place import gain
from sessrotate.reports import (
    MachineReport,
    NextStep,
    SessionInfo,
    SessionReport,
    Total,
    UnreadSession,
    counting,
    discovery,
    next_steps,
    session_report,
)
from sessrotate.reports.counting import Counts
from sessrotate.reports.discovery import FoundSession
from sessrotate.reports.in_parallel import mapped, taken
from sessrotate.system import in_use

WORTH_TWO: Final = 1_000
"""Sessions, of more than 1 ms each, that are worth a second process."""


class Errors:
    """What could not be read, each reported once; `is_any` is whether any of it still exists."""

    def __init__(self, on_error: Callable[[UnreadSession], None]) -> None:
        self.is_any = False
        self._unread: dict[str, UnreadSession] = {}
        self._on_error: Final = on_error

    @property
    def unread(self) -> tuple[UnreadSession, ...]:
        """Everything that was reported."""
        return tuple(self._unread.values())

    def told(self, path: str, reason: str) -> None:
        """Report what could not even be listed."""
        self.is_any = True
        self._note(UnreadSession(path, reason))

    def failed(self, unread: UnreadSession) -> None:
        """Report a session that could not be read; if it disappeared, that is not a failure."""
        self.is_any = self.is_any or os.path.lexists(unread.path)
        self._note(unread)

    def _note(self, unread: UnreadSession) -> None:
        if self._unread.setdefault(unread.path, unread) is unread:
            self._on_error(unread)


def found(errors: Errors) -> list[FoundSession]:
    """Return all sessions of all clients, largest first, with those that nobody used."""
    found = discovery.sessions(unread=errors.told)
    listed = [each for each in found if each.info.is_there]
    return sorted(listed, key=lambda each: (-each.info.bytes, each.info.path))


def size(listed: Iterable[FoundSession], *, kinds: bool) -> int:
    """Return about how many bytes will be read."""
    return sum(each.info.bytes + kinds * (each.info.archived_bytes or 0) for each in listed)


def of_machine(
    listed: list[FoundSession], progress: Callable[[int], None], errors: Errors, *, kinds: bool
) -> MachineReport:
    """Return the report of these sessions; `progress` is called with the bytes done.

    The list is empty afterwards: each session is let go of when its report is made.
    """
    counts = Counts() if kinds else None
    sessions: list[SessionReport] = []
    disk_bytes = sum(each.info.disk_bytes for each in listed)
    side_bytes = sum(each.info.side_bytes for each in listed)
    infos = [each.info for each in listed]
    for report, done in _reports(listed, progress, counts):
        if isinstance(report, UnreadSession):
            errors.failed(report)
        else:
            sessions.append(report)
        progress(done)
    ids = Counter(session.id for session in sessions)
    sessions = [session_report.by_path(each) if ids[each.id] > 1 else each for each in sessions]
    sessions.sort(key=lambda session: (-session.bytes, session.path))
    return MachineReport(
        sessions=tuple(sessions),
        clients=_totals(sessions, lambda session: session.client),
        projects=_totals(sessions, lambda session: session.folder or ""),
        growth=counting.together(session.growth for session in sessions),
        worth=_worth(sessions),
        unread=errors.unread,
        contents=None if counts is None else counts.contents(),
        trash_bytes=restored.trash_bytes(),
        disk_bytes=disk_bytes,
        side_bytes=side_bytes,
        next_steps=_steps(infos, sessions),
    )


def _steps(infos: Iterable[SessionInfo], reports: Iterable[SessionReport]) -> tuple[NextStep, ...]:
    worth = [each for each in reports if each.would_free >= gain.WORTH]
    planned = next_steps.Planned(
        after={each.id: each.live_tail for each in worth},
        uncut={each.id for each in reports if each.compactions == 0},
        left=next_steps.left_alone(restored.marked()),
    )
    return next_steps.of(infos, time.time(), planned)


def _reports(
    listed: list[FoundSession], progress: Callable[[int], None], counts: Counts | None
) -> Iterator[tuple[SessionReport | UnreadSession, int]]:
    """Yield the report of each session, or why there is none, with the bytes done; empty the list.

    What is counted is counted in this process, and takes long.
    """
    written = in_use.written({each.file for each in listed if each.file is not None})
    rule = clients.in_place().cleanup.in_force()
    running = discovery.running(listed) | {each.info.id for each in listed if each.file in written}
    done = [*accumulate((size([each], kinds=counts is not None) for each in listed), initial=0)]
    if counts is None:  # no progress within a session: most take milliseconds
        reports = mapped(
            lambda each: _report(each, lambda _done: None, running, None, rule), listed, WORTH_TWO
        )
        yield from zip(reports, done[1:], strict=True)
        return
    for each, (before, after) in zip(taken(listed), pairwise(done), strict=True):
        yield _report(each, partial(_onward, progress, before), running, counts, rule), after


def _report(
    found: FoundSession,
    progress: Callable[[int], None],
    running: Container[str],
    counts: Counts | None,
    rule: Cleanup,
) -> SessionReport | UnreadSession:
    try:
        report = session_report.of_found(found, progress, running=running, kinds=counts)
    except SessrotateError as error:
        return UnreadSession(str(session_report.path_of(found)), str(error))
    return replace(report, disk_bytes=found.info.disk_bytes, deletes_at=_deletes_at(found, rule))


def _deletes_at(found: FoundSession, rule: Cleanup) -> float | None:
    """Return when its client deletes a session that nobody uses, in seconds since 1970."""
    if found.place is None or not found.info.is_live:
        return None
    with suppress(OSError):
        cleanup = found.place.client.cleanup
        is_desktop = rule.ceiling != rule.period and cleanup.is_desktop(found.info.path)
        return rule.deletes_at(found.info.path.stat(), is_desktop=is_desktop)
    return None


def _onward(progress: Callable[[int], None], before: int, done: int) -> None:
    progress(before + done)


def _totals(
    sessions: Iterable[SessionReport], name: Callable[[SessionReport], str]
) -> tuple[Total, ...]:
    """Return the sums by name and client."""
    groups: dict[tuple[str, str], list[SessionReport]] = {}
    for session in sessions:
        groups.setdefault((name(session), session.client), []).append(session)
    totals = (
        Total(
            name=named,
            client=client,
            sessions=len(group),
            bytes=sum(session.bytes for session in group),
            archived_bytes=sum(session.archived_bytes for session in group),
            would_free=sum(session.would_free for session in group),
        )
        for (named, client), group in groups.items()
    )
    return tuple(sorted(totals, key=lambda total: (-total.bytes, total.name, total.client)))


def _worth(sessions: Iterable[SessionReport]) -> tuple[SessionReport, ...]:
    """Return the sessions whose rotation would free at least `gain.WORTH` bytes, most first."""
    freeing = (each for each in sessions if each.would_free >= gain.WORTH and each.command)
    return tuple(sorted(freeing, key=lambda each: (-each.would_free, each.path)))
