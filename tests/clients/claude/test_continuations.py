"""A session that continues another one is known by its rows, else by branch, title and time."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.claude.continuations import Link, Neighbour, continued
from sessrotate.clients.preview import Sight, Title


def at(minute: int) -> str:
    return f"2026-03-01T{12 + minute // 60:02d}:{minute % 60:02d}:00.000Z"


def sight(
    start: int, end: int, rows: str = "", title: str = "", branch: str | None = "main"
) -> Neighbour:
    named = Title(title, "custom") if title else Title("", "none")
    edges = Sight(named, "session", "/work", branch, at(start), at(end), rows[:1] or None)
    return Neighbour(edges, frozenset(rows))


def chain(session: str, **project: Neighbour) -> list[tuple[str, str]]:
    return [(link.session, link.reason) for link in continued(session, project)]


TRUNK, FORK, CLONE = sight(0, 5, "abcd"), sight(0, 9, "cdxy"), sight(0, 20, "cdxyz")


@pytest.mark.parametrize("session", ["trunk", "fork", "clone"])
def test_sessions_that_repeat_rows_are_a_chain_from_wherever_it_is_seen(session: str) -> None:
    found = chain(session, clone=CLONE, trunk=TRUNK, fork=FORK, other=sight(0, 1, "q"))
    assert found == [("trunk", "first"), ("fork", "same rows"), ("clone", "same rows")]


def test_two_forks_of_a_session_both_follow_it_and_not_each_other() -> None:
    forks = {"one": sight(0, 7, "bx"), "two": sight(0, 6, "cy")}
    assert [each for each, _ in chain("trunk", trunk=TRUNK, **forks)] == ["trunk", "two", "one"]
    assert [each for each, _ in chain("one", trunk=TRUNK, **forks)] == ["trunk", "one"]


def test_a_session_of_the_same_title_that_begins_soon_after_goes_on() -> None:
    first, second = sight(0, 30, "a", "A name"), sight(35, 50, "b", "A name")
    assert chain("second", first=first, second=second) == [
        ("first", "first"),
        ("second", "same title"),
    ]


@pytest.mark.parametrize(
    "second",
    [
        sight(35, 50, "b", "Another name"),
        sight(35, 50, "b", "A name", "other"),
        sight(41, 50, "b", "A name"),
        sight(29, 50, "b", "A name"),
        sight(35, 50, "b"),
    ],
)
def test_one_that_differs_in_anything_does_not(second: Neighbour) -> None:
    assert chain("second", first=sight(0, 30, "a", "A name"), second=second) == [
        ("second", "first")
    ]


@given(
    st.dictionaries(
        st.sampled_from("ABCDE"),
        st.builds(
            sight,
            st.integers(0, 30),
            st.integers(0, 30),
            st.text("abc", max_size=3),
            st.sampled_from(["", "A name"]),
        ),
        min_size=1,
    )
)
def test_a_chain_has_every_session_once_however_rows_are_shared(project: dict[str, Any]) -> None:
    for session in project:
        found = continued(session, project)
        names = [link.session for link in found]
        assert session in names
        assert len(set(names)) == len(names)
        assert [link.reason for link in found].count("first") == 1
        assert found[0].reason == "first"
        orders = [dict(order) for order in list(permutations(project.items()))[:3]]
        assert all(continued(session, order) == found for order in orders)


def test_a_session_alone_is_a_chain_of_its_own() -> None:
    assert continued("a", {"a": sight(0, 1)}) == (Link("a", "first"),)
