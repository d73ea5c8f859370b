"""A session's page in a real browser: its charts and tables tell the report's figures."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from sessrotate.render import size
from sessrotate.reports import SessionReport, Share
from support import report_samples
from support.export.browser import Browser
from support.report_browsing import card, cells, count, drawn, made, texts

pytestmark = pytest.mark.browser


@pytest.fixture
def browser(browser: Browser, one: Path) -> Browser:
    """Give a browser that shows the session."""
    drawn(browser, one)
    return browser


def test_the_figures_at_the_top_are_the_sessions(browser: Browser, session: SessionReport) -> None:
    assert texts(browser, "h1") == [session.title]
    shown = dict(zip(texts(browser, ".figures dt"), texts(browser, ".figures dd"), strict=True))
    assert shown["Size"] == f"{size(session.bytes)}{session.lines:,} lines"
    assert session.live_bytes is not None
    assert shown["Live file"] == f"{size(session.live_bytes)}live tail {size(session.live_tail)}"
    assert shown["Archive"].startswith(size(session.archived_bytes))
    assert shown["Compactions"] == str(session.compactions) == "22"
    assert shown["A rotation frees"].startswith(size(session.would_free))


def test_sizes_are_those_of_the_terminal(browser: Browser) -> None:
    chance = random.Random(3)
    numbers = [*range(3000), *(1024 * 1024 - n for n in range(200))]
    numbers += [1024**unit * part // 20 for unit in range(1, 5) for part in range(1, 20 * 1024, 7)]
    numbers += [int(2 ** chance.uniform(0, 52)) for _ in range(3000)]
    assert browser.run(f"{numbers}.map(size)") == [size(number) for number in numbers]


def test_each_compaction_is_marked_where_and_when_it_was(
    browser: Browser, session: SessionReport
) -> None:
    assert count(browser, ".marks circle") == session.compactions
    browser.run("document.querySelector('.chart').focus()")
    heard: dict[str, tuple[str, ...]] = {}
    for _ in range(150):
        browser.press("ArrowRight")
        told, when, *more = texts(browser, "#hover > *")
        if more and more[0].startswith("Compaction"):
            heard[more[0]] = told, when, more[1]
    expected = {}
    for number, part in enumerate(session.segments[1:], 1):
        boundary = part.boundary
        assert boundary is not None
        assert boundary.timestamp is not None
        minute = boundary.timestamp[:16]
        day = f"{int(minute[8:10])} {MONTHS[int(minute[5:7]) - 1]} {minute[:4]}"
        expected[f"Compaction {number} opens segment {part.index}"] = (
            size(part.start),
            f"{day}, {minute[11:]} UTC",
            f"{boundary.trigger}, {boundary.pre_tokens:,} tokens before",
        )
    assert heard == expected


MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def test_the_line_ends_at_the_sessions_size_by_the_axis_beside_it(
    browser: Browser, session: SessionReport
) -> None:
    labels = browser.run(
        "[...document.querySelectorAll('.grid text[text-anchor=end]')]"
        ".map((each) => [each.textContent, Number(each.getAttribute('y')) - 4])"
    )
    heights = {text: y for text, y in labels if text.endswith("B")}
    path = browser.run("document.querySelector('.line').getAttribute('d')")
    points = [tuple(map(float, each.split())) for each in re.split("[ML]", path)[1:]]
    assert points == sorted(points, key=lambda point: (point[0], -point[1]))
    mib = (heights["0 B"] - heights["100 MiB"]) / 100
    assert (heights["0 B"] - points[-1][1]) / mib * 2**20 == pytest.approx(session.bytes, rel=0.01)
    assert points[0][1] == pytest.approx(heights["0 B"], abs=0.1)


def test_the_line_never_falls_whatever_the_clocks_said(
    browser: Browser, tmp_path: Path, session: SessionReport
) -> None:
    swapped = [
        replace(part, first_timestamp=other.first_timestamp, last_timestamp=other.last_timestamp)
        for part, other in zip(session.segments, reversed(session.segments), strict=True)
    ]
    drawn(browser, made(tmp_path, "swapped", [replace(session, segments=tuple(swapped))]))
    path = browser.run("document.querySelector('.line').getAttribute('d')")
    points = [tuple(map(float, each.split())) for each in re.split("[ML]", path)[1:]]
    assert len(points) > 40
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)


def test_the_bar_of_segments_has_their_sizes_and_what_becomes_of_them(
    browser: Browser, session: SessionReport
) -> None:
    browser.wait(f"document.querySelector('{card('rotation')} rect')")
    found = browser.run(
        f"[...document.querySelectorAll('{card('rotation')} rect')]"
        ".map((each) => [each.getAttribute('class'), Number(each.getAttribute('width'))])"
    )
    expected = ["sealed"] * 9 + ["frees"] * 13 + ["stays"]
    assert [tone for tone, _ in found] == expected
    width = browser.run(f"document.querySelector('{card('rotation')} .strip').clientWidth")
    for (_, length), part in zip(found, session.segments, strict=True):
        assert length + 1 == pytest.approx(width * part.bytes / session.bytes, abs=0.5)
    told = texts(browser, f"{card('rotation')} > p")[0]
    assert size(session.would_free) in told
    assert size(session.live_tail) in told
    assert texts(browser, f"{card('rotation')} code") == [session.command]


def test_a_session_that_is_not_rotated_says_why_and_has_no_command(
    browser: Browser, tmp_path: Path, session: SessionReport
) -> None:
    reason = "It was never compacted."
    kept = replace(session, command=None, kept=reason, would_free=0)
    drawn(browser, made(tmp_path, "kept", [kept]))
    assert texts(browser, f"{card('rotation')} > p") == [
        f"There is nothing to rotate now. {reason}"
    ]
    assert count(browser, ".command") == 0
    tones = browser.run(
        f"[...document.querySelectorAll('{card('rotation')} rect')].map((r) => r.classList[0])"
    )
    assert tones == ["sealed"] * 9 + ["stays"] * 14


@pytest.mark.parametrize("name", ["kinds", "tools"])
def test_kinds_and_tools_are_listed_with_bars_of_their_lengths(
    browser: Browser, session: SessionReport, name: str
) -> None:
    assert session.contents is not None
    shares = getattr(session.contents, name)
    shown = cells(browser, card(name))
    assert [row[0] for row in shown] == [share.name for share in shares]
    assert [row[2] for row in shown] == [size(share.bytes) for share in shares]
    assert [row[4] for row in shown] == [f"{share.lines:,}" for share in shares]
    widths = browser.run(
        f"[...document.querySelectorAll('{card(name)} .bar i')]"
        ".map((each) => each.getBoundingClientRect().width)"
    )
    for width, share in zip(widths, shares, strict=True):
        expected = max(widths[0] * share.bytes / shares[0].bytes, 1)
        assert width == pytest.approx(expected, abs=0.6)


def test_a_tool_whose_name_is_a_number_has_its_place_by_size(
    browser: Browser, tmp_path: Path, session: SessionReport
) -> None:
    assert session.contents is not None
    tools = (*session.contents.tools, Share("7", 1, 9))
    odd = replace(session, contents=replace(session.contents, tools=tools))
    drawn(browser, made(tmp_path, "odd", [odd]))
    assert [row[0] for row in cells(browser, card("tools"))] == [tool.name for tool in tools]


def test_without_kinds_the_page_has_no_card_for_them(browser: Browser, tmp_path: Path) -> None:
    drawn(browser, made(tmp_path, "fast", [report_samples.session(kinds=False)]))
    assert count(browser, card("kinds")) == count(browser, card("largest")) == 0
    assert "What the bytes are" not in " ".join(texts(browser, ".card h2"))


def test_the_tables_of_segments_and_of_the_largest_lines_are_whole(
    browser: Browser, session: SessionReport
) -> None:
    shown = cells(browser, card("segments"))
    rows = browser.run(
        f"document.querySelector('{card('segments')} table').getAttribute('aria-rowcount')"
    )
    assert rows == str(len(session.segments) + 1)
    for row, part in zip(shown, session.segments, strict=False):
        assert row[:3] == [str(part.index), size(part.bytes), f"{part.lines:,}"]
    assert session.contents is not None
    lines = cells(browser, card("largest"))
    assert [row[0] for row in lines] == [size(line.bytes) for line in session.contents.largest]
    assert [row[2] for row in lines] == [line.tool or "–" for line in session.contents.largest]
    assert [row[4] for row in lines] == [f"{line.within:,}" for line in session.contents.largest]


def test_the_command_is_copied(browser: Browser, session: SessionReport) -> None:
    browser.run(
        "Object.defineProperty(navigator, 'clipboard', { configurable: true, value:"
        " { writeText: async (text) => { window.__copied = text } } })"
    )
    browser.run(f"document.querySelector('{card('rotation')} .command button').click()")
    browser.wait("window.__copied")
    assert browser.run("window.__copied") == session.command
    assert texts(browser, f"{card('rotation')} .command button") == ["Copied"]


def test_without_a_clipboard_the_command_is_selected(
    browser: Browser, session: SessionReport
) -> None:
    browser.run("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    browser.run(f"document.querySelector('{card('rotation')} .command button').click()")
    browser.wait("String(getSelection())")
    assert browser.run("String(getSelection())") == session.command


def test_times_that_cannot_be_are_left_out_of_the_chart(
    browser: Browser, tmp_path: Path, session: SessionReport
) -> None:
    first, *others = session.segments
    odd = replace(first, first_timestamp="1970-01-01T00:00:00Z", last_timestamp="9999-01-01T")
    drawn(browser, made(tmp_path, "odd", [replace(session, segments=(odd, *others))]))
    browser.run("document.querySelector('.chart').focus()")
    browser.press("ArrowRight")
    assert "Feb 2026" in texts(browser, "#hover > *")[1]


def test_a_session_of_less_than_a_minute_has_no_chart(
    browser: Browser, tmp_path: Path, session: SessionReport
) -> None:
    times = {59: 0, 60: 1}
    for seconds, charts in times.items():
        end = report_samples.iso(report_samples.START + timedelta(seconds=seconds))
        part = replace(
            session.segments[0],
            first_timestamp=report_samples.iso(report_samples.START),
            last_timestamp=end,
        )
        short = replace(session, segments=(part,), growth=())
        drawn(browser, made(tmp_path, str(seconds), [short]))
        assert count(browser, card("growth")) == charts


def test_a_session_without_times_and_one_without_bytes_have_pages_too(
    browser: Browser, tmp_path: Path, session: SessionReport
) -> None:
    bare = replace(session.segments[0], boundary=None, first_timestamp=None, last_timestamp=None)
    timeless = replace(session, segments=(bare,), growth=(), contents=None)
    empty = replace(timeless, segments=(), live_bytes=None, would_free=0, command=None, title="")
    drawn(browser, made(tmp_path, "bare", [timeless, empty]))
    assert texts(browser, "h1") == [session.title, session.id]
    assert count(browser, card("growth")) == 0
    assert count(browser, card("segments")) == 2
