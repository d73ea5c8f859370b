"""Of a text, the lines that match are shown, with those around them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from sessrotate.reading import select as module
from sessrotate.reading.select import excerpts
from support.examples import examples


def numbered(text: str, pattern: re.Pattern[str], around: int) -> list[list[str]]:
    """Return the groups in another way: by the numbers of lines, of the text split into them."""
    lines = text.split("\n")
    starts = [sum(len(line) + 1 for line in lines[:n]) for n in range(len(lines))]
    hits = {
        max(n for n, start in enumerate(starts) if start <= match.start())
        for match in pattern.finditer(text)
    }
    if lines[-1] == "" and len(lines) - 1 not in hits:
        lines.pop()  # a newline at the end begins no line that would stand around another
    wanted = {n for hit in hits for n in range(hit - around, hit + around + 1)}
    groups: list[list[str]] = []
    last = -2
    for number in sorted(wanted & {*range(len(lines))}):
        if number != last + 1:
            groups.append([])
        groups[-1].append(("> " if number in hits else "  ") + lines[number])
        last = number
    return groups


@examples(500)
@given(
    text=st.text("ab\n", max_size=24),
    pattern=st.sampled_from(["a", "b+", "^", "a\nb", "^$", "(?s)a.*b", "a|\n"]),
    around=st.integers(0, 3),
)
def test_lines_that_match_come_with_those_around_them_and_none_twice(
    text: str, pattern: str, around: int
) -> None:
    compiled = re.compile(pattern, re.MULTILINE)
    shown = [
        [("  " if line.spans is None else "> ") + line.text for line in group]
        for group in excerpts(text, [compiled], around)
    ]
    expected = numbered(text, compiled, around)
    assert [line for group in shown for line in group] == [
        line for group in expected for line in group
    ]
    if around:
        assert shown == expected


def test_what_matches_is_told_to_the_character() -> None:
    (group,) = excerpts("x needle and needle\ny", [re.compile("needle")])
    assert [(line.text, line.spans) for line in group] == [
        ("x needle and needle", ((2, 8), (13, 19)))
    ]


def test_a_long_line_is_cut_around_its_first_match() -> None:
    text = "a" * 5000 + "needle" + "b" * 5000
    ((line,),) = excerpts(text, [re.compile("needle")])
    assert line.is_cut == (True, True)
    assert len(line.text) == module.LONGEST
    assert line.spans is not None
    ((begin, end),) = line.spans
    assert line.text[begin:end] == "needle"


def test_of_a_text_that_matches_everywhere_a_thousand_lines_come() -> None:
    found = excerpts("a\n" * 5000, [re.compile("a")])
    assert sum(map(len, found)) == module.MOST
    ((line,),) = excerpts("a" * 1_000_000, [re.compile("a*?")])
    assert line.spans is not None
    assert len(line.spans) <= 100
