"""The page in a real browser: what it is for works, and a hostile session does nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.command_line import ID, write
from support.export import pages, sessions
from support.export.browser import Browser, check_theme
from support.export.pages import written

pytestmark = pytest.mark.browser

HITS = "document.getElementById('hits').value"
DONE = "document.documentElement.dataset.search == 'done'"


def made(folder: Path, data: bytes) -> Path:
    page = folder / "page.html"
    page.write_bytes(written(write(folder / f"{ID}.jsonl", data)))
    return page


@pytest.fixture(scope="module")
def friendly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("friendly"), sessions.friendly())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("hostile"), sessions.hostile())


@pytest.fixture
def browser(browser: Browser, friendly: Path) -> Browser:
    """Give a browser that shows the friendly session.

    The theme that an earlier test chose is forgotten: pages from the disk share one storage.
    """
    browser.open(friendly)
    browser.run("localStorage.clear()")
    browser.open(friendly)
    return browser


def search(browser: Browser, text: str) -> str:
    """Search as a person does, and return the count that is shown."""
    browser.press("Escape")
    browser.press("/")
    browser.type(text)
    browser.wait(f"{HITS} && {DONE}")
    told: str = browser.run(HITS)
    return told


def hits(page: Path, text: str) -> list[str]:
    """Return the hits of a text in a page's records, as Python finds them."""
    said = " ".join(each.text for each in pages.parsed(page.read_bytes()).all("article"))
    return re.findall(re.escape(text), said, re.IGNORECASE)


def seen(browser: Browser, selector: str) -> int:
    """Return how many of the elements have a box."""
    count: int = browser.run(
        f"[...document.querySelectorAll({json.dumps(selector)})]"
        ".filter((each) => each.checkVisibility()).length"
    )
    return count


def current(browser: Browser) -> str:
    """Return the text of the hit that is highlighted as the current one, with where it stands."""
    found: str = browser.run(
        "(() => { const [range] = CSS.highlights.get('hit'); const box = "
        "range.getBoundingClientRect(); return box.height > 0 && box.top > 0 && "
        "box.bottom < innerHeight ? range.toString() : 'out of sight' })()"
    )
    return found


# ── search ───────────────────────────────────────────────────────────────────────────────────


def test_search_counts_every_hit_whatever_its_case(browser: Browser, friendly: Path) -> None:
    for query in ("TIMETABLE", "isoweekday() - 1", "<td>", "nowhere to be found", "(", "\\"):
        count = len(hits(friendly, query))
        shown = search(browser, query)
        assert shown.split(" of ")[-1] == f"{count} hit{'s' * (count != 1)}", query
    assert count == 0


def test_next_and_previous_go_round_through_all_hits(browser: Browser) -> None:
    assert search(browser, "isoweekday") == "1 of 4 hits"
    for place in (2, 3, 4, 1):
        browser.press("Enter")
        assert browser.run(HITS) == f"{place} of 4 hits"
        browser.run("new Promise((done) => setTimeout(done, 100))")
        assert current(browser) == "isoweekday"
    browser.click("#previous")
    assert browser.run(HITS) == "4 of 4 hits"
    browser.click("#next")
    assert browser.run(HITS) == "1 of 4 hits"


def test_a_hit_that_is_folded_away_is_unfolded(browser: Browser) -> None:
    assert seen(browser, ".tool pre") == 0
    assert search(browser, "Find weekdays") == "1 of 1 hit"
    browser.wait("document.querySelector('.tool[open]')")
    assert seen(browser, ".tool pre") == 2
    assert current(browser) == "Find weekdays"


def test_a_hit_in_a_record_of_a_kind_that_is_not_shown_shows_the_kind(browser: Browser) -> None:
    assert seen(browser, "article.attachment") == 0
    search(browser, "platform")
    assert seen(browser, "article.attachment") == 1
    assert current(browser) == "platform"
    assert seen(browser, ".other") == 0


def test_only_the_records_with_hits_are_left_where_that_is_asked_for(browser: Browser) -> None:
    everything = seen(browser, "article")
    search(browser, "weekday")
    browser.click("#only")
    texts = browser.run(
        "[...document.querySelectorAll('article')].filter((each) => each.checkVisibility())"
        ".map((each) => each.textContent)"
    )
    assert 0 < len(texts) < everything
    assert all("weekday" in text.lower() for text in texts)
    browser.press("Escape")
    browser.click("#query")
    browser.press("Escape")
    browser.wait(f"!{HITS}")
    assert seen(browser, "article") == everything


def test_a_query_that_is_typed_on_replaces_the_one_before(browser: Browser, friendly: Path) -> None:
    browser.press("/")
    for letter in "weekday":
        browser.type(letter)
    browser.wait(f"{HITS} && {DONE}")
    assert browser.run(HITS).endswith(f" of {len(hits(friendly, 'weekday'))} hits")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a page of which only a small part is drawn: 900 records, each taller than its guess."""
    script = sessions.Script()
    for number in range(300):
        script.user(f"prompt {number}" + "\nand more" * 12)
        script.answer(sessions.call("Bash", f"t{number}", command=f"command {number}\n" * 60))
        script.result(f"t{number}", "result\n" * 200 + f"needle {number}\n" + "result\n" * 200)
    return made(tmp_path_factory.mktemp("long"), script.bytes())


@pytest.mark.parametrize("number", [250, 42, 299, 7])
def test_a_hit_far_away_and_deep_in_a_result_comes_into_view(
    browser: Browser, long: Path, number: int
) -> None:
    browser.open(long)
    assert search(browser, f"needle {number}").startswith("1 of ")
    browser.wait("CSS.highlights.get('hit')")
    for _ in range(3):
        browser.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    assert current(browser) == f"needle {number}"
    heard = browser.run("document.querySelector('#sidebar a.here').textContent")
    assert heard.startswith(f"prompt {number}")


def test_keys_and_links_lead_far_away_too(browser: Browser, long: Path) -> None:
    browser.open(long)
    links = "document.querySelectorAll('#sidebar details ol a')"
    assert browser.run(f"{links}.length") == 300
    for number in (280, 100):
        browser.run(f"{links}[{number}].click()")
        browser.wait(f"{links}[{number}].classList.contains('here')")
        browser.press("J")
        browser.wait(f"{links}[{number + 1}].classList.contains('here')")
        box = browser.run(
            "(() => { const box = document.querySelector('article.here').getBoundingClientRect();"
            " return [box.top, box.bottom, innerHeight] })()"
        )
        assert 0 < box[0] < box[2]


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def test_the_sidebar_lists_the_prompts_of_each_segment(browser: Browser) -> None:
    listed = browser.run(
        "[...document.querySelectorAll('#sidebar > ol > li')].map((each) => "
        "[...each.querySelectorAll('details ol a')].map((link) => link.textContent))"
    )
    assert [[text[:12] for text in texts] for texts in listed] == [
        ["The timetabl", "Looks right."],
        ["Now let an a", "Thanks! Same"],
    ]
    browser.run("document.querySelectorAll('#sidebar ol ol a')[3].click()")
    browser.wait("document.querySelector('#sidebar a.here')?.textContent.startsWith('Thanks')")
    assert browser.run("location.hash") == browser.run(
        "'#' + [...document.querySelectorAll('.prompt')].at(-1).id"
    )


def test_folds_open_by_a_click_and_all_at_once(browser: Browser) -> None:
    browser.click(".tool summary")
    assert browser.run("document.querySelectorAll('main details[open]').length") == 1
    browser.click("#show summary")
    browser.click("#unfold")
    assert browser.run("document.querySelectorAll('main details:not([open])').length") == 0
    browser.click("#fold")
    assert browser.run("document.querySelectorAll('main details[open]').length") == 0


def test_kinds_of_records_are_shown_and_hidden(browser: Browser) -> None:
    browser.click("#show summary")
    kinds = {
        "tools": ".tool, .result",
        "thinking": ".thinking",
        "agents": ".side",
        "notes": ".attachment, .meta",
        "other": ".other",
    }
    for value, selector in kinds.items():
        before = seen(browser, selector)
        browser.click(f"#show input[value={value}]")
        after = seen(browser, selector)
        assert min(before, after) == 0 < max(before, after), value
        browser.click(f"#show input[value={value}]")
        assert seen(browser, selector) == before


def test_keys_go_from_record_to_record_and_from_prompt_to_prompt(browser: Browser) -> None:
    here = "document.querySelector('article.here')?.className"
    visited = []
    for key in "jjkJJKo":
        browser.press(key)
        visited.append(browser.run(here).split()[0])
    assert visited == ["prompt", "answer", "prompt", "prompt", "prompt", "prompt", "prompt"]
    assert (
        browser.run(
            "[...document.querySelectorAll('.prompt')].indexOf(document.querySelector('.prompt.here'))"
        )
        == 1
    )
    browser.press("k")
    browser.press("k")
    browser.press("k")
    browser.press("o")
    assert browser.run("document.querySelector('article.here details').open")
    browser.press("o")
    assert not browser.run("document.querySelector('article.here details').open")


def test_a_link_to_a_record_leads_there_also_if_its_kind_is_hidden(
    browser: Browser, friendly: Path
) -> None:
    page = pages.parsed(friendly.read_bytes())
    anchor = page.all("article", "attachment")[0].attributes["id"]
    browser.open(friendly, f"#{anchor}")
    browser.wait(f"document.querySelector('article.here')?.id == '{anchor}'")
    assert seen(browser, "article.attachment") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_the_systems_until_it_is_switched_and_then_remembered(
    browser: Browser, friendly: Path, scheme: str
) -> None:
    check_theme(browser, friendly, scheme)


def test_nothing_is_wider_than_a_narrow_window(browser: Browser, friendly: Path) -> None:
    browser.resize(380, 700)
    browser.open(friendly)
    browser.run("document.getElementById('unfold').click()")
    assert browser.run("document.documentElement.scrollWidth") <= 380
    assert browser.run("document.getElementById('sidebar').getBoundingClientRect().right") <= 0
    browser.click("#menu")
    browser.wait("document.getElementById('sidebar').getBoundingClientRect().left == 0")


def test_on_paper_there_are_the_records_only(browser: Browser) -> None:
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    assert seen(browser, "#bar") == seen(browser, "#sidebar") == 0
    assert seen(browser, ".prompt") == 4
    browser.call("Emulation.setEmulatedMedia", media="", features=[])


def test_pictures_are_shown(browser: Browser) -> None:
    browser.run("document.querySelector('img').scrollIntoView()")
    browser.wait("document.querySelector('img').naturalWidth == 320")


# ── what a hostile session does: nothing ─────────────────────────────────────────────────────


def test_a_hostile_session_runs_nothing_loads_nothing_and_says_nothing(
    browser: Browser, hostile: Path
) -> None:
    browser.open(hostile)
    browser.run("document.getElementById('unfold').click()")
    for box in ("notes", "other"):
        browser.run(f"document.querySelector('#show input[value={box}]').click()")
    height: int = browser.run("document.documentElement.scrollHeight")
    for top in range(0, min(height, 60_000), 6_000):
        browser.run(f"scrollTo(0, {top})")
    search(browser, "pwned")
    for key in ("Enter", "Escape", "j", "k", "J", "o"):
        browser.press(key)
    browser.run(
        "for (const type of ['click', 'mouseover', 'focus', 'load', 'error', 'toggle'])"
        " for (const each of document.querySelectorAll('main *'))"
        " each.dispatchEvent(new Event(type))"
    )
    browser.run("new Promise((done) => setTimeout(done, 300))")
    assert browser.run("String(window.__pwned)") == "undefined"
    assert browser.run("location.href").startswith("file:")
    assert browser.run("performance.getEntriesByType('resource').length") == 0
    assert pictures_aside(browser.noted) == []
    browser.noted.clear()


def pictures_aside(noted: list[str]) -> list[str]:
    """Return what was noted but for data that the page holds itself."""
    return [note for note in noted if not note.startswith("request data:image/")]


def test_a_browsers_parser_finds_only_our_elements_in_a_hostile_session(
    browser: Browser, hostile: Path
) -> None:
    browser.open(hostile)
    found: list[list[Any]] = browser.run(
        "[...document.querySelectorAll('main *')].map((each) => [each.tagName.toLowerCase(),"
        " each.namespaceURI, [...each.attributes].map((one) => [one.name, one.value])])"
    )
    added = {"open": "", "class": rf"(here |hit )*{pages.CLASS}( here| hit)*"}
    for tag, namespace, attributes in found:
        assert namespace == "http://www.w3.org/1999/xhtml"
        assert tag in pages.SESSION
        for name, value in attributes:
            rule = {**pages.SESSION[tag], **added}[name]
            assert re.fullmatch(rule, value), (tag, name, value)
    expected = [
        each for each in pages.parsed(hostile.read_bytes()).elements if "main" in each.inside
    ]
    assert [tag for tag, _, _ in found] == [each.tag for each in expected]
    outside = browser.run("[...document.querySelectorAll('body > *')].map((each) => each.tagName)")
    assert outside == ["HEADER", "NAV", "MAIN", "FOOTER"]
    assert browser.run("document.querySelectorAll('head > *').length") == 7


def test_the_policy_stops_what_an_escape_would_have_missed(
    browser: Browser, friendly: Path, tmp_path: Path
) -> None:
    tricks = (
        "<script>window.__pwned=1</script><img src=x onerror=window.__pwned=1>"
        "<img src='http://127.0.0.1:9/i'><style>body{background:url(http://127.0.0.1:9/b)}</style>"
        "<iframe srcdoc='<script>parent.__pwned=1</script>'></iframe>"
        "<link rel=stylesheet href='http://127.0.0.1:9/c'><script src='http://127.0.0.1:9/s'>"
        "</script><base href='http://127.0.0.1:9/'><svg onload=window.__pwned=1></svg>"
    )
    page = tmp_path / "broken.html"
    page.write_bytes(friendly.read_bytes().replace(b"<main>", b"<main>" + tricks.encode()))
    browser.open(page)
    browser.run("new Promise((done) => setTimeout(done, 300))")
    assert browser.run("String(window.__pwned)") == "undefined"
    assert browser.run("document.baseURI") == page.as_uri()
    assert [note for note in browser.noted if note.startswith(("request", "dialog"))] == []
    assert len([note for note in browser.noted if "Content Security Policy" in note]) > 5
    browser.noted.clear()


def test_a_request_that_does_leave_is_noted(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "leaking.html"
    page.write_text("<img src='http://127.0.0.1:9/i'><script>alert('out')</script>")
    browser.open(page)
    browser.wait("document.images[0].complete")
    assert "request http://127.0.0.1:9/i" in browser.noted
    assert "dialog out" in browser.noted
    browser.noted.clear()
