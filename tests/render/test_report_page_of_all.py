"""The page of all sessions in a real browser: charts, order, filters, ten thousand rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from sessrotate import units
from sessrotate.render import report_json, size
from sessrotate.reports import MachineReport, SessionReport, UnreadSession
from support import report_samples
from support.export.browser import Browser
from support.report_browsing import SOON, card, cells, count, drawn, made, texts

pytestmark = pytest.mark.browser


@pytest.fixture
def browser(browser: Browser, every: Path) -> Browser:
    """Give a browser that shows all sessions."""
    drawn(browser, every)
    return browser


COLUMNS: Final[tuple[tuple[str, Any, bool], ...]] = (
    ("Title", lambda each: each.title.lower(), False),
    ("Id", None, False),
    ("Project", lambda each: each.folder, False),
    ("Client", lambda each: each.client, False),
    ("Size", lambda each: each.bytes, True),
    ("On disk", lambda each: each.disk_bytes, True),
    ("Frees", lambda each: each.would_free, True),
    ("Last", lambda each: each.last_timestamp, True),
    ("Deleted", lambda each: each.deletes_at, False),
)
"""What the table shows, how it is sorted, and whether the largest is first; ids, by any order."""


def listed(browser: Browser) -> list[list[str]]:
    return cells(browser, card("sessions"))


def row_of(each: SessionReport) -> list[str]:
    """Return what the table says of a session, but for its project."""
    return [
        each.title,
        each.id[:8],
        each.client,
        size(each.bytes),
        size(each.disk_bytes or 0),
        size(each.would_free) if each.would_free else "–",
        str(each.last_timestamp)[:10],
        "–" if each.deletes_at is None else units.written(each.deletes_at)[:10],
    ]


@pytest.mark.parametrize("column", [at for at, each in enumerate(COLUMNS) if each[1]])
def test_a_click_on_a_header_sorts_and_another_turns_the_order_round(
    browser: Browser, machine: MachineReport, column: int
) -> None:
    name, key, is_largest_first = COLUMNS[column]
    head = f"{card('sessions')} thead th:nth-child({column + 1})"
    browser.run(f"document.querySelector('{card('sessions')} thead button').click()")
    assert texts(browser, head) == [name]
    orders = (is_largest_first, not is_largest_first)
    for is_down in orders if column else orders[::-1]:
        browser.run(f"document.querySelector('{head} button').click()")
        shown = listed(browser)
        assert len(shown) >= 20
        keys = [key(each) for each in machine.sessions]
        expected = sorted((each for each in keys if each is not None), reverse=is_down)
        firsts = [key(each) for each in in_order(machine, shown)]
        assert firsts == [*expected, *(each for each in keys if each is None)][: len(shown)]
        state = browser.run(f"document.querySelector('{head}').getAttribute('aria-sort')")
        assert state == ("descending" if is_down else "ascending")
        assert count(browser, f"{card('sessions')} [aria-sort]") == 1


def in_order(machine: MachineReport, shown: list[list[str]]) -> list[SessionReport]:
    """Return the sessions of which rows tell."""
    known: dict[tuple[str, ...], list[SessionReport]] = {}
    for each in machine.sessions:
        known.setdefault(tuple(row_of(each)), []).append(each)
    return [known[(*row[:2], *row[3:])].pop() for row in shown]


def filtered(browser: Browser, text: str = "", client: str = "", project: str = "") -> str:
    """Set the filters as a person does and return what is said of the result."""
    browser.run("document.getElementById('query').value = ''")
    browser.run("document.activeElement.blur()")
    browser.press("/")
    browser.run("document.activeElement.dispatchEvent(new Event('input'))")
    browser.type(text)
    for name, value in (("client", client), ("project", project)):
        browser.run(
            f"(() => {{ const each = document.getElementById('{name}'); each.value = "
            f"{json.dumps(value and '=' + value)}; each.dispatchEvent(new Event('change')) }})()"
        )
    told: str = browser.run("document.getElementById('shown').value")
    return told


@pytest.mark.parametrize(
    ("text", "client", "project"),
    [
        ("TRAIN", "", ""),
        ("train map", "", ""),
        ("refactor", "", ""),
        ("no such title", "", ""),
        ("shop parser", "codex", ""),
        ("", "gemini", ""),
        ("", "", "/home/dev/maps"),
        ("index", "claude", "/home/dev/timetable"),
        ("00000007-1111", "", ""),
    ],
)
def test_filters_leave_the_sessions_that_all_of_them_hold_for(
    browser: Browser, machine: MachineReport, text: str, client: str, project: str
) -> None:
    expected = [
        each
        for each in machine.sessions
        if all(
            any(word.lower() in part.lower() for part in (each.title, each.id, each.path))
            or word.lower() in str(each.folder)
            for word in text.split()
        )
        and client in ("", each.client)
        and project in ("", each.folder)
    ]
    whole = size(sum(each.bytes for each in expected))
    assert filtered(browser, text, client, project) == (
        f"{len(expected):,} of {len(machine.sessions)} sessions, {whole}"
    )
    shown = in_order(machine, listed(browser))
    assert {each.id for each in shown} <= {each.id for each in expected}
    assert len(shown) == min(len(expected), len(shown))
    assert bool(shown) == bool(expected)
    assert filtered(browser).startswith("300 sessions, ")


def test_only_what_a_rotation_frees_something_of_is_left_where_that_is_asked_for(
    browser: Browser, machine: MachineReport
) -> None:
    browser.run("document.getElementById('frees').click()")
    expected = sum(each.would_free > 0 for each in machine.sessions)
    told = browser.run("document.getElementById('shown').value")
    assert told.startswith(f"{expected} of 300 sessions")


def test_a_project_in_the_chart_leads_to_its_sessions(
    browser: Browser, machine: MachineReport
) -> None:
    browser.run(f"document.querySelectorAll('{card('projects')} tbody button')[1].click()")
    sums: dict[str, int] = {}
    for each in machine.sessions:
        sums[str(each.folder)] = sums.get(str(each.folder), 0) + each.bytes
    (folder, whole) = sorted(sums.items(), key=lambda item: -item[1])[1]
    assert browser.run("document.getElementById('project').value") == f"={folder}"
    assert browser.run("document.getElementById('shown').value").endswith(size(whole))
    top = browser.run(f"document.querySelector('{card('sessions')}').getBoundingClientRect().top")
    assert -5 < top < 800


def test_the_largest_sessions_and_projects_have_bars_of_their_sizes(
    browser: Browser, machine: MachineReport
) -> None:
    shown = cells(browser, card("largest-sessions"))
    assert [row[1] for row in shown] == [size(each.bytes) for each in machine.sessions[:10]]
    rows = browser.run(
        f"[...document.querySelectorAll('{card('largest-sessions')} tbody tr')].map((row) =>"
        " [...row.querySelectorAll('i')]"
        ".map((part) => [part.className, part.getBoundingClientRect().width]))"
    )
    unit = sum(width for _, width in rows[0]) / machine.sessions[0].bytes
    for row, each in zip(rows, machine.sessions, strict=False):
        widths = dict(row)
        assert widths.get("sealed", 0) == pytest.approx(unit * each.archived_bytes, abs=1)
        assert widths.get("frees", 0) == pytest.approx(unit * each.would_free, abs=1)
        assert widths["stays"] == pytest.approx(unit * each.live_tail, abs=1)
    browser.run(f"document.querySelector('{card('largest-sessions')} .more').click()")
    assert count(browser, f"{card('largest-sessions')} tbody tr") == 60


def test_a_session_opens_with_its_figures_and_closes_by_a_key(
    browser: Browser, machine: MachineReport
) -> None:
    rows = f"{card('sessions')} tbody button"
    for _ in range(2):
        browser.run(f"document.querySelectorAll('{rows}')[3].click()")
        assert texts(browser, "dialog[open] h2") == [machine.sessions[3].title]
        assert texts(browser, "dialog .path") == [machine.sessions[3].path]
        assert size(machine.sessions[3].bytes) in texts(browser, "dialog dd")[0]
        reading = f"sessrotate read {machine.sessions[3].id}"
        assert texts(browser, "dialog .command code") == [reading, machine.sessions[3].command]
        browser.press("Escape")
        browser.wait("!document.querySelector('dialog')")
    browser.run(f"document.querySelectorAll('{rows}')[0].click()")
    browser.click("dialog form button")
    browser.wait("!document.querySelector('dialog')")


def test_a_session_leads_to_its_page_if_there_is_one(
    browser: Browser, tmp_path: Path, machine: MachineReport
) -> None:
    read = machine.sessions[0].id
    page = tmp_path / "linked.html"
    page.write_bytes(b"".join(report_json.page(machine, 0.0, {read: f"{read}.html"})))
    drawn(browser, page)
    links = f"{card('sessions')} tbody a"
    told = browser.run(f"document.querySelector('{links}').getAttribute('href')")
    assert (told, count(browser, links)) == (f"{read}.html", 1)


def test_sessions_worth_rotating_are_listed_with_their_commands(
    browser: Browser, machine: MachineReport
) -> None:
    worth = machine.worth
    assert len(worth) > 20
    assert texts(browser, ".worth code") == [each.command for each in worth[:5]]
    browser.run(f"document.querySelector('{card('worth')} .more').click()")
    assert texts(browser, ".worth code") == [each.command for each in worth[:55]]
    assert f"{len(worth)} sessions would free" in texts(browser, f"{card('worth')} header p")[0]


def test_the_growth_of_all_ends_at_their_size(browser: Browser, machine: MachineReport) -> None:
    browser.run("document.querySelector('.chart').focus()")
    browser.press("ArrowRight")
    assert texts(browser, "#hover > *")[0] == "3.0 MiB"  # of which nothing says when
    browser.press("ArrowLeft")
    for _ in range(700):
        browser.press("ArrowRight")
    whole = sum(day.bytes for day in machine.growth)
    assert texts(browser, "#hover > *")[0] == size(whole)


def test_ten_thousand_sessions_are_there_but_few_are_drawn(
    browser: Browser, tmp_path: Path
) -> None:
    machine = report_samples.machine(10_000, kinds=False)
    drawn(browser, made(tmp_path, "many", machine))
    assert browser.run("document.querySelectorAll('*').length") < 2500
    window = f"document.querySelector('{card('sessions')} .window')"
    browser.run(f"{window}.scrollIntoView()")
    for share in (0.5, 1.0, 0.25):
        browser.run(f"{window}.scrollTop = {share} * {window}.scrollHeight")
        browser.run(SOON)
        first = browser.run(
            f"Number(document.querySelector('{card('sessions')} tbody tr:not(.blank)')"
            ".getAttribute('aria-rowindex'))"
        )
        shown = listed(browser)
        expected = machine.sessions[first - 2 : first - 2 + len(shown)]
        assert [row[4] for row in shown] == [size(each.bytes) for each in expected]
        assert abs(first - share * 10_000) < 60
        in_view = browser.run(
            f"(() => {{ const box = {window}.getBoundingClientRect(); const cell ="
            " document.elementFromPoint(box.x + 400, box.y + box.height / 2);"
            " return Boolean(cell.closest('tr[aria-rowindex]')) })()"
        )
        assert in_view
    assert filtered(browser, "train 0000270d").startswith("1 of 10,000 sessions")
    assert [row[0] for row in listed(browser)] == ["A map of all train stations"]


def test_the_page_of_a_machine_without_sessions_says_so(browser: Browser, tmp_path: Path) -> None:
    unread = (UnreadSession("/home/dev/a.jsonl", "Cannot read the session: Permission denied."),)
    drawn(browser, made(tmp_path, "none", replace(report_samples.machine(0), unread=unread)))
    assert "0 sessions" in browser.run("document.getElementById('shown').value")
    assert texts(browser, ".unreadable li") == [
        "/home/dev/a.jsonlCannot read the session: Permission denied."
    ]
