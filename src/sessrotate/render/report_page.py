"""A report as one page for a browser: charts, and tables to sort and filter.

Rule: figures and text go into the page as JSON that cannot end its element, and the page's own
scripts (`assets`) put them into text nodes. The page's policy lets nothing else run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sessrotate import units
from sessrotate.render import report_json
from sessrotate.render.common import size
from sessrotate.render.html_text import asset, head, short
from sessrotate.reports.model import MachineReport, SessionReport

_SCRIPTS: Final = ("draw", "chart", "table", "contents", "session", "all")
_HARMLESS: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_TOGETHER: Final = 500
"""Sessions that are written at once."""


def pieces(
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
        document = report_json.machine(report)
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
        for number, session in enumerate(report):
            yield b"," * bool(number) + _json(report_json.session(session))
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
