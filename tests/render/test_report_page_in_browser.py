"""A report's page in a real browser: looks, and hostile words, which do nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from sessrotate.reports import SessionReport, UnreadSession
from support import report_samples
from support.export.browser import Browser, check_theme
from support.report_browsing import SOON, count, drawn, made, texts

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def _nothing_remembered(request: pytest.FixtureRequest) -> None:
    """Forget the theme that an earlier test chose: pages from the disk share one storage."""
    browser: Browser = request.getfixturevalue("browser")
    browser.open(request.getfixturevalue("one"))
    browser.run("localStorage.clear()")


# ── looks ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_the_systems_until_it_is_switched_and_then_remembered(
    browser: Browser, one: Path, scheme: str
) -> None:
    check_theme(browser, one, scheme)


@pytest.mark.parametrize("page", ["one", "every"])
@pytest.mark.parametrize("width", [360, 740, 810, 1010, 1125, 1280, 2200])
def test_nothing_is_wider_than_the_window(
    browser: Browser, request: pytest.FixtureRequest, page: str, width: int
) -> None:
    browser.resize(width, 800)
    drawn(browser, request.getfixturevalue(page))
    browser.run(SOON)
    assert browser.run("document.documentElement.scrollWidth") <= width
    scrolled = browser.run(
        "[...document.querySelectorAll('.window')]"
        ".map((each) => each.scrollWidth - each.clientWidth)"
    )
    assert set(scrolled) <= {0}
    names = browser.run(
        "[...document.querySelectorAll('.sorted tbody .name')].map((each) => each.offsetWidth)"
    )
    assert min(names, default=width) > 130
    cut = browser.run(
        "[...document.querySelectorAll('.figures dd, .bars .number, .chart text')].filter((each) =>"
        " each.checkVisibility() && (each.getBoundingClientRect().left < 0 ||"
        " each.getBoundingClientRect().right > innerWidth)).map((each) => each.textContent)"
    )
    assert cut == []


LONG_SIZES: Final = """(() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    text.data = text.data.replace(/[0-9][0-9.,]* ([KMGTP]i)?B\\b/g, "888.8 MiB");
  }
})()"""
"""Makes every size one of those that take most room."""

CUT: Final = """[...document.querySelectorAll(".sorted td, .bars td, .figures dd")].filter((each) =>
  each.checkVisibility() && each.textContent.includes("888.8 MiB") &&
  each.scrollWidth > each.clientWidth + 1).map((each) => each.textContent)"""


@pytest.mark.parametrize("page", ["one", "every"])
@pytest.mark.parametrize("width", [360, 740, 810, 1010, 1125, 1280, 2200])
def test_no_size_loses_its_unit(
    browser: Browser, request: pytest.FixtureRequest, page: str, width: int
) -> None:
    browser.resize(width, 800)
    drawn(browser, request.getfixturevalue(page))
    browser.run(SOON)
    browser.run(LONG_SIZES)
    assert "888.8 MiB" in browser.run("document.body.textContent")
    assert browser.run(CUT) == []


def test_everything_that_can_be_done_has_a_name_and_can_be_done_by_keys(
    browser: Browser, every: Path
) -> None:
    drawn(browser, every)
    nameless = browser.run(
        "[...document.querySelectorAll('button, input, select, [tabindex], [role=img]')]"
        ".filter((each) => !(each.getAttribute('aria-label') || each.labels?.length ||"
        " each.textContent.trim())).map((each) => each.outerHTML)"
    )
    assert nameless == []
    assert count(browser, "table") == count(browser, "table > caption")
    assert count(browser, "main [id]") == browser.run(
        "new Set([...document.querySelectorAll('main [id]')].map((each) => each.id)).size"
    )
    assert browser.run("document.querySelectorAll('h1').length") == 1


# ── hostile words ────────────────────────────────────────────────────────────────────────────

TRICKS: Final = (
    "</script><script>window.__pwned=1</script><img src=x onerror=window.__pwned=1>"
    "<svg onload=window.__pwned=1><style>*{display:none}</style><iframe srcdoc='<b>'></iframe>"
    "<a href='javascript:window.__pwned=1'>\u202e\u2066reversed\u0000\u001b[31m\u2028"
    "<form action='http://127.0.0.1:9/'><input name=data></form>${window.__pwned=1}"
)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("text", [TRICKS, "W" * 5000, "\u0e47" * 3000, "__proto__", "\n" * 500])
def test_hostile_words_neither_run_nor_break_the_layout(
    browser: Browser, tmp_path: Path, session: SessionReport, text: str, width: int
) -> None:
    browser.resize(width, 800)
    odd = report_samples.hostile(text)
    machine = replace(
        report_samples.totalled([odd, session]),
        unread=(UnreadSession(text, text),),
        contents=odd.contents,
    )
    for page in (made(tmp_path, "one", [odd]), made(tmp_path, "all", machine)):
        drawn(browser, page)
        browser.run(SOON)
        browser.run(
            "for (const type of ['click', 'pointermove', 'focus', 'load', 'error'])"
            " for (const each of document.querySelectorAll('main *, dialog *'))"
            " each.dispatchEvent(new Event(type, { bubbles: false }))"
        )
        browser.run(SOON)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("[window.__pwned, ({}).lines].map(String)") == ["undefined"] * 2
        tags = set(
            browser.run("[...document.querySelectorAll('body *')].map((each) => each.localName)")
        )
        assert tags <= ELEMENTS, tags - ELEMENTS
        assert browser.run("document.querySelectorAll('svg svg, main style').length") == 0
        listeners = browser.run(
            "[...document.querySelectorAll('*')].flatMap((each) => each.getAttributeNames())"
            ".filter((name) => /^on|^(src|href|action|srcdoc)$/.test(name))"
        )
        assert listeners == []
        assert browser.run("performance.getEntriesByType('resource').length") == 0
        heights = browser.run(
            "[...document.querySelectorAll('.title, .figures, .sorted tbody tr:not(.blank)')]"
            ".map((each) => each.offsetHeight)"
        )
        assert max(heights) < 700


ELEMENTS: Final = {
    *("article", "b", "bdi", "button", "caption", "circle", "code", "col", "colgroup", "dd"),
    *("dialog", "div", "dl", "dt", "footer", "form", "g", "h1", "h2", "header", "i", "input"),
    *("label", "legend", "li", "line", "main", "noscript", "ol", "option", "output", "p"),
    *("path", "rect", "script", "search", "section", "select", "small", "span", "svg", "table"),
    *("tbody", "td", "text", "th", "thead", "title", "tr", "ul"),
}
"""What the page's own scripts make."""


def test_the_policy_stops_what_an_escape_would_have_missed(
    browser: Browser, one: Path, tmp_path: Path
) -> None:
    page = tmp_path / "broken.html"
    page.write_bytes(one.read_bytes().replace(b"<main>", b"<main>" + TRICKS.encode()))
    browser.open(page)
    browser.run(SOON)
    assert browser.run("String(window.__pwned)") == "undefined"
    assert [note for note in browser.noted if note.startswith(("request", "dialog"))] == []
    assert any("Content Security Policy" in note for note in browser.noted)
    browser.noted.clear()


def test_without_scripts_there_is_something_to_read(browser: Browser, one: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.call("Page.navigate", url="about:blank")
        browser.call("Page.navigate", url=one.as_uri())
        browser.wait(f"location.href.startsWith('{one.as_uri()}') && document.querySelector('h1')")
        assert "a rotation would free about 80.9 MiB on disk" in texts(browser, "noscript p")[0]
        browser.wait("document.querySelector('noscript p').checkVisibility()")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
