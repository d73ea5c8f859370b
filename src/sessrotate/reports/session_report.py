"""A session → its report: how large it is, what of, and what a rotation would free.

Rule: only reads. Without kinds, that is the live file, the manifest, and samples of what is
put away and plain. With kinds, everything is read, and a damaged segment is reported and not
counted.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessrotate.archive import owner, state
from sessrotate.archive.place import Place
from sessrotate.clients.preview import Sight
from sessrotate.errors import DamagedError, StorageError, storage
from sessrotate.reading.session import Session, open_session
from sessrotate.reports import expected_gain, listing, segment_rows
from sessrotate.reports.counting import Counts, Tally
from sessrotate.reports.discovery import FoundSession
from sessrotate.reports.model import SegmentRow, SessionReport
from sessrotate.reports.segment_rows import Seen
from sessrotate.system import in_use

if TYPE_CHECKING:
    Progress = Callable[[int], None]
    """Is called with the number of bytes done."""


def of_session(path: Path, progress: Progress, *, kinds: Counts | None = None) -> SessionReport:
    """Return the report of the session that a path stands for (`find.path_of`).

    With `kinds`, all of it is read, and what is counted is added to them and put into the report.
    Raises what `open_session` raises.
    """
    where = owner.of(path)
    seen = Seen(is_running=False)
    if where is not None:
        seen = Seen(any(in_use.clients(where)), _sight(where))
    return _of(path, where, seen, progress, kinds)


def of_found(
    found: FoundSession, progress: Progress, *, running: Container[str], kinds: Counts | None = None
) -> SessionReport:
    """Return the report of a session that was found; its first and last bytes are not read again.

    `running` are the ids of sessions that clients say they are in. Otherwise as `of_session`.
    """
    seen = Seen(found.place is not None and found.info.id in running, found.sight)
    report = _of(path_of(found), found.place, seen, progress, kinds)
    # Of an empty file, only its name tells whose it is; of a copy, only the list what it is called.
    return replace(report, contents=None, client=found.info.client, id=found.info.id)


def _sight(where: Place) -> Sight | None:
    """Return what the first and last bytes of a session say, as lists have it."""
    found = listing.of([where]).get(where)
    return None if found is None else found.sight


def path_of(found: FoundSession) -> Path:
    """Return what a session that was found is opened by: its live file, or else its archive."""
    return found.info.path if found.info.is_live or found.place is None else found.place.archive


def _of(
    path: Path, where: Place | None, seen: Seen, progress: Progress, kinds: Counts | None
) -> SessionReport:
    known, to_tidy = None, 0
    if where is not None:
        known, to_tidy = _in_place(where, seen, progress, is_counted=kinds is None)
    if known is not None and kinds is None:
        return replace(known, to_tidy=to_tidy)
    with open_session(path, on_gap=lambda _gap: None) as session:
        found = segment_rows.of_session(session, where, known, seen, is_counted=kinds is None)
        found = replace(found, to_tidy=to_tidy)
        if kinds is None:
            return found
        tally = Tally(session.id, session.reader, session.bytes_of)
        segments = tuple(_tallied(session, found.segments, tally, progress))
        kinds.add(tally.counts)
        contents = tally.counts.contents()
        return replace(found, segments=segments, growth=tally.growth(), contents=contents)


def by_path(report: SessionReport) -> SessionReport:
    """Return the report with a command that names the session by its path, not by its id."""
    if report.command is None:
        return replace(report, by=report.path)
    *words, _ = shlex.split(report.command)
    return replace(report, command=shlex.join([*words, report.path]), by=report.path)


def _in_place(
    where: Place, seen: Seen, progress: Progress, *, is_counted: bool
) -> tuple[SessionReport | None, int]:
    """Return what the plan of a rotation says, and what `tidy` frees besides.

    There is no report if no plan can be made now.
    """
    with storage("read the session"), state.opened(where) as found:
        to_tidy = expected_gain.to_tidy(found)
        told = expected_gain.planned(found, progress)
        if told is None:
            return None, to_tidy
        plan, live, expected = told
        report = segment_rows.of_plan(found, live, plan, seen, expected, is_counted=is_counted)
        return report, to_tidy


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
