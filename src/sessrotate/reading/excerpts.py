"""A text → the lines of it that match, with lines around them, each short enough to be shown. Pure.

Rule: what is left out is bounded and marked: a line over `LONGEST` characters is cut around its
first match, and of one text `MOST` matching lines come. A match counts for the line in which it
begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

LONGEST: Final = 2_000
"""Characters of a line that are kept."""

MOST: Final = 1_000
"""Lines of one text that are kept."""

_BEFORE: Final = LONGEST // 4
"""Characters that are kept before the first match of a line that is cut."""

_MARKED: Final = 100
"""Matches of one line that are told."""


class Line(Struct, frozen=True):
    """A line of a text. `spans` are where it matches, from which character up to which.

    A line around one that matches has None. `is_cut` says whether it goes on before and behind.
    `at` is where it begins, or what is kept of it, in the text.
    """

    text: str
    spans: tuple[tuple[int, int], ...] | None = None
    is_cut: tuple[bool, bool] = (False, False)
    at: int = 0


Group = tuple[Line, ...]
"""Lines that follow each other in the text."""


def excerpts(
    text: str, words: Sequence[re.Pattern[str]], around: int = 0, least: int = 1
) -> tuple[Group, ...]:
    """Return the lines in which `least` of the words match, with `around` lines around each."""
    groups: list[list[Line]] = []
    shown = -1  # where the last line ends that is in a group
    matching = (each for each in _matching(text, words) if len(each[3]) >= least)
    for begin, end, spans, _ in islice(matching, MOST):
        before = _before(text, begin, around, shown)
        first = before[0][0] if before else begin
        if groups and around:
            behind = _behind(text, shown, around, first - 1)
            groups[-1] += (_line(text, *each) for each in behind)
            shown = behind[-1][1] if behind else shown
        before = [each for each in before if each[0] > shown]
        first = before[0][0] if before else begin
        if not groups or first != shown + 1:
            groups.append([])
        groups[-1] += (_line(text, *each) for each in before)
        groups[-1].append(_line(text, begin, end, spans))
        shown = end
    if groups and around:
        groups[-1] += (_line(text, *each) for each in _behind(text, shown, around, len(text)))
    return tuple(map(tuple, groups))


def from_match(text: str, at: int, before: int) -> Iterator[Line]:
    """Yield the lines of a text from `before` lines before the one with the character `at` on.

    That line alone has `spans`, which begin there; behind the end there is nothing to mark.
    """
    begin, end = _line_at(text, at)
    lines = [*_before(text, begin, before, -1), (begin, end)]
    yield from (_line(text, *each) for each in lines[:-1])
    yield _line(text, begin, end, [(min(at, end), min(at, end))])
    while end < len(text):
        begin, end = _line_at(text, end + 1)
        yield _line(text, begin, end)


def _line_at(text: str, at: int) -> tuple[int, int]:
    """Return where the line begins and ends in which a character stands."""
    begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    return begin, end if end >= 0 else len(text)


def _matching(
    text: str, words: Sequence[re.Pattern[str]]
) -> Iterator[tuple[int, int, list[tuple[int, int]], set[int]]]:
    """Yield where each line begins and ends in which a match begins, the matches, and of what."""
    line: tuple[int, int, list[tuple[int, int]], set[int]] | None = None
    nearest, is_one = [word.search(text) for word in words], len(words) == 1
    while (match := nearest[number := 0 if is_one else _first(nearest)]) is not None:
        start, stop = match.span()
        if line is None or start > line[1]:
            if line is not None:
                yield line
            line = *_line_at(text, start), [], set()
        line[3].add(number)
        spans, end = line[2], min(stop, line[1])
        if spans and start < spans[-1][1]:  # of two words, one may begin inside of the other
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((start, end))
        at = line[1] + 1 if len(spans) == _MARKED else max(stop, start + 1)
        nearest[number] = words[number].search(text, at) if at <= len(text) else None
    if line is not None:
        yield line


def _first(nearest: Sequence[re.Match[str] | None]) -> int:
    """Return which of the words matches first, or the longest of those; 0 if none does."""
    spans = ((n, match.span()) for n, match in enumerate(nearest) if match is not None)
    return min(((begin, -end, n) for n, (begin, end) in spans), default=(0, 0, 0))[2]


def _before(text: str, begin: int, count: int, shown: int) -> list[tuple[int, int]]:
    """Return where up to `count` lines stand before a line, none that ends by `shown`."""
    found: list[tuple[int, int]] = []
    while len(found) < count and begin > shown + 1:
        end = begin - 1
        begin = text.rfind("\n", 0, end) + 1
        found.insert(0, (begin, end))
    return found


def _behind(text: str, end: int, count: int, limit: int) -> list[tuple[int, int]]:
    """Return where up to `count` lines stand behind a line, none that ends behind `limit`."""
    found: list[tuple[int, int]] = []
    while len(found) < count and end + 1 < len(text):
        begin, end = end + 1, text.find("\n", end + 1)
        end = end if end >= 0 else len(text)
        if end > limit:
            break
        found.append((begin, end))
    return found


def _line(text: str, begin: int, end: int, spans: list[tuple[int, int]] | None = None) -> Line:
    marked = None if spans is None else tuple((a - begin, b - begin) for a, b in spans)
    if end - begin <= LONGEST:
        return Line(text[begin:end], marked, at=begin)
    start = max(0, min(marked[0][0] - _BEFORE, end - begin - LONGEST)) if marked else 0
    kept = text[begin + start : begin + start + LONGEST]
    inside = None
    if marked is not None:
        inside = tuple(
            (a - start, min(b - start, LONGEST)) for a, b in marked if a - start <= LONGEST
        )
    return Line(kept, inside, (start > 0, begin + start + LONGEST < end), begin + start)
