"""An answer costs once, however many records it was cut into."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.view import Tokens, View
from sessrotate.render import conversation
from sessrotate.render.conversation import Costs
from support.command_line import piped, write
from support.export import sessions

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = st.integers(0, 10**6)


def answer(message: str | None, sent: int, received: int) -> View:
    return View("assistant", "assistant", message=message, tokens=Tokens(sent, 0, 0, received))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(1, 4)), max_size=8))
def test_the_records_of_an_answer_count_once(answers: list[tuple[int, int, int]]) -> None:
    counted = Costs()
    for number, (sent, received, records) in enumerate(answers):
        for part in range(records):  # a client writes what it has received so far
            counted.add(answer(f"m{number}", sent, received * (part + 1) // records))
        counted.add(View("user", "user"))
    told = counted.take()
    totals = [sum(each[0] for each in answers), sum(each[1] for each in answers)]
    if told is None:
        assert totals == [0, 0]
    else:
        figures = [int(each.replace(",", "")) for each in re.findall(r"\d[\d,]*", told)]
        assert figures == [len(answers)] * (len(answers) > 1) + totals
    assert counted.take() is None


def test_answers_without_an_id_count_each() -> None:
    counted = Costs()
    counted.add(answer(None, 1, 2))
    counted.add(answer(None, 1, 2))
    assert counted.take() == "2 answers: 2 tokens in, 4 out"


def test_a_number_that_none_is_fills_no_page() -> None:
    assert conversation.told(10**5000, 1) == "very many tokens"


@pytest.mark.parametrize("command", [("read", "--history"), ("export", "--format", "markdown")])
def test_what_was_said_ends_with_what_it_cost(tmp_path: Path, command: tuple[str, ...]) -> None:
    script = sessions.Script()
    script.user("a question")
    script.answer({"type": "text", "text": "one"}, {"type": "text", "text": "two"})
    script.answer({"type": "text", "text": "three"})
    script.user("another")
    script.answer({"type": "text", "text": "four"})
    path = write(tmp_path / "0ddba11a-0000-4000-a000-00000000000a.jsonl", script.bytes())
    name, *options = command
    said = piped(name, path, *options).out
    told = re.findall(r"^[(*](.*tokens in.*)[)*]$", said, re.MULTILINE)
    assert told == ["2 answers: 65,392 tokens in, 772 out", "32,696 tokens in, 386 out"]
    assert said.index("three") < said.index(told[0]) < said.index("another")
