"""A session → its report: how large it is, what of, and what a rotation would free.

Rule: only reads. Without kinds, that is the live file and the manifest. With kinds, everything is
read, and a damaged segment is reported and not counted. Two ways lead to the same figures: for a
session in its client's folder, the plan of a rotation has them; whatever else holds a session is
opened and counted.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients
from sessrotate.archive import owner, restored, state
from sessrotate.archive.place import Place
from sessrotate.archive.state import State
from sessrotate.clients.preview import Sight
from sessrotate.errors import DamagedError, StorageError, printable, quoted, storage
from sessrotate.in_place import obstacles
from sessrotate.model import Segment, Span
from sessrotate.parsing import count
from sessrotate.reading import pieces
from sessrotate.reading.pieces import Holder
from sessrotate.reading.session import Session, open_session
from sessrotate.reports import (
    SegmentRow,
    SegmentState,
    SessionReport,
    counting,
    file_edges,
    listing,
)
from sessrotate.reports.counting import Counts, Tally
from sessrotate.reports.discovery import FoundSession
from sessrotate.segments import compressed
from sessrotate.system import in_use
from sessrotate.system.source import Source

if TYPE_CHECKING:
    Progress = Callable[[int], None]
    """Is called with the number of bytes done."""
    from sessrotate.in_place.gain import Forecast
    from sessrotate.in_place.rotate import RotationPlan
    from sessrotate.reading.pieces import SegmentInfo
    from sessrotate.reading.session import Session


# ── by segments ──────────────────────────────────────────────────────────────────────────────


_NEVER: Final = "It has not been compacted yet."
_NOT_LIVE: Final = (
    "None of its files is where its client looks: `sessrotate restore {id}` puts it back."
)
_SEGMENTS: Final = (
    "Its segments are not where a client looks: `sessrotate stitch {path} -o FILE` writes the "
    "session as one file."
)
_COMPRESSED: Final = "It is compressed already, and its client reads it in this form."
_NOT_NOW: Final = "An operation on it was interrupted; the next run of sessrotate finishes that."


class AtHand(Struct, frozen=True):
    """What is known of a session before its report: whether a client is in it, and its edges.

    `sight` is what the first and last bytes say, None of what is in no client's folder.
    """

    is_running: bool
    sight: Sight | None = None


def of_plan(
    found: State,
    source: Source,
    planned: RotationPlan,
    seen: AtHand,
    expected: Forecast,
    *,
    is_counted: bool,
) -> SessionReport:
    """Return what the plan of a rotation says; `source` is the session's live file.

    `expected` is what the rotation would gain the disk, and need of it.

    With `is_counted`, the lines of the live file are counted.
    """
    session, rows = found.place.session, [*_sealed(pieces.of_state(found))]
    for segment in (*planned.segments, planned.newest):
        lines = count(source.pieces(planned.in_live(segment.span)))[0] if is_counted else None
        rows.append(_row(segment, segment.span, lines, "live"))
    kept = " ".join(planned.refusals) or None
    if planned.live is None:
        kept = kept or f"It has not been compacted {planned.since}."
    return _report(
        found.place,
        seen.sight or file_edges.sight(session, file_edges.of_source(source, planned.end), b""),
        rows,
        is_running=seen.is_running,
        session=session,
        client=clients.in_place().files.NAME,
        path=found.place.live,
        live_bytes=planned.end,
        frees=expected.gained,
        kept=kept,
        lacks=obstacles.lacking(found.place.config, expected.need),
    )


def session_rows(
    session: Session,
    where: Place | None,
    known: SessionReport | None,
    seen: AtHand,
    *,
    is_counted: bool,
) -> SessionReport:
    """Return the report of an open session; `known` is what a plan says of it, if there is one.

    With `is_counted`, lines are counted in segments whose manifest does not tell.
    """
    rows = tuple(_opened(session, is_counted=is_counted))
    live = session.path.stat().st_size if session.path.is_file() else None
    if where is not None and live is None:  # put away whole: all of it is in the archive
        rows = tuple(replace(row, state="sealed") if row.state == "live" else row for row in rows)
    if known is not None:
        return replace(known, segments=rows, live_bytes=live, growth=counting.spread(rows))
    kept = _kept(session, where)
    if kept is None and len(rows) == 1:
        kept = _NEVER
    return _report(
        where,
        seen.sight or session.sight(),
        rows,
        is_running=seen.is_running,
        session=session.id,
        client=session.client,
        path=session.path,
        live_bytes=live,
        frees=rows[-1].start,
        kept=kept,
    )


def _report(
    where: Place | None,
    sight: Sight,
    rows: Sequence[SegmentRow],
    *,
    is_running: bool,
    session: str,
    client: str,
    path: Path,
    live_bytes: int | None,
    frees: int,
    kept: str | None,
    lacks: int = 0,
) -> SessionReport:
    """Return a report; `frees` is what a rotation would free unless the session is `kept`."""
    how = ["rotate", *(["--live"] if is_running else []), session]
    words = how if where is not None else ["split", str(path)]
    return SessionReport(
        id=session,
        client=client,
        path=str(path),
        folder=sight.folder,
        title=sight.title.text,
        is_running=is_running,
        live_bytes=live_bytes,
        segments=tuple(rows),
        would_free=frees if kept is None else 0,
        room_missing=lacks if kept is None else 0,
        command=shlex.join(["sessrotate", *words]) if kept is None else None,
        kept=kept,
        is_restored=where is not None and restored.is_marked(where),
        growth=counting.spread(rows),
    )


# ── segments ─────────────────────────────────────────────────────────────────────────────────


def _sealed(holder: Holder) -> Iterator[SegmentRow]:
    start = 0
    for each in holder.sealed:
        span = Span(start, start + (each.info.bytes or 0))
        yield _row(each.info, span, each.info.lines, "sealed", each.problem)
        start = span.end


def _opened(session: Session, *, is_counted: bool) -> Iterator[SegmentRow]:
    start = 0
    for info in session.segments:
        problem, lines, size = session.problem(info.index), info.lines, info.bytes
        if problem is None and (size is None or (lines is None and is_counted)):
            try:
                lines, size = count(session.pieces(info.index))
            except (DamagedError, StorageError) as error:
                problem = str(error)
        span = Span(start, start + (size or 0))
        yield _row(info, span, lines, info.standing, problem)
        start = span.end


def _row(
    segment: Segment | SegmentInfo,
    span: Span,
    lines: int | None,
    state: SegmentState,
    problem: str | None = None,
) -> SegmentRow:
    return SegmentRow(
        index=segment.index,
        start=span.start,
        bytes=span.size,
        lines=lines,
        boundary=segment.boundary,
        first_timestamp=segment.first_timestamp,
        last_timestamp=segment.last_timestamp,
        state=state if problem is None else "absent",
        problem=problem,
    )


def _kept(session: Session, where: Place | None) -> str | None:
    """Return why nothing can be moved out of the client's folder, None if something can."""
    if where is not None:
        return _NOT_NOW if where.live.exists() else _NOT_LIVE.format(id=printable(session.id))
    if session.segments[0].standing != "live":
        return _SEGMENTS.format(path=quoted(session.path))
    if compressed.is_session(session.path.name):
        return _COMPRESSED
    same = (each for each in clients.clients() if session.client == each.NAME)
    refusal = next((client.NOT_IN_PLACE for client in same), None)
    if refusal is not None:
        return f"It cannot be rotated where it is: {refusal}"
    return None


# ── a report ─────────────────────────────────────────────────────────────────────────────────


def of_session(path: Path, progress: Progress, *, kinds: Counts | None = None) -> SessionReport:
    """Return the report of the session that a path stands for (`find.path_of`).

    With `kinds`, all of it is read, and what is counted is added to them and put into the report.
    Raises what `open_session` raises.
    """
    where = owner.of(path)
    seen = AtHand(is_running=False)
    if where is not None:
        owner.check_own(where)  # before anything behind a link is looked at
        seen = AtHand(any(in_use.clients(where)), _sight(where))
    return _of(path, where, seen, progress, kinds)


def of_found(
    found: FoundSession, progress: Progress, *, running: Container[str], kinds: Counts | None = None
) -> SessionReport:
    """Return the report of a session that was found; its first and last bytes are not read again.

    `running` are the ids of sessions that clients say they are in. Otherwise as `of_session`.
    """
    seen = AtHand(found.place is not None and found.info.id in running, found.sight)
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
    path: Path, where: Place | None, seen: AtHand, progress: Progress, kinds: Counts | None
) -> SessionReport:
    known = None
    if where is not None:
        known = _in_place(where, seen, progress, is_counted=kinds is None)
    if known is not None and kinds is None:
        return known
    with open_session(path, on_gap=lambda _gap: None) as session:
        found = session_rows(session, where, known, seen, is_counted=kinds is None)
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
    where: Place, seen: AtHand, progress: Progress, *, is_counted: bool
) -> SessionReport | None:
    """Return what the plan of a rotation says, None if no plan can be made now."""
    with storage("read the session"), state.opened(where) as found:
        told = listing.planned(found, progress)
        if told is None:
            return None
        plan, live, expected = told
        return of_plan(found, live, plan, seen, expected, is_counted=is_counted)


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
