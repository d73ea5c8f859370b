"""Sessions are wanted by what is told, shown largest first, and called what finds them again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import reports
from sessrotate.reports import Wanted
from support.entries import NOW, entry

NAMES = st.lists(
    st.text("0aé", min_size=1, max_size=14) | st.text("01", max_size=4).map("0000000".__add__),
    max_size=12,
)


@given(NAMES)
def test_a_short_name_finds_one_session_and_no_shorter_one_would(names: list[str]) -> None:
    short = reports.short_names(names)
    assert short.keys() == set(names)
    for name, told in short.items():
        assert name.startswith(told)
        others = [each for each in set(names) - {name} if each.startswith(told)]
        assert others == [] or told == name
        longest = len(told) > reports.SHORTEST
        assert not longest or any(each.startswith(told[:-1]) for each in set(names) - {name})
        assert longest or told == name[: reports.SHORTEST]


def test_files_that_share_the_name_of_a_session_go_by_their_own_ids() -> None:
    found = [
        entry("session-1-aa6eaa51", name="aa6eaa51-1111"),
        entry("session-2-aa6eaa51", name="aa6eaa51-1111"),
        entry("session-1-7f04451b", name="7f04451b-1111"),
        entry("session-2-7f04451b", name="7f04451b-1111", standing="empty"),
        entry("session-1-9fb551bb", name="9fb551bb-1111"),
        entry("same", path=Path("/p/one")),
        entry("same", path=Path("/p/other")),
    ]
    assert [each.name for each in reports.unambiguous(found)] == [
        "session-1-aa6eaa51",
        "session-2-aa6eaa51",
        "7f04451b-1111",
        "session-2-7f04451b",
        "9fb551bb-1111",
        "same",
        "same",
    ]


def test_sessions_come_largest_first_by_the_live_file_then_by_the_archive() -> None:
    found = [
        entry("a", bytes=0, is_live=False, archived_bytes=None),
        entry("b", bytes=0, is_live=False, archived_bytes=900),
        entry("c", bytes=5, archived_bytes=10_000),
        entry("d", bytes=70),
        entry("e", bytes=5, archived_bytes=10_000),
    ]
    assert [each.id for each in reports.in_order(found)] == ["d", "c", "e", "b", "a"]


@pytest.mark.parametrize(
    ("wanted", "is_taken"),
    [
        (Wanted(), True),
        (Wanted(client="claude"), True),
        (Wanted(client="codex"), False),
        (Wanted(project="project"), True),
        (Wanted(project="/home/somebody/project"), True),
        (Wanted(project="./project", paths=frozenset({"/home/somebody/project"})), True),
        (Wanted(project="proj"), False),
        (Wanted(project="somebody"), False),
        (Wanted(project="/home/somebody"), False),
        (Wanted(least=1000), True),
        (Wanted(least=1001), False),
        (Wanted(before=NOW + 1), True),
        (Wanted(before=NOW), False),
        (Wanted(since=NOW), True),
        (Wanted(since=NOW + 1), False),
        (Wanted(since=NOW - 1, before=NOW + 1, least=10, project="project"), True),
    ],
)
def test_a_session_is_listed_if_all_that_was_asked_holds(wanted: Wanted, is_taken: bool) -> None:
    assert wanted.takes(entry()) is is_taken


@pytest.mark.parametrize("standing", ["empty", "warm-up", "agent"])
def test_what_nobody_used_is_listed_only_when_asked_for(standing: str) -> None:
    assert not Wanted().takes(entry(standing=standing))
    assert Wanted(hidden=True).takes(entry(standing=standing))


@pytest.mark.parametrize(
    ("folder", "last"),
    [("/a/b", "b"), ("/a/b/", "b"), ("C:\\a\\b", "b"), ("-a-b", "-a-b"), ("/", ""), ("", "")],
)
def test_the_last_part_of_a_folder_is_its_name_on_any_system(folder: str, last: str) -> None:
    assert reports.last_part(folder) == last


def test_the_age_is_that_of_the_last_record_not_of_the_file() -> None:
    copied = entry(modified=NOW + 1000, last_used=NOW)
    assert not Wanted(since=NOW + 1).takes(copied)
