"""Some turns of a session, or what was written between two moments, and nothing read behind it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.view import Text, View
from sessrotate.errors import WrongUsageError
from sessrotate.parsing import Record
from sessrotate.reading import BranchEdge, part
from sessrotate.reading.part import Part, Turns, Within
from support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3:7", Turns(3, 7)),
        ("3:", Turns(3)),
        (":7", Turns(1, 7)),
        (" 4 ", Turns(4, 4)),
        ("4:4", Turns(4, 4)),
    ],
)
def test_turns_are_named_by_their_numbers(text: str, expected: Turns) -> None:
    assert part.turns(text) == expected


@pytest.mark.parametrize("text", ["", ":", "0", "0:3", "7:3", "-1", "a", "1:2:3", "1-2", "٣"])
def test_what_names_no_turns_is_refused_with_what_would(text: str) -> None:
    with pytest.raises(WrongUsageError, match="3:7 means those from number 3"):
        part.turns(text)


def test_turns_are_said_as_people_say_them() -> None:
    told = [str(each) for each in (Turns(3, 7), Turns(3), Turns(3, 3), Turns(1, 2))]
    assert told == ["turns 3 to 7", "turns 3 on", "turn 3", "turns 1 to 2"]


def item(number: int, *, is_prompt: bool) -> tuple[Record, View | None]:
    kind: Literal["user", "assistant"] = "user" if is_prompt else "assistant"
    view = View(kind=kind, type=kind, blocks=(Text(f"{number}"),))
    return Record(0, number, b"", 0), view


@given(
    kinds=st.lists(st.booleans(), max_size=30),
    first=st.integers(1, 12),
    more=st.none() | st.integers(0, 8),
)
@examples(200)
def test_what_belongs_to_a_turn_stands_between_its_prompt_and_the_next(
    kinds: list[bool], first: int, more: int | None
) -> None:
    items = [item(number, is_prompt=kind) for number, kind in enumerate(kinds)]
    # As a text: each turn begins with a P, and what comes before the first one is of that.
    text = "".join("P" if kind else "x" for kind in kinds)
    turns = re.findall(r"^x*P?x*|Px*", text)
    last = None if more is None else first + more
    before = sum(map(len, turns[: first - 1]))
    size = len("".join(turns[first - 1 : last]))
    within = Within(Part(Turns(first, last)))
    found = [record.offset for record, _ in within.of(items)]
    assert found == list(range(before, before + size))
    if found:
        assert within.before == text[:before].count("P")


def test_nothing_is_read_behind_the_last_turn() -> None:
    def items() -> Iterator[tuple[Record, View | None]]:
        for number in range(4):
            yield item(number, is_prompt=True)
        raise AssertionError

    found = Within(Part(Turns(2, 3))).of(items())
    assert [record.offset for record, _ in found] == [1, 2]


def test_the_edge_of_a_branch_is_in_a_part_with_what_stands_before_it() -> None:
    edge = BranchEdge(is_end=True, left_out=3)
    items: list[tuple[Record, View | None] | BranchEdge] = [
        item(0, is_prompt=True),
        edge,
        item(1, is_prompt=True),
        edge,
        item(2, is_prompt=True),
    ]
    found = [*Within(Part(Turns(2, 2))).of(items)]
    assert found == items[2:4]
