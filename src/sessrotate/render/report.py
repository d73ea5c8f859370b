"""Reports → tables for people, with a bar in each row. Pure.

Rule: the largest comes first in a table, and what to do comes last. Text from a session is made
harmless and cut to size. Without a terminal, rows are plain and complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from sessrotate import safe_text
from sessrotate.render import common
from sessrotate.render.columns import Canvas, Columns, Row, table
from sessrotate.render.common import count, size
from sessrotate.render.widths import cut, cut_middle, width
from sessrotate.reports import growth

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sessrotate.reports.model import (
        Contents,
        Day,
        MachineReport,
        SegmentRow,
        SessionReport,
        Share,
        Total,
    )

Each = TypeVar("Each")

_ROWS: Final = 15
"""Rows of a table on a terminal; tables of segments and periods have more."""

_SEGMENTS: Final = 25
_TITLE: Final = 48

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
_GROWTH: Final = Columns(("", "size"), left=frozenset({""}))
_TOTALS: Final = Columns(
    ("", "sessions", "size", "archived", "could go"),
    left=frozenset({""}),
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
    yield f"{sessions}: {size(report.bytes)} in {count(report.lines, 'line')}{archived}"
    if not report.sessions:
        return
    yield from _totals("client", report.clients, canvas)
    yield from _totals("project", report.projects, canvas)
    yield from _contents(report.contents, report.bytes, canvas, many=True)
    yield from _growth(report.growth, canvas)
    yield from _worth(report, canvas)


# ── one session ──────────────────────────────────────────────────────────────────────────────


def _heading(report: SessionReport) -> str:
    parts = [f"{size(report.bytes)} in {count(report.lines, 'line')}"]
    parts.append(count(len(report.segments), "segment"))
    if report.archived_bytes:
        parts.append(f"{size(report.archived_bytes)} archived")
    first, last = report.first_timestamp, report.last_timestamp
    if first is not None:
        parts.append(f"{_day(first)} to {_day(last)}")
    return ", ".join(parts)


def _day(time: str | None) -> str:
    return safe_text.line((time or "")[:10])


def _segments(segments: Sequence[SegmentRow], canvas: Canvas) -> Iterator[str]:
    shown = segments if canvas.width is None else segments[-_SEGMENTS:]
    largest = max((segment.bytes for segment in segments), default=0) or 1
    rows = [
        Row(
            (
                str(segment.index),
                size(segment.bytes),
                "-" if segment.lines is None else f"{segment.lines:,}",
                *_compaction(segment),
                safe_text.clipped(common.time(segment.last_timestamp), 19),
                _remark(segment, is_last=segment is segments[-1]),
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
    for segment in segments:
        if segment.problem is not None:
            yield canvas.paint("wrong", safe_text.line(segment.problem))


def _compaction(segment: SegmentRow) -> tuple[str, str, str]:
    boundary = segment.boundary
    if boundary is None:
        return "-", "-", "-"
    tokens = "-" if boundary.pre_tokens is None else f"{boundary.pre_tokens:,}"
    return (
        safe_text.clipped(common.time(boundary.timestamp), 19),
        safe_text.clipped(boundary.trigger or "-", 12),
        tokens,
    )


def _remark(segment: SegmentRow, *, is_last: bool) -> str:
    if segment.state == "absent":
        return "gone"
    if segment.state == "sealed":
        return "archived"
    return "live tail" if is_last else ""


def _advice(report: SessionReport, canvas: Canvas) -> Iterator[str]:
    tail = f"The live tail is {size(report.live_tail)}"
    if report.command is None:
        yield f"{tail}. Rotating would free nothing: {_lowered(report.kept or '')}"
        return
    freed = f"{size(report.would_free)} ({report.would_free / (report.live_bytes or 1):.1%})"
    if "--in-place" in report.command:
        yield f"{tail}. Rotating would move {freed} out of the live file:"
    else:
        yield f"{tail}; {freed} come before the last compaction. To cut it into segments:"
    yield canvas.paint("bold", f"  {safe_text.line(report.command)}")


def _lowered(sentence: str) -> str:
    text = safe_text.line(sentence)
    return text[:1].lower() + text[1:]


# ── what lines are ───────────────────────────────────────────────────────────────────────────


def _contents(
    contents: Contents | None, whole: int, canvas: Canvas, *, many: bool = False
) -> Iterator[str]:
    if contents is None:
        return
    yield from _shares("what lines are", contents.kinds, whole, canvas)
    yield from _shares("results of tools", contents.tools, whole, canvas)
    copied = contents.duplicate_bytes
    yield ""
    yield (
        f"{count(contents.duplicate_lines, 'line')} ({size(copied)}, {copied / (whole or 1):.1%}) "
        "are copies of others in the same session."
    )
    largest = max((line.bytes for line in contents.largest), default=1)
    rows = [
        Row(
            (
                size(line.bytes),
                line.kind if line.tool is None else f"{line.kind}, {_name(line.tool)}",
                str(line.segment),
                f"{line.within:,}",
                safe_text.clipped(line.session, 40) if many else "",
            ),
            line.bytes / largest,
        )
        for line in contents.largest
    ]
    columns = _LARGEST if many else Columns(_LARGEST.titles[:-1], _LARGEST.left)
    if not many:
        rows = [Row(row.cells[:-1], row.share) for row in rows]
    yield ""
    yield "largest lines"
    yield from table(columns, rows, canvas)


def _name(tool: str) -> str:
    return safe_text.clipped(tool, 32)


def _shares(title: str, shares: Sequence[Share], whole: int, canvas: Canvas) -> Iterator[str]:
    shown = _cut(shares, canvas)
    largest = max((share.bytes for share in shares), default=0) or 1
    rows = [
        Row(
            (
                _name(share.name),
                size(share.bytes),
                f"{share.bytes / (whole or 1):.1%}",
                f"{share.lines:,}",
            ),
            share.bytes / largest,
        )
        for share in shown
    ]
    if rows:
        yield ""
        yield from _titled(title, _SHARES, rows, canvas)
        yield from _rest(
            len(shares) - len(shown), sum(each.bytes for each in shares[len(shown) :]), canvas
        )


def _titled(title: str, columns: Columns, rows: Sequence[Row], canvas: Canvas) -> Iterator[str]:
    """Yield a table whose first column has this title."""
    titles = (title, *columns.titles[1:])
    return table(Columns(titles, columns.left | {title}, columns.expendable), rows, canvas)


def _cut(rows: Sequence[Each], canvas: Canvas) -> Sequence[Each]:
    return rows if canvas.width is None else rows[:_ROWS]


def _rest(number: int, held: int, canvas: Canvas) -> Iterator[str]:
    if number:
        yield canvas.paint("dim", f"and {number:,} more ({size(held)})")


def _growth(days: Sequence[Day], canvas: Canvas) -> Iterator[str]:
    periods = growth.by_period(days, _SEGMENTS)
    largest = max(periods.values(), default=0) or 1
    rows = [Row((period, size(held)), held / largest) for period, held in periods.items()]
    if rows:
        yield ""
        yield from _titled("written", _GROWTH, rows[-_SEGMENTS:], canvas)


# ── all sessions ─────────────────────────────────────────────────────────────────────────────


def _totals(title: str, totals: Sequence[Total], canvas: Canvas) -> Iterator[str]:
    shown = _cut(totals, canvas)
    largest = max((total.bytes for total in totals), default=0) or 1
    rows = [
        Row(
            (
                _folder(total.name),
                f"{total.sessions:,}",
                size(total.bytes),
                size(total.archived_bytes) if total.archived_bytes else "-",
                size(total.would_free) if total.would_free else "-",
            ),
            total.bytes / largest,
        )
        for total in shown
    ]
    yield ""
    yield from _titled(title, _TOTALS, rows, canvas)
    yield from _rest(
        len(totals) - len(shown), sum(each.bytes for each in totals[len(shown) :]), canvas
    )


def _folder(path: str) -> str:
    """Return a folder, cut in its middle where it is too long."""
    return cut_middle(safe_text.line(path) or "(not known)", _TITLE)


def _worth(report: MachineReport, canvas: Canvas) -> Iterator[str]:
    yield ""
    if not report.worth:
        yield "No session is worth rotating: it would free little or nothing."
        return
    shown = _cut(report.worth, canvas)
    largest = report.worth[0].would_free
    rows = [
        Row(
            (
                size(each.would_free),
                size(each.bytes),
                cut(safe_text.line(each.title), _TITLE // 2),
                safe_text.line(each.command),
            ),
            each.would_free / largest,
        )
        for each in shown
    ]
    yield from table(_WORTH, rows, canvas)
    freed = sum(each.would_free for each in report.worth)
    yield from _rest(
        len(report.worth) - len(shown),
        sum(e.would_free for e in report.worth[len(shown) :]),
        canvas,
    )
    yield ""
    yield f"Rotating {count(len(report.worth), 'session')} would free {size(freed)}. To do that:"
    yield canvas.paint("bold", "  sessrotate split --all --in-place --min-size 10M")
