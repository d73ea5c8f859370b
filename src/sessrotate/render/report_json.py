"""Reports → the JSON that programs read; `docs/schema/report.json` is its schema.

Rule: the keys are a contract: new ones are added, none is changed. Sizes are in bytes, times are as
the records have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessrotate import names
from sessrotate.render import segment_table

if TYPE_CHECKING:
    from sessrotate.reports.model import (
        Contents,
        Day,
        LargeLine,
        MachineReport,
        SegmentRow,
        SessionReport,
        Share,
        Total,
    )


def session(report: SessionReport) -> dict[str, Any]:
    """Return the document of one session."""
    return {
        **_summary(report),
        "segments": [_segment(report, segment) for segment in report.segments],
        "growth": _growth(report.growth),
        **_contents(report.contents),
    }


def sessions(reports: list[SessionReport]) -> dict[str, Any]:
    """Return the document of several sessions that were named."""
    return {"sessions": [session(report) for report in reports]}


def machine(report: MachineReport) -> dict[str, Any]:
    """Return the document of all sessions."""
    return {
        "bytes": report.bytes,
        "lines": report.lines,
        "archived_bytes": report.archived_bytes,
        "would_free_bytes": report.would_free,
        "sessions": [_summary(each) for each in report.sessions],
        "clients": [_total(total) for total in report.clients],
        "projects": [_total(total) for total in report.projects],
        "growth": _growth(report.growth),
        "worth_rotating": [
            {
                "session": worth.session,
                "client": worth.client,
                "project": worth.folder,
                "title": worth.title,
                "bytes": worth.bytes,
                "would_free_bytes": worth.would_free,
                "command": worth.command,
            }
            for worth in report.worth
        ],
        "unreadable": [{"path": each.path, "reason": each.reason} for each in report.unread],
        **_contents(report.contents),
    }


# ── inside ───────────────────────────────────────────────────────────────────────────────────


def _summary(report: SessionReport) -> dict[str, Any]:
    return {
        "session": report.id,
        "client": report.client,
        "project": report.folder,
        "path": report.path,
        "title": report.title,
        "running": report.is_running,
        "bytes": report.bytes,
        "lines": report.lines,
        "live_bytes": report.live_bytes,
        "archived_bytes": report.archived_bytes,
        "compactions": report.compactions,
        "first_timestamp": report.first_timestamp,
        "last_timestamp": report.last_timestamp,
        "live_tail_bytes": report.live_tail,
        "would_free_bytes": report.would_free,
        "would_free_reason": report.kept,
        "command": report.command,
    }


def _segment(report: SessionReport, segment: SegmentRow) -> dict[str, Any]:
    is_live = segment is report.segments[-1] and report.live_bytes is not None
    file = names.segment_file(report.id, "numbered", segment.index)
    return {
        "index": segment.index,
        "file": report.path.rpartition("/")[2] if is_live else file,
        "start": segment.start,
        "end": segment.end,
        "bytes": segment.bytes,
        "lines": segment.lines,
        "boundary": segment_table.opening(segment.boundary),
        "first_timestamp": segment.first_timestamp,
        "last_timestamp": segment.last_timestamp,
        "standing": segment.state,
        "problem": segment.problem,
    }


def _growth(days: tuple[Day, ...]) -> list[dict[str, Any]]:
    return [{"day": day.day, "bytes": day.bytes} for day in days]


def _total(total: Total) -> dict[str, Any]:
    return {
        "name": total.name,
        "client": total.client,
        "sessions": total.sessions,
        "bytes": total.bytes,
        "archived_bytes": total.archived_bytes,
        "would_free_bytes": total.would_free,
    }


def _contents(contents: Contents | None) -> dict[str, Any]:
    """Return the keys that are there only where all lines were read."""
    if contents is None:
        return {}
    return {
        "kinds": _shares(contents.kinds),
        "tools": _shares(contents.tools),
        "duplicate_bytes": contents.duplicate_bytes,
        "duplicate_lines": contents.duplicate_lines,
        "largest_lines": [_large(line) for line in contents.largest],
    }


def _shares(shares: tuple[Share, ...]) -> dict[str, Any]:
    return {share.name: {"lines": share.lines, "bytes": share.bytes} for share in shares}


def _large(line: LargeLine) -> dict[str, Any]:
    return {
        "session": line.session,
        "segment": line.segment,
        "offset": line.offset,
        "segment_offset": line.within,
        "bytes": line.bytes,
        "kind": line.kind,
        "tool": line.tool,
    }
