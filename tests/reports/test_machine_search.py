"""All sessions are searched, newest first, and each record is found once, whatever happens."""

from __future__ import annotations

import os
import random
import re
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from sessrotate.reading import search as reading_search
from sessrotate.reading.search import Hit, Query, Searched
from sessrotate.reports import machine_search
from sessrotate.reports.machine_search import Machine, Made
from support import homes
from support.command_line import ID, boundary, write
from support.talks import prompt, talk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.reading.holders import Around
    from sessrotate.reading.search import Found, Window
    from sessrotate.reports import SessionInfo
    from support.homes import Home

NEEDLES = [f"needle {n}" for n in range(40)]
ROWS = [prompt(200 + n, needle) for n, needle in enumerate(NEEDLES)]
DATA = talk() + b"".join(boundary(100 + n) + b"".join(ROWS[n : n + 8]) for n in range(0, 40, 8))
"""Segments are larger than the windows of these tests, so that rotations fall inside of them."""

QUERY = Query((re.compile("needle \\d+"),), lambda view: view.kind)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(machine_search, "WINDOW", 700)
    return homes.home(tmp_path, monkeypatch, DATA)


def text_of(_info: SessionInfo, hit: Hit) -> str:
    return hit.groups[0][0].text


def machine() -> Machine:
    return Machine(lambda path, reason: pytest.fail(f"{path}: {reason}"))


def known() -> list[SessionInfo]:
    return [*chain.from_iterable(machine().rounds())]


def found() -> list[str]:
    told = [each for _, each in machine_search.found(known(), QUERY, text_of)]
    assert isinstance(told[-1], Searched)
    return [each.what for each in told if isinstance(each, Made)]


@pytest.mark.parametrize("state", ["live", "rotated"])
def test_a_session_that_is_searched_in_windows_is_found_whole_and_once(
    home: Home, state: str
) -> None:
    if state == "rotated":
        home.rotate()
        home.append(prompt(300, "needle 99"))
    (info,) = known()
    assert len([*machine_search.windows(info)]) > 4
    assert found() == [*NEEDLES, *(["needle 99"] if state == "rotated" else [])]


@pytest.mark.parametrize("at", [1, 4, 6, 9, 12])
def test_a_rotation_between_two_windows_loses_no_hit(
    home: Home, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    real, seen = reading_search.search, []

    def meanwhile(path: Path, query: Query, window: Window, around: Around) -> Iterator[Found]:
        seen.append(window)
        if len(seen) == at:
            home.rotate()
        yield from real(path, query, window, around)

    monkeypatch.setattr(machine_search, "search", meanwhile)
    assert sorted(found()) == sorted(NEEDLES)


def test_sessions_that_hold_nothing_are_no_sessions_to_search(home: Home) -> None:
    write(home.live.with_name("77777777-0000-4000-a000-000000000009.jsonl"), b"")
    assert [each.id for each in known()] == [ID]


def test_a_session_that_goes_away_meanwhile_is_passed_over(home: Home) -> None:
    (info,) = known()
    gone = replace(info, path=home.live.with_name("gone.jsonl"))
    told = [*machine_search.found([gone, info], QUERY, text_of)]
    assert [each.what for _, each in told if isinstance(each, Made)] == NEEDLES
    assert all(isinstance(each, Made | Searched) for _, each in told)


# ── which sessions are opened first ──────────────────────────────────────────────────────────

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def write_sessions(home: Home, times: list[tuple[int, int]], names: str = "{:08x}") -> None:
    """Put sessions in the place of that of the home, each in a project of its own.

    Each was last used at a minute, which it names, and its file changed so many minutes later.
    """
    home.live.unlink()
    for number, (minute, later) in enumerate(times):
        used = NOON + timedelta(minutes=minute)
        project = home.live.parent.with_name(f"-home-somebody-{number}")
        path = project / f"{names.format(number)}{ID[8:]}.jsonl"
        write(path, prompt(number, f"needle {minute}", timestamp=used.isoformat()))
        changed = (used + timedelta(minutes=later)).timestamp()
        os.utime(path, (changed, changed))


@pytest.mark.parametrize("seed", range(8))
def test_the_newest_come_first_however_few_are_opened_at_a_time(
    home: Home, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(machine_search, "FIRST", 1)
    drawn = random.Random(seed)
    minutes = drawn.sample(range(60), 30)
    write_sessions(home, [(each, drawn.choice([0, 0, 0, 1, 5, 99])) for each in minutes])
    assert found() == [f"needle {each}" for each in sorted(minutes, reverse=True)]


def opened_before_the_first_hit(monkeypatch: pytest.MonkeyPatch) -> tuple[str, set[str]]:
    """Return the hit, and the files of sessions that were opened until then."""
    opened: set[str] = set()

    def opening(path: str, *more: Any, **options: Any) -> int:
        opened.update([Path(path).name] if str(path).endswith(".jsonl") else [])
        return real(path, *more, **options)

    real = os.open
    with monkeypatch.context() as watched:
        watched.setattr(os, "open", opening)
        for sessions in machine().rounds():
            for _, told in machine_search.found(sessions, QUERY, text_of):
                if isinstance(told, Made):
                    return told.what, opened
    return "nothing", opened


def test_of_many_sessions_few_are_opened_before_the_first_hit(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_search, "FIRST", 4)
    write_sessions(home, [(minute, 0) for minute in range(40)])
    hit, opened = opened_before_the_first_hit(monkeypatch)
    assert (hit, len(opened)) == ("needle 39", 4)


def test_sessions_that_begin_alike_are_all_opened_before_any_is_named(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_search, "FIRST", 4)
    write_sessions(home, [(minute, 0) for minute in range(40)], "00000000-{:03x}")
    _, opened = opened_before_the_first_hit(monkeypatch)
    assert len(opened) == 40
