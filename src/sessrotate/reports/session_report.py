"""A session → its report: how large it is, what of, and what a rotation would free.

Rule: only reads. Without kinds, only the live file is read, and the archive is what its manifest
says. With kinds, everything is read, and a damaged segment is reported and not counted.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from sessrotate.archive import place, state
from sessrotate.clients.claude import client as claude
from sessrotate.errors import DamagedError, StorageError, storage
from sessrotate.in_place import rotate
from sessrotate.reading.session import open_session
from sessrotate.reports import growth, segment_rows
from sessrotate.reports.counting import Counts, Tally
from sessrotate.reports.model import SessionReport
from sessrotate.system import in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.clients.preview import Sight
    from sessrotate.reading.session import Session
    from sessrotate.reports.discovery import FoundSession
    from sessrotate.reports.model import SegmentRow
    from sessrotate.reports.segment_rows import SegmentRows

    Progress = Callable[[int], None]
    """Is called with the number of bytes done."""


def of_session(path: Path, progress: Progress, *, kinds: Counts | None = None) -> SessionReport:
    """Return the report of the session that a path stands for (`find.path_of`).

    With `kinds`, all of it is read, and what is counted is added to them and put into the report.
    Raises what `open_session` raises.
    """
    return _of(path, place.of(path), None, progress, kinds)


def of_found(
    found: FoundSession, progress: Progress, *, kinds: Counts | None = None
) -> SessionReport:
    """Return the report of a session that was found; its first and last bytes are not read again.

    Otherwise as `of_session`.
    """
    report = _of(path_of(found), found.place, found.preview, progress, kinds)
    return report if report.contents is None else replace(report, contents=None)


def path_of(found: FoundSession) -> Path:
    """Return what a session that was found is opened by: its live file, or else its archive."""
    return found.path if found.bytes is not None or found.place is None else found.place.archive


def _of(
    path: Path, where: Place | None, seen: Sight | None, progress: Progress, kinds: Counts | None
) -> SessionReport:
    known = None if where is None else _in_place(where, seen, progress, is_counted=kinds is None)
    if known is not None and where is not None and kinds is None:
        return _report(where.session, claude.NAME, where.live, where, known)
    with open_session(path, on_gap=lambda _gap: None) as session:
        found = segment_rows.of_session(session, where, known, seen, is_counted=kinds is None)
        if kinds is None:
            return _report(session.id, session.client, session.path, where, found)
        tally = Tally(session.id, session.reader, session.bytes_of)
        found = replace(found, segments=tuple(_tallied(session, found.segments, tally, progress)))
        kinds.add(tally.counts)
        report = _report(session.id, session.client, session.path, where, found)
        return replace(report, growth=tally.growth(), contents=tally.counts.contents())


def by_path(report: SessionReport) -> SessionReport:
    """Return the report with a command that names the session by its path, not by its id."""
    if report.command is None:
        return report
    *words, _ = shlex.split(report.command)
    return replace(report, command=shlex.join([*words, report.path]))


def _command(session: str, path: Path, where: Place | None, *, is_running: bool) -> str:
    if where is None:
        return shlex.join(["sessrotate", "split", str(path)])
    live = ["--live"] if is_running else []
    return shlex.join(["sessrotate", "split", "--in-place", *live, session])


def _report(
    session: str, client: str, path: Path, where: Place | None, found: SegmentRows
) -> SessionReport:
    is_running = where is not None and any(in_use.clients(where))
    command = _command(session, path, where, is_running=is_running)
    return SessionReport(
        id=session,
        client=client,
        path=str(path),
        folder=found.sight.folder,
        title=found.sight.title.text,
        is_running=is_running,
        live_bytes=found.live_bytes,
        segments=found.segments,
        would_free=found.would_free,
        command=command if found.kept is None else None,
        kept=found.kept,
        growth=growth.spread(found.segments),
    )


def _in_place(
    where: Place, seen: Sight | None, progress: Progress, *, is_counted: bool
) -> SegmentRows | None:
    """Return what the plan of a rotation says; None if no plan can be made now.

    A plan needs a live file that continues its archive, and no unfinished operation.
    """
    with storage("read the session"), state.opened(where) as found:
        if found.live is None or found.is_gone or found.is_archived:
            return None
        if found.intent is not None or found.pack is not None or found.problem is not None:
            return None
        planned = rotate.prepare(found, progress)
        return segment_rows.of_plan(found, found.live, planned, seen, is_counted=is_counted)


def _tallied(
    session: Session, segments: tuple[SegmentRow, ...], tally: Tally, progress: Progress
) -> Iterator[SegmentRow]:
    """Yield the segments with their lines and bytes, as counted."""
    start = 0
    for segment in segments:
        if segment.state == "absent":
            yield segment
            start = segment.end
            continue
        try:
            told = _watched(session.pieces(segment.index), start, progress)
            lines, size = tally.segment(told, segment.index, start)
            yield replace(segment, start=start, lines=lines, bytes=size)
            start += size
        except (DamagedError, StorageError) as error:
            yield replace(segment, start=start, state="absent", problem=str(error))
            start += segment.bytes


def _watched(
    pieces: Iterator[bytes | memoryview], done: int, progress: Progress
) -> Iterator[bytes | memoryview]:
    for piece in pieces:
        yield piece
        done += len(piece)
        progress(done)
