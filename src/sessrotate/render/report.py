"""Reports → tables for people, with a bar in each row. Pure.

Rule: the largest comes first in a table, and what to do comes last. Text from a session is made
harmless and cut to size. Without a terminal, rows are plain and complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from sessrotate import render, safe_text
from sessrotate.in_place.gain import WORTH
from sessrotate.render import count, segment_table, size
from sessrotate.render.columns import Canvas, Columns, TableRow, cut, cut_middle, table, width
from sessrotate.reports import (
    Contents,
    Day,
    MachineReport,
    SegmentRow,
    SessionReport,
    Share,
    Total,
    counting,
)

Each = TypeVar("Each")

_ROWS: Final = 15
"""Rows of a table on a terminal; tables of segments and periods have more."""

_SEGMENTS: Final = 25
_TITLE: Final = 48

_REMARKS: Final = {"absent": "gone", "sealed": "archived", "live": ""}
_PARTS: Final = Columns(
    ("#", "size", "lines", "compacted", "by", "tokens", "until", ""),
    left=frozenset({"compacted", "by", "until", ""}),
    expendable=("until", "lines", "by", "compacted"),
)
_SHARES: Final = Columns(
    ("", "size", "share", "lines"), left=frozenset({""}), expendable=("lines",)
)
_LARGEST: Final = Columns(
    ("size", "kind", "segment", "at byte", "session"),
    left=frozenset({"kind", "session"}),
    expendable=("session",),
)
_GROWTH: Final = Columns(("written", "size"), left=frozenset({"written"}))
_CLIENTS: Final = Columns(
    ("client", "sessions", "size", "archived", "could go"),
    left=frozenset({"client"}),
    expendable=("archived", "sessions"),
)
_PROJECTS: Final = Columns(
    ("project", *_CLIENTS.titles),
    left=frozenset({"project", "client"}),
    expendable=("archived", "sessions"),
)
_WORTH: Final = Columns(
    ("frees", "of", "session", "command"),
    left=frozenset({"session", "command"}),
    expendable=("session", "of"),
)


def session(report: SessionReport, canvas: Canvas) -> Iterator[str]:
    """Yield the lines of a session's report."""
    title = safe_text.line(report.title)
    if title:
        yield canvas.paint("bold", cut(title, canvas.width or width(title)))
    where = [report.id, report.client, report.folder or "", "running" if report.is_running else ""]
    yield canvas.paint("dim", " · ".join(safe_text.line(each) for each in where if each))
    yield ""
    yield _heading(report)
    yield from _segments(report.segments, canvas)
    yield from _contents(report.contents, report.bytes, canvas)
    if len(report.growth) > 1:
        yield from _growth(report.growth, canvas)
    yield ""
    yield from _advice(report, canvas)


def machine(report: MachineReport, canvas: Canvas) -> Iterator[str]:
    """Yield the lines of the report of all sessions."""
    archived = f", {size(report.archived_bytes)} of it archived" if report.archived_bytes else ""
    sessions = count(len(report.sessions), "session")
    due = f", {size(report.trash_bytes)} of it until a grace period is over"
    trash = due if report.trash_bytes else ""
    is_elsewhere = report.archived_bytes or report.trash_bytes or report.side_bytes
    is_elsewhere = is_elsewhere or any(each.compressed_bytes for each in report.sessions)
    disk = f"; {size(report.disk_bytes)} on disk" if is_elsewhere else ""
    whole = f"{size(report.bytes)} in {count(report.lines, 'line')}"
    beside = f", {size(report.side_bytes)} beside" if report.side_bytes else ""
    yield f"{sessions}: {whole}{archived}{disk}{trash}{beside}"
    if not report.sessions:
        return
    yield from _totals(_CLIENTS, report.clients, canvas, lambda each: each.client)
    yield from _totals(_PROJECTS, report.projects, canvas, _folder, lambda each: each.client)
    yield from _contents(report.contents, report.bytes, canvas, many=True)
    yield from _growth(report.growth, canvas)
    yield from _worth(report, canvas)
    yield from render.further(report.next_steps)


def _heading(report: SessionReport) -> str:
    parts = [
        f"{size(report.bytes)} in {count(report.lines, 'line')}",
        count(len(report.segments), "segment"),
    ]
    if report.archived_bytes:
        parts.append(f"{size(report.archived_bytes)} archived")
    if report.compressed_bytes:
        parts.append(f"compressed to {size(report.compressed_bytes)}")
    first, last = report.first_timestamp, report.last_timestamp
    if first is not None:
        days = (safe_text.line(render.time(time or "")[:10]) for time in (first, last))
        parts.append(" to ".join(days))
    return ", ".join(parts)


def _segments(segments: Sequence[SegmentRow], canvas: Canvas) -> Iterator[str]:
    shown = segments if canvas.width is None else segments[-_SEGMENTS:]
    largest = max((segment.bytes for segment in segments), default=0) or 1
    rows = [
        TableRow(
            (
                str(segment.index),
                size(segment.bytes),
                "-" if segment.lines is None else f"{segment.lines:,}",
                *segment_table.compaction(segment.boundary),
                safe_text.clipped(render.time(segment.last_timestamp), 19),
                "live tail"
                if segment.state == "live" and segment is segments[-1]
                else _REMARKS[segment.state],
            ),
            segment.bytes / largest,
            {"absent": "wrong", "sealed": "dim"}.get(segment.state, ""),
        )
        for segment in shown
    ]
    yield ""
    if len(shown) < len(segments):
        older = segments[: -len(shown)]
        held = size(sum(segment.bytes for segment in older))
        yield canvas.paint(
            "dim", f"{count(len(older), 'older segment')} ({held}) not shown: --json shows all"
        )
    yield from table(_PARTS, rows, canvas)
    # Several that were pruned together have one sentence.
    for problem in dict.fromkeys(filter(None, (each.problem for each in segments))):
        yield canvas.paint("wrong", safe_text.line(problem))


def _advice(report: SessionReport, canvas: Canvas) -> Iterator[str]:
    if report.live_bytes is None and report.kept is not None:
        yield safe_text.line(report.kept)
        return
    tail = f"The live tail is {size(report.live_tail)}"
    if report.command is None:
        why = safe_text.line(report.kept or "")
        yield f"{tail}. There is nothing to rotate now: {why[:1].lower()}{why[1:]}"
        return
    if report.command.startswith("sessrotate rotate"):
        moved = (report.live_bytes or 0) - report.live_tail
        freed = f"free about {size(report.would_free)} on disk"
        yield f"{tail}. Rotating would move {size(moved)} to the archive, and {freed}:"
    else:
        before = f"{size(report.would_free)} comes before the last compaction"
        yield f"{tail}; {before}. To cut it into segments:"
    yield canvas.paint("bold", f"  {safe_text.line(report.command)}")
    if report.room_missing:
        yield f"The disk has no room for that: free {size(report.room_missing)} more first."


def _contents(
    contents: Contents | None, whole: int, canvas: Canvas, *, many: bool = False
) -> Iterator[str]:
    if contents is None:
        return
    yield from _shares("kinds of lines", contents.kinds, whole, canvas)
    yield from _shares("results of tools", contents.tools, whole, canvas)
    yield from _shares("copies of", contents.copies, whole, canvas)
    unique = whole - contents.copied
    yield ""
    yield f"{size(unique)} ({unique / (whole or 1):.1%}) is unique."
    largest = max((line.bytes for line in contents.largest), default=1)
    columns = _LARGEST if many else Columns(_LARGEST.titles[:-1], _LARGEST.left)
    rows = []
    for line in contents.largest:
        kind = line.kind if line.tool is None else f"{line.kind}, {_name(line.tool)}"
        cells = (size(line.bytes), kind, str(line.segment), f"{line.within:,}")
        where = (safe_text.clipped(line.session, 40),) if many else ()
        rows.append(TableRow(cells + where, line.bytes / largest))
    yield ""
    yield "largest lines"
    yield from table(columns, rows, canvas)


def _name(tool: str) -> str:
    return safe_text.clipped(tool, 32)


def _shares(title: str, shares: Sequence[Share], whole: int, canvas: Canvas) -> Iterator[str]:
    def cells(share: Share) -> tuple[str, ...]:
        part = f"{share.bytes / (whole or 1):.1%}"
        return _name(share.name), size(share.bytes), part, f"{share.lines:,}"

    if shares:
        columns = _titled(title, _SHARES)
        yield from _largest(columns, shares, cells, lambda share: share.bytes, canvas)


def _largest(
    columns: Columns,
    items: Sequence[Each],
    cells: Callable[[Each], tuple[str, ...]],
    weight: Callable[[Each], int],
    canvas: Canvas,
) -> Iterator[str]:
    """Yield a table of items, the heaviest first; on a terminal only of those, and the rest's sum.

    `weight` is in bytes.
    """
    most = max(map(weight, items), default=0) or 1
    cut = len(items) if canvas.width is None else _ROWS
    yield ""
    yield from table(
        columns, [TableRow(cells(each), weight(each) / most) for each in items[:cut]], canvas
    )
    if rest := items[cut:]:
        yield canvas.paint("dim", f"and {len(rest):,} more ({size(sum(map(weight, rest)))})")


def _titled(title: str, columns: Columns) -> Columns:
    """Return columns the first of which has this title."""
    return replace(columns, titles=(title, *columns.titles[1:]), left=columns.left | {title})


def _growth(days: Sequence[Day], canvas: Canvas) -> Iterator[str]:
    periods = counting.by_period(days, _SEGMENTS)
    largest = max(periods.values(), default=0) or 1
    rows = [TableRow((period, size(held)), held / largest) for period, held in periods.items()]
    if rows:
        yield ""
        yield from table(_GROWTH, rows[-_SEGMENTS:], canvas)


def _totals(
    columns: Columns, totals: Sequence[Total], canvas: Canvas, *names: Callable[[Total], str]
) -> Iterator[str]:
    def cells(total: Total) -> tuple[str, ...]:
        parts = (total.archived_bytes, total.would_free)
        shown = (size(part) if part else "-" for part in parts)
        called = (name(total) for name in names)
        return *called, f"{total.sessions:,}", size(total.bytes), *shown

    return _largest(columns, totals, cells, lambda total: total.bytes, canvas)


def _folder(total: Total) -> str:
    """Return a project's folder, cut in its middle where it is too long."""
    return cut_middle(safe_text.line(total.name) or "(not known)", _TITLE)


def _worth(report: MachineReport, canvas: Canvas) -> Iterator[str]:
    if not report.worth:
        yield ""
        why = f"worth rotating: none would free {size(WORTH)} or more on disk"
        if report.clients and all(each.client != "claude" for each in report.clients):
            why = "rotated: only those of Claude Code are"
        yield f"No session is {why}."
        return

    def cells(each: SessionReport) -> tuple[str, ...]:
        title = cut(safe_text.line(each.title), _TITLE // 2)
        freed, live = size(each.would_free), size(each.live_bytes or 0)
        return freed, live, title, safe_text.line(each.command or "")

    yield from _largest(_WORTH, report.worth, cells, lambda each: each.would_free, canvas)
    restored = [each for each in report.worth if each.is_restored]
    used = [each for each in report.worth if each.is_running and not each.is_restored]
    tidied = [each for each in report.worth if not (each.is_running or each.is_restored)]
    yield ""
    if tidied:
        freed = size(sum(each.would_free for each in tidied))
        many = count(len(tidied), "session")
        yield f"Rotating {many} would free about {freed} on disk. To do that:"
        yield canvas.paint("bold", "  sessrotate tidy")
    if used:
        freed = size(sum(each.would_free for each in used))
        whose = "its client" if len(used) == 1 else "their clients"
        more = f"{freed} more" if tidied else freed
        yield f"{count(len(used), 'session')} in use would free about {more}: close {whose} first."
    if restored:
        freed = size(sum(each.would_free for each in restored))
        many, it = count(len(restored), "session"), "it" if len(restored) == 1 else "each"
        yield f"{many} that you restored would free about {freed}: rotate {it} by name, as above."
    if cramped := sum(each.room_missing > 0 for each in [*tidied, *used]):
        which = "it" if len(tidied) + len(used) == 1 else f"{cramped:,} of them"
        yield f"The disk is too full for {which} now: `sessrotate tidy -n` says what is missing."
