"""A report's page as a file: what it is made of, what it holds, and what cannot get out of it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sessrotate.render import report as render_report
from sessrotate.render import report_json
from sessrotate.render.columns import Canvas
from sessrotate.reports import MachineReport, SessionReport
from support import report_samples
from support.export import pages
from support.export.pages import Allowed, Page

NOW: Final = 1_795_000_000.0
"""2026-11-18 11:06:40 UTC."""

ALLOWED: Final[Allowed] = {
    "html": {"lang": "en"},
    "head": {},
    "meta": {
        "charset": "utf-8",
        "http-equiv": "Content-Security-Policy",
        "name": "referrer|viewport",
        "content": r"[A-Za-z0-9 =,.;:'+/-]+",
    },
    "title": {},
    "style": {},
    "script": {"type": "application/json", "id": "data"},
    "body": {},
    "button": {
        "id": "theme",
        "type": "button",
        "aria-label": "Light or dark",
        "title": r"Light or dark \(t\)",
    },
    "main": {},
    "noscript": {},
    "h1": {},
    "p": {},
    "code": {},
    "footer": {},
}
"""All elements that a page is made of, with their attributes and what these may be."""


def written(report: MachineReport | list[SessionReport]) -> str:
    return b"".join(report_json.page(report, NOW)).decode()


def parsed(page: str) -> Page:
    return pages.parsed(page, ALLOWED, ALLOWED)


def texts(page: str, tag: str) -> list[str]:
    return [each.text for each in parsed(page).all(tag)]


def data(page: str) -> Any:
    """Return the page's data, as a browser would find it."""
    _, text = texts(page, "script")
    return json.loads(text)


def plain(value: Any) -> Any:
    """Return what JSON makes of a document."""
    return json.loads(json.dumps(value))


# ── what it holds ────────────────────────────────────────────────────────────────────────────


def test_a_sessions_page_holds_its_document() -> None:
    session = report_samples.session()
    assert data(written([session])) == {
        "made": "2026-11-18T11:06:40Z",
        "sessions": [plain(report_json.session(session))],
    }


def test_sessions_that_are_named_together_are_on_one_page() -> None:
    sessions = [report_samples.session(number) for number in range(3)]
    page = written(sessions)
    assert data(page)["sessions"] == [plain(report_json.session(each)) for each in sessions]
    titles = ", ".join(each.title for each in sessions)
    assert texts(page, "title") == [titles]


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1000, 1001])
def test_the_page_of_all_sessions_holds_their_document(count: int) -> None:
    machine = report_samples.machine(count, kinds=count % 2 == 1)
    assert data(written(machine)) == {
        "made": "2026-11-18T11:06:40Z",
        "machine": plain(report_json.machine(machine)),
    }


def test_without_scripts_a_page_says_the_figures_and_where_the_rest_is() -> None:
    session = replace(report_samples.session(), title="Weekdays & <holidays>")
    page = written([session])
    assert texts(page, "h1") == texts(page, "title") == ["Weekdays & <holidays>"]
    told = texts(page, "p")[0]
    assert told.startswith("143.3 MiB; a rotation would free about 80.9 MiB on disk.")
    assert "JavaScript" in told
    assert texts(page, "code") == ["sessrotate report"]
    told = texts(written(report_samples.machine(2000, kinds=False)), "p")[0]
    assert told.startswith("2,000 sessions, 38.")


def test_the_command_for_all_is_that_of_the_terminal() -> None:
    told = "\n".join(render_report.machine(report_samples.machine(60), Canvas()))
    script = texts(written(report_samples.machine(1)), "script")[0]
    (command,) = re.findall(r'ALL_AT_ONCE = "([^"]+)"', script)
    assert f"  {command}\n" in told + "\n"


# ── what cannot get out of it ────────────────────────────────────────────────────────────────

HOSTILE: Final = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]><img src=x onerror=alert(1)>",
    "&lt;b&gt; & \u2028 \u2029 \x00 \x1b[31m \u202e",
    "\ud800 lone",
    "</title></style></noscript><base href=http://a.invalid>",
    '"}]}; alert(1) //',
)


@pytest.mark.parametrize("text", HOSTILE)
def test_words_of_a_session_are_nothing_but_data(text: str) -> None:
    page = written([report_samples.hostile(text)])
    quiet = written([report_samples.hostile("quiet")])
    found, expected = ([each.tag for each in parsed(one).elements] for one in (page, quiet))
    assert found == expected
    (session,) = data(page)["sessions"]
    assert session["title"] == session["project"] == session["path"] == text
    assert text in session["tools"]


@given(st.text(), st.text())
def test_any_words_come_back_as_they_are_and_add_no_element(title: str, tool: str) -> None:
    session = replace(report_samples.hostile(tool), title=title)
    page = written([session])
    (found,) = data(page)["sessions"]
    assert found == plain(report_json.session(session))


def test_the_data_are_free_of_all_that_a_parser_acts_on() -> None:
    page = written([report_samples.hostile("".join(map(chr, range(1, 0x3000))))])
    text = re.search(r'<script type="application/json" id="data">(.*)</script>', page)
    assert text is not None
    assert re.search(r"[<>&\x00-\x1f\x7f-\uffff]", text[1]) is None


def test_the_policy_allows_the_pages_own_style_and_script_and_nothing_else() -> None:
    page = written([report_samples.session()])
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules == {
        "default-src": "'none'",
        "style-src": sha256(style),
        "script-src": sha256(script),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert page.index("Content-Security-Policy") < min(page.index(style), page.index(script))


def sha256(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_a_page_names_no_other_place_and_has_no_way_to_make_html_of_a_text() -> None:
    page = written(report_samples.machine(3))
    addresses = set(re.findall(r"[a-z]+://[^\s\"'`]*", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, never asked for
    assert re.search(r"\b(src|href|srcset|action)\s*=", page) is None
    assert re.search(r"@import|url\(", page) is None
    banned = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|setHTML|srcdoc|eval\(|"
        r"Function\(|fetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import\(|Worker|"
        r"createContextualFragment|\bon[a-z]+=|location\s*=|window\.open"
    )
    assert re.findall(banned, page) == []


def test_each_of_the_assets_is_in_the_page() -> None:
    page = written([report_samples.session()])
    folder = resources.files("sessrotate.render").joinpath("assets")
    found = [each for each in folder.iterdir() if each.name.startswith("report")]
    assert len(found) == 7
    for each in found:
        assert each.read_text(encoding="utf-8") in page
