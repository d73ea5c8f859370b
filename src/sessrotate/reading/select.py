"""Which records are shown: when, what kind, whose turn, and what they match. Pure.

Rule: a `Choice` is made once, before anything is read. Records keep their order, and a line that
cannot match is not parsed.

Of a text, the lines that match are shown with lines around them, each short enough. What is left
out is bounded and marked: a line over `LONGEST` characters is cut around its first match, and of
one text `MOST` matching lines come. A match counts for the line in which it begins.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate.clients.protocol import Reader, Wording
from sessrotate.clients.view import (
    Block,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    View,
    is_note,
    is_of_client,
    is_prompt,
    typed_first,
)
from sessrotate.errors import WrongUsageError, printable
from sessrotate.parsing.candidates import Sieve, sieve
from sessrotate.reading.deduplicate import delivered_once
from sessrotate.reading.part import ALL, Part, Within

if TYPE_CHECKING:
    from sessrotate.parsing import Record
    from sessrotate.reading import Viewed

INCLUDABLE: Final = ("sidechains", "meta", "tools", "thinking", "attachments")
"""What --include names: hidden by default. Of tools, one line each is always shown."""

EVERYTHING: Final = frozenset(INCLUDABLE)

_HIDDEN: Final[Mapping[str, Callable[[View], bool]]] = {
    "sidechains": lambda view: view.is_sidechain,
    "attachments": lambda view: view.kind == "attachment",
    "meta": is_of_client,
}
"""Which records a word of `INCLUDABLE` stands for."""

_HIDDEN_BLOCKS: Final[Mapping[str, Callable[[Block], bool]]] = {
    "meta": is_note,
    "thinking": lambda block: isinstance(block, Thinking),
}
"""Which blocks of other records it stands for."""


class Choice(Struct, frozen=True):
    """What is to be shown.

    `part` is where it stands. `include` says which of `INCLUDABLE` to show; None shows every
    record, even those that belong to no conversation. `brief` keeps only the prompt, the tool uses
    and the answer of each turn.
    """

    part: Part = ALL
    include: frozenset[str] | None = frozenset()
    brief: bool = False
    grep: re.Pattern[str] | None = None

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out, so that no record has to be parsed."""
        return self == Choice(include=None)


# ── what is typed ────────────────────────────────────────────────────────────────────────────


def expression(text: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return what people typed as a regular expression. Raises WrongUsageError if it is none."""
    try:
        with warnings.catch_warnings():  # of what may once mean something else
            warnings.simplefilter("ignore")
            return re.compile(text, flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise WrongUsageError(
            f"{printable(text)} is not a valid regular expression: {printable(str(error))}."
        ) from None


def composed(text: str) -> str:
    """Return a text in which accents are one character with their letters (NFC), to be compared."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def uncomposed(text: str, told: str, at: int) -> int:
    """Return where a character of a text that was `composed` stands in the text."""
    number = told.count("\n", 0, at)
    begin = sum(len(line) + 1 for line in text.split("\n", number)[:number])
    end = text.find("\n", begin)
    line = text[begin:] if end < 0 else text[begin:end]
    within = at - (told.rfind("\n", 0, at) + 1)
    return begin + bisect_left(
        range(len(line)), within, key=lambda size: len(composed(line[:size]))
    )


def included(words: Iterable[str]) -> frozenset[str]:
    """Return the words that --include gives, each time one or several with commas between.

    Raises WrongUsageError for a word that is not in `INCLUDABLE`.
    """
    found = {word.strip() for several in words for word in several.split(",")} - {""}
    for word in sorted(found - EVERYTHING):
        raise WrongUsageError(
            f"{printable(word)} cannot be included; choose from {', '.join(INCLUDABLE)}."
        )
    return frozenset(found)


# ── choosing ─────────────────────────────────────────────────────────────────────────────────


def chosen(
    records: Iterable[Record],
    view: Callable[[Record], View | None],
    choice: Choice,
    unsearched: Callable[[Record], None],
    *,
    reader: Reader | None = None,
    hidden: Callable[[str], None] = lambda _word: None,
    within: Within | None = None,
) -> Iterator[Viewed]:
    """Yield the records to show, each with as much of its view as is to be shown.

    `reader` is what the views are from, if it is a client's own. `unsearched` is called with each
    record that is too long to be searched, and `hidden`, with the word of `INCLUDABLE`, for each
    of which something would be shown if `choice.include` had that word. `within` is what tells
    which are in the part, where somebody wants to know more of that. Raises WrongUsageError, at the
    end, if no record has the uuid that a limit of the part gives.
    """
    if choice.is_everything:
        return ((record, None) for record in records)
    grep = choice.grep
    times = {choice.part.since, choice.part.until} - {None}
    uuids = {time for time in times if isinstance(time, str)}
    if grep is not None and not choice.brief and not choice.part.turns and times == uuids:
        # Without times and turns, what is shown does not depend on the lines before it.
        records = _sieved(records, sieve_for(grep, reader), uuids)
    viewed = delivered_once((record, view(record)) for record in records)
    items = (within or Within(choice.part)).of(viewed)
    if choice.include is not None:
        items = _shown(items, choice, hidden)
    if choice.brief:
        items = _briefly(items)
    return items if grep is None else _matching(items, grep, unsearched)


def sieve_for(pattern: re.Pattern[str], reader: Reader | None) -> Sieve:
    """Return what lets the lines through whose views may match, as a client writes lines."""
    found = sieve(pattern)
    if found.wanted and isinstance(reader, Wording):
        return replace(found, also=reader.worded(found.wanted))
    return found


def _sieved(
    records: Iterable[Record], may_match: Callable[[bytes], bool], uuids: set[str]
) -> Iterator[Record]:
    named = [uuid.encode() for uuid in uuids]
    for record in records:
        line = record.line
        if may_match(line) or not record.is_whole or any(uuid in line for uuid in named):
            yield record


def _shown(
    items: Iterable[Viewed], choice: Choice, hidden: Callable[[str], None]
) -> Iterator[Viewed]:
    include, grep = choice.include or frozenset(), choice.grep
    hides = {word: is_it for word, is_it in _HIDDEN.items() if word not in include}
    blocks = {word: is_it for word, is_it in _HIDDEN_BLOCKS.items() if word not in include}

    def is_wanted(record: Record, view: View) -> bool:
        return grep is None or any(grep.search(text) for text in texts(record, view))

    for record, view in items:
        if view is None:
            yield record, view
            continue
        if view.kind == "other":
            continue
        word = next((word for word, is_it in hides.items() if is_it(view)), None)
        if word is not None:
            if is_wanted(record, view):
                hidden(word)
            continue
        kept = view
        for each, is_it in blocks.items():
            kept, left = _parted(kept, is_it)
            if left is not None and is_wanted(record, left):
                hidden(each)
        if kept.blocks or not view.blocks:
            yield record, typed_first(kept)


def _briefly(items: Iterable[Viewed]) -> Iterator[Viewed]:
    """Yield the prompt of each turn, its tool uses, and what was said after the last of them.

    A turn begins with a prompt and ends before the next one. Compactions and unreadable lines stay.
    """
    answer: list[Viewed] = []
    for record, view in items:
        if view is not None and (view.is_sidechain or view.is_summary):
            continue
        if view is None or view.is_boundary or is_prompt(view):
            yield from answer
            answer = []
            yield record, view
            continue
        tools = _only(view, ToolCall, ToolResult)
        if tools.blocks:
            answer = []
            yield record, tools
        if view.kind == "assistant":
            texts = _only(_after_tools(view), Text)
            if texts.blocks:
                answer.append((record, texts))
    yield from answer


def _only(view: View, *types: type[Block]) -> View:
    return replace(view, blocks=tuple(block for block in view.blocks if isinstance(block, types)))


def _parted(view: View, is_it: Callable[[Block], bool]) -> tuple[View, View | None]:
    """Return a view without some of its blocks, and one with nothing else if it has such."""
    if not any(map(is_it, view.blocks)):
        return view, None
    kept = tuple(block for block in view.blocks if not is_it(block))
    return replace(view, blocks=kept), replace(view, blocks=tuple(filter(is_it, view.blocks)))


def _after_tools(view: View) -> View:
    calls = [n for n, block in enumerate(view.blocks) if isinstance(block, ToolCall)]
    return replace(view, blocks=view.blocks[calls[-1] + 1 :] if calls else view.blocks)


def _matching(
    items: Iterable[Viewed], grep: re.Pattern[str], unsearched: Callable[[Record], None]
) -> Iterator[Viewed]:
    for record, view in items:
        if not record.is_whole:
            unsearched(record)
        elif any(grep.search(text) for text in texts(record, view)):
            yield record, view


# ── what is searched ─────────────────────────────────────────────────────────────────────────


def texts(record: Record, view: View | None) -> Iterator[str]:
    """Yield each decoded text of a record; for a line that is not a record, the line itself."""
    if view is None:
        yield record.line.decode("utf-8", "replace")
        return
    for block in view.blocks:
        yield from texts_of(block)


def text_of(record: Record, view: View | None) -> str:
    """Return all texts of a record, each from a new line on."""
    return "\n".join(texts(record, view))


def only_at(view: View, character: int) -> View:
    """Return a view with only the block that has this character of `text_of`.

    Its other blocks may be somebody else's: beside a prompt stand results, and what an editor says.
    """
    end = 0
    for block in view.blocks:
        end += sum(len(text) + 1 for text in texts_of(block))
        if character < end:
            return replace(view, blocks=(block,))
    return view


def texts_of(block: Block) -> Iterator[str]:
    """Yield each decoded text of a block."""
    match block:
        case Text(text) | Thinking(text):
            yield text
        case ToolCall(_, name, arguments):
            yield name
            yield from _strings(arguments)
        case ToolResult(_, blocks):
            for inner in blocks:
                yield from texts_of(inner)
        case Unknown(_, value):
            yield from _strings(value)
        case _:
            pass  # pictures have nothing to read


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings of a JSON value, but not its keys, which are the tool's words.

    Without recursion, since the value may be deep.
    """
    left = [value]
    while left:
        match left.pop():
            case str(text):
                yield text
            case dict() as members:
                left += reversed(members.values())
            case list() as elements:
                left += reversed(elements)
            case _:
                pass


# ── the lines that match ──────────────────────────────────────────────────────────────────────────

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
    matching = (each for each in _matching_lines(text, words) if len(each[3]) >= least)
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


def matching_lines(text: str, word: re.Pattern[str]) -> Iterator[Line]:
    """Yield all lines of a text in which a word matches."""
    for begin, end, spans, _ in _matching_lines(text, [word]):
        yield _line(text, begin, end, spans)


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


def _matching_lines(
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
