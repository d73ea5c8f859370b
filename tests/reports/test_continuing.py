"""A session that continues another one is known by its rows."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.preview import Sight, Title
from sessrotate.reports.listing import Neighbour, parents


def at(minute: int) -> str:
    return f"2026-03-01T{12 + minute // 60:02d}:{minute % 60:02d}:00.000Z"


def sight(start: int, end: int, rows: str = "") -> Neighbour:
    edges = Sight(Title(), "session", "/work", "main", at(start), at(end), rows[:1] or None)
    return Neighbour(edges, frozenset(rows))


def links(**project: Neighbour) -> dict[str, tuple[str, str]]:
    return {each: (link.session, link.reason) for each, link in parents(project).items()}


TRUNK, FORK, CLONE = sight(0, 5, "abcd"), sight(0, 9, "cdxy"), sight(0, 20, "cdxyz")


def test_a_session_continues_the_latest_that_ended_before_it_and_has_its_first_row() -> None:
    found = links(clone=CLONE, trunk=TRUNK, fork=FORK, other=sight(0, 1, "q"))
    assert found == {"fork": ("trunk", "same rows"), "clone": ("fork", "same rows")}


def test_two_forks_of_a_session_both_follow_it_and_not_each_other() -> None:
    found = links(trunk=TRUNK, one=sight(0, 7, "bx"), two=sight(0, 6, "cy"))
    assert found == {"one": ("trunk", "same rows"), "two": ("trunk", "same rows")}


@given(
    st.dictionaries(
        st.sampled_from("ABCDE"),
        st.builds(
            sight,
            st.integers(0, 30),
            st.integers(0, 30),
            st.text("abc", max_size=3),
        ),
        min_size=1,
    )
)
def test_no_session_continues_itself_or_a_stranger_however_rows_are_shared(
    project: dict[str, Any],
) -> None:
    found = parents(project)
    for session, link in found.items():
        earlier, later = project[link.session], project[session]
        assert link.session != session
        assert later.edges.first in earlier.uuids
    orders = [dict(order) for order in list(permutations(project.items()))[:3]]
    assert all(parents(order) == found for order in orders)
