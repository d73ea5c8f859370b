"""A search finds what one finds who parses every line and looks at all that it says."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sessrotate import open_session
from sessrotate.clients.codex import view as codex_view
from sessrotate.clients.gemini import reader as gemini_reader
from sessrotate.parsing import Record
from sessrotate.reading import select
from sessrotate.reading.search import Hit, Problem, Query, Searched, Window, search
from sessrotate.segments import scan
from support import codex_sessions, gemini_sessions, homes
from support.codex_sessions import Rows
from support.command_line import ID, boundary, write
from support.homes import Home
from support.talks import answer, prompt, talk

if TYPE_CHECKING:
    from collections.abc import Iterator


Places = list[tuple[int, int]]


def query(pattern: str, flags: re.RegexFlag = re.NOFLAG, *, is_raw: bool = False) -> Query:
    compiled = re.compile(pattern, flags | re.MULTILINE)
    return Query((compiled,), lambda view: view.kind, is_raw=is_raw)


def places(path: Path, asked: Query, *windows: Window) -> Places:
    """Return where the search finds something."""
    found: Places = []
    for window in windows or (Window(),):
        *hits, end = search(path, asked, window)
        assert isinstance(end, Searched)
        for each in hits:
            assert isinstance(each, Hit), each
            if asked.is_raw or each.asks != "queued":  # what waited is found where it is said
                found.append((each.segment, each.offset))
    return found


def parsed(path: Path, asked: Query) -> Places:
    """Return where one finds something who parses everything."""
    with open_session(path) as session:
        history = session.history()
        return [
            (record.segment, record.offset)
            for record in (history if asked.is_raw else session.said(history))
            if any(asked.words[0].search(text) for text in _texts(session.view, record, asked))
        ]


def _texts(view: object, record: Record, asked: Query) -> Iterator[str]:
    assert callable(view)
    found = None if asked.is_raw else view(record)
    if found is None or found.queue != "in":
        yield from select.texts(record, found)


# ── against an oracle ────────────────────────────────────────────────────────────────────────


def test_windows_that_are_cut_where_lines_begin_or_end_miss_none(tmp_path: Path) -> None:
    data = talk()
    path = write(tmp_path / f"{ID}.jsonl", data)
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    expected = parsed(path, query("e", is_raw=True))
    assert len(expected) == len(ends)
    for shift in (-1, 0, 1):
        cuts = [0, *(end + shift for end in ends[:-1])]
        windows = [Window(*each) for each in pairwise(cuts)]
        assert places(path, query("e", is_raw=True), *windows, Window(cuts[-1])) == expected


OF_CLAUDE = ("the", "(?i)CLAUDE", "/srv", '"|\\d', "^The", "e+d", "uuid", "\x1b", "\\w$")
OF_CODEX = ("the", "(?i)CODEX", "echo", "\\d{3}", "aborted: ", "This session", "cwd")
OF_GEMINI = ("the", "(?i)GEMINI", "\\*\\*[A-Z]", "echo", "zzz-nowhere")
CLAUDE = Path(__file__).parents[2] / "fixtures" / "claude"
SAMPLES = [
    *((path, OF_CLAUDE) for path in sorted(CLAUDE.glob("*/projects/*/*.jsonl"))),
    *((path, OF_CODEX) for path in (*codex_sessions.FILES, codex_sessions.BARE)),
    *((path, OF_GEMINI) for path in (*gemini_sessions.APPENDED, *gemini_sessions.WHOLE)),
]


@pytest.mark.parametrize(("path", "patterns"), SAMPLES, ids=[path.name for path, _ in SAMPLES])
@pytest.mark.parametrize("is_raw", [False, True])
def test_so_it_is_in_sessions_of_all_clients(
    path: Path, patterns: tuple[str, ...], is_raw: bool
) -> None:
    size = path.stat().st_size
    cuts = [*range(0, size, size // 9 + 1)]
    windows = [*(Window(*each) for each in pairwise(cuts)), Window(cuts[-1])]
    for pattern in patterns:
        asked = query(pattern, is_raw=is_raw)
        expected = parsed(path, asked)
        assert places(path, asked) == expected, pattern
        assert places(path, asked, *windows) == expected, pattern


# ── words that only the view has ─────────────────────────────────────────────────────────────

EVENTS = [("error", "message"), ("warning", "message"), ("stream_error", "message"),
          ("turn_aborted", "reason"), ("thread_rolled_back", "num_turns")]  # fmt: skip


@pytest.mark.parametrize(("event", "field"), EVENTS)
def test_a_word_that_stands_before_an_event_of_codex_is_found(
    tmp_path: Path, event: str, field: str
) -> None:
    rows = Rows()
    rows.add("session_meta", id=codex_sessions.ID, cwd="/srv", forked_from_id="0000-1111")
    rows.event(event, **{field: 2 if field == "num_turns" else "lost"})
    path = write(tmp_path / f"rollout-2026-11-21T12-00-00-{codex_sessions.ID}.jsonl",
                 b"\n".join([*rows.lines, b""]))  # fmt: skip
    shown = event.replace("_", " ")
    for pattern in (f"^{shown}: ", f"{shown[-2:]}: ", f"{shown}", f"(?i){shown.upper()}: ",
                    "was forked", "from 0000-1111\\."):  # fmt: skip
        asked = query(pattern)
        assert places(path, asked) == parsed(path, asked), pattern
        assert places(path, asked), pattern


def test_an_escape_in_the_arguments_of_a_tool_may_be_escaped_itself(tmp_path: Path) -> None:
    rows = Rows()
    rows.add("session_meta", id=codex_sessions.ID, cwd="/srv")
    rows.item(type="function_call", name="shell", call_id="1", arguments='{"cmd":"a \\u006eeedle"}')
    plain = b"\n".join([*rows.lines, b""])
    for data in (plain, plain.replace(b"\\\\u006e", b"\\u005cu006e")):
        path = write(tmp_path / f"rollout-2026-11-21T12-00-00-{codex_sessions.ID}.jsonl", data)
        assert len(places(path, query("needle"))) == 1, data


def test_only_what_is_looked_for_makes_lines_of_events_worth_a_look() -> None:
    assert b"error" not in codex_view.worded([b"needle"])
    assert b"error" in codex_view.worded([b"or: needle"])
    assert gemini_reader.worded([b"needle"]) == ()


# ── archives ─────────────────────────────────────────────────────────────────────────────────

MORE = boundary(60) + prompt(61, "the needle in the tail") + answer(62, "no")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return homes.home(tmp_path, monkeypatch, talk() + MORE)


def test_a_rotated_session_is_found_where_it_was_found_before(home: Home) -> None:
    before = {pattern: places(home.live, query(pattern)) for pattern in ("answer", "needle", "e")}
    home.rotate()
    home.append(prompt(70, "another needle"))
    for pattern, expected in before.items():
        found = places(home.live, query(pattern))
        assert found[: len(expected)] == expected
        assert found == parsed(home.live, query(pattern))
        windows = [Window(begin, begin + 700) for begin in range(0, 9100, 700)]
        assert places(home.live, query(pattern), *windows, Window(9100)) == found


def test_a_damaged_segment_is_named_and_the_rest_is_found(home: Home) -> None:
    home.rotate()
    first = home.segment(0)
    homes.rewrite(first, homes.content(first).replace(b"first answer", b"first ANSWER"))
    found = [*search(home.live, query("answer|needle"))]
    problems = [each for each in found if isinstance(each, Problem)]
    assert ["Segment 0" in str(each.error) for each in problems] == [True]
    assert {each.segment for each in found if isinstance(each, Hit)} >= {1, 2}


# ── what it takes ────────────────────────────────────────────────────────────────────────────


def test_a_session_in_which_nothing_may_match_is_not_cut(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("sessrotate.segments.scan.scan", no)
    monkeypatch.setattr("sessrotate.clients.claude.reader.view", no)
    assert places(home.live, query("nowhere-to-be-found")) == []
    with pytest.raises(AssertionError):
        places(home.live, query("needle"))


def test_a_session_that_is_searched_in_windows_is_cut_once_until_it_changes(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, cut = scan.scan, list[object]()

    def noted(*each: Any) -> Any:
        cut.append(each)
        return real(*each)

    monkeypatch.setattr(scan, "scan", noted)
    windows = [Window(begin, begin + 700) for begin in range(0, 7000, 700)]
    before = places(home.live, query("e"), *windows)
    assert len(cut) == 1
    home.append(boundary(80) + prompt(81, "e"))
    after = places(home.live, query("e"), *windows, Window(7000))
    assert after[: len(before)] == before
    assert after[-1][0] == before[-1][0] + 1
    assert len(cut) == 2


def test_a_line_that_is_too_long_counts_only_where_it_may_match(tmp_path: Path) -> None:
    long = prompt(3, "x" * (9 << 20) + "needle")
    path = write(tmp_path / f"{ID}.jsonl", prompt(1, "needle") + long + prompt(2, "needle"))
    *hits, end = search(path, query("needle"))
    assert end == Searched(unsearched=1)
    assert len(hits) == 2
    assert [*search(path, query("nothing"))] == [Searched()]
