"""Reports → the JSON that programs read, and a page for a browser that shows it.

Rule: the keys are a contract, `docs/schema/report.json` is the schema: new ones are added, none is
changed. Sizes are in bytes, times are as the records have them.

The page has charts, and tables to sort and filter. Figures and text go into it as JSON that cannot
end its element, and the page's own scripts (`assets`) put them into text nodes. Its policy lets
nothing else run.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from sessrotate import names, units
from sessrotate.render import segment_table, size
from sessrotate.render.html_text import asset, head, short
from sessrotate.reports import MachineReport, SessionReport

if TYPE_CHECKING:
    from sessrotate.reports import (
        Contents,
        LargeLine,
        MachineReport,
        SegmentRow,
        SessionReport,
        Share,
        Total,
    )

_KEYS: Final = {
    "would_free": "would_free_bytes",
    "within": "segment_offset",
}
"""Fields of a report that programs know by another name."""


def session(report: SessionReport) -> dict[str, Any]:
    """Return the document of one session."""
    return {
        **_summary(report),
        "segments": [_segment(report, segment) for segment in report.segments],
        "growth": [asdict(day) for day in report.growth],
        **_contents(report.contents, report.bytes),
    }


def sessions(reports: list[SessionReport]) -> dict[str, Any]:
    """Return the document of the sessions that were named: of one alone, its own."""
    documents = [session(report) for report in reports]
    return {"sessions": documents} if documents[1:] else documents[0]


def machine(report: MachineReport) -> dict[str, Any]:
    """Return the document of all sessions."""
    return {
        "bytes": report.bytes,
        "lines": report.lines,
        "archived_bytes": report.archived_bytes,
        "would_free_bytes": report.would_free,
        "trash_bytes": report.trash_bytes,
        "disk_bytes": report.disk_bytes,
        "side_bytes": report.side_bytes,
        "sessions": [_summary(each) for each in report.sessions],
        "clients": [_renamed(total) for total in report.clients],
        "projects": [_renamed(total) for total in report.projects],
        "growth": [asdict(day) for day in report.growth],
        "worth_rotating": [_worth(each) for each in report.worth],
        "next_steps": [asdict(each) for each in report.next_steps],
        "unreadable": [asdict(each) for each in report.unread],
        **_contents(report.contents, report.bytes),
    }


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
        "room_missing_bytes": report.room_missing,
        "command": report.command,
        "read_command": shlex.join(["sessrotate", "read", report.by or report.id]),
        "disk_bytes": report.disk_bytes,
        "client_deletes": _time(report.deletes_at),
    }


def _time(at: float | None) -> str | None:
    """Return a time as ISO 8601; None where there is none, or no calendar has it."""
    with suppress(ValueError, OverflowError, OSError):
        return None if at is None else units.written(at)
    return None


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


def _contents(contents: Contents | None, whole: int) -> dict[str, Any]:
    """Return the keys that are there only where all lines were read, `whole` bytes."""
    if contents is None:
        return {}
    return {
        "kinds": _shares(contents.kinds),
        "tools": _shares(contents.tools),
        "copies": _shares(contents.copies),
        "duplicate_bytes": contents.copied,
        "duplicate_lines": contents.copied_lines,
        "unique_bytes": whole - contents.copied,
        "largest_lines": [_renamed(line) for line in contents.largest],
    }


def _worth(report: SessionReport) -> dict[str, Any]:
    return {
        "session": report.id,
        "client": report.client,
        "project": report.folder,
        "title": report.title,
        "bytes": report.live_bytes or 0,
        "would_free_bytes": report.would_free,
        "command": report.command,
    }


def _shares(shares: tuple[Share, ...]) -> dict[str, Any]:
    return {share.name: {"lines": share.lines, "bytes": share.bytes} for share in shares}


def _renamed(row: Total | LargeLine) -> dict[str, Any]:
    """Return the fields of a row, under the keys of the contract and in their order."""
    return {_KEYS.get(name, name): value for name, value in asdict(row).items()}


# ── a page for a browser ──────────────────────────────────────────────────────────────────────────

_SCRIPTS: Final = ("draw", "chart", "table", "contents", "session", "all")
_HARMLESS: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_TOGETHER: Final = 500
"""Sessions that are written at once."""


def page(
    report: MachineReport | Sequence[SessionReport],
    now: float,
    pages: Mapping[str, str] | None = None,
) -> Iterator[bytes]:
    """Yield the page, UTF-8, of all sessions or of those that were named; `now` is Unix time.

    `pages` are the files beside it in which sessions can be read, by their ids.
    Its data are the documents of `--json`: `{"made": time, "machine": …}`, or `"sessions": […]`.
    """
    made = units.written(now)
    title, told = _words(report)
    script = "".join(asset("render", f"report_{name}.js") for name in _SCRIPTS)
    yield head(title, asset("render", "report.css"), script).encode()
    yield f"""<body>
<button id="theme" type="button" aria-label="Light or dark" title="Light or dark (t)">◐</button>
<main><noscript><h1>{title}</h1><p>{told} The charts and tables of this page need JavaScript, only
its own; <code>sessrotate report</code> shows the same in a terminal.</p></noscript></main>
<footer>Made by sessrotate, {made[:16].replace("T", " ")} UTC. This page loads nothing from a
network and sends nothing to one.</footer>
<script type="application/json" id="data">""".encode()
    yield f'{{"made":"{made}",'.encode()
    if isinstance(report, MachineReport):
        document = machine(report)
        sessions = document.pop("sessions")
        if pages:
            yield b'"pages":' + _json(pages) + b","
        yield b'"machine":' + _json(document)[:-1]
        yield b',"sessions":['
        for start in range(0, len(sessions), _TOGETHER):
            yield b"," * bool(start) + _json(sessions[start : start + _TOGETHER])[1:-1]
        yield b"]}"
    else:
        yield b'"sessions":['
        for number, each in enumerate(report):
            yield b"," * bool(number) + _json(session(each))
        yield b"]"
    yield b"}</script>\n</body>\n</html>\n"


def _words(report: MachineReport | Sequence[SessionReport]) -> tuple[str, str]:
    """Return the title, and what is said where no script runs, both as HTML text."""
    if isinstance(report, MachineReport):
        told = (
            f"{len(report.sessions):,} sessions, {size(report.bytes)}; rotations would free about"
        )
        return "Coding-agent sessions", f"{told} {size(report.would_free)} on disk."
    names = ", ".join(str(session.title) or session.id for session in report)
    whole = sum(session.bytes for session in report)
    free = sum(session.would_free for session in report)
    return short(names, 200), f"{size(whole)}; a rotation would free about {size(free)} on disk."


def _json(value: Any) -> bytes:
    """Return JSON, ASCII, that holds nothing an HTML parser or an old JavaScript would act on."""
    return json.dumps(value, separators=(",", ":")).translate(_HARMLESS).encode()
